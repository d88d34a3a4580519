/** The buttons that end the wait. What each will do, or why it can't, is said before the click. */

import { button, disable, h, newId, set, setAria, setText } from './dom';
import type { Part } from './part';
import type { Word } from './protocol';
import { Repeat } from './repeat';
import type { Session } from './session';

type Name = Word | 'action';

const LABELS: Record<Name, string> = {
  pass: 'Pass',
  action: 'Action',
  surgery: 'Surgery',
  skip: 'Skip',
  continue: 'Continue',
  break: 'Break',
  return: 'Return…',
  abort: 'Abort'
};
const FIRST: Name[] = ['pass', 'action', 'surgery', 'skip'];
const MORE: Name[] = ['continue', 'break', 'return'];
const SAYS_ACTION = 'Run code in the selected frame; the crash goes on waiting.';
const EDIT_FIRST = 'Edit the source above; then see what changes, and apply it.';

export interface Moves {
  toConsole(): void;
  toEditor(): void;
  operate(): void;
}

export class Endings implements Part {
  readonly node: HTMLElement;
  private readonly buttons = new Map<Name, HTMLButtonElement>();
  private readonly says = new Map<Name, HTMLElement>();
  private readonly more: HTMLButtonElement;
  private readonly others = h('span', { class: 'jp-daifu-more', hidden: true });
  private readonly expression = h('input', { class: 'jp-daifu-input', daifu: 'return-value' });
  private readonly repeat: Repeat;
  private told: Name = 'pass';

  constructor(
    private readonly session: Session,
    private readonly moves: Moves
  ) {
    this.repeat = new Repeat();
    this.more = button('More', {
      daifu: 'button-more',
      aria: { expanded: false },
      press: () => this.unfold()
    });
    this.expression.placeholder = 'value, as an expression';
    this.expression.setAttribute('aria-label', 'Value to return, as an expression');
    this.expression.addEventListener('focus', () => this.tell('return'));
    this.expression.addEventListener('keydown', event => event.key === 'Enter' && this.press('return'));
    const first = FIRST.map(name => this.button(name));
    this.others.append(...MORE.map(name => this.button(name)), this.expression);
    const bar = h(
      'div',
      { class: 'jp-daifu-bar', role: 'toolbar', aria: { label: 'What to do about the crash' } },
      ...first,
      this.more,
      this.others,
      this.repeat.node,
      this.button('abort')
    );
    const says = h('div', { class: 'jp-daifu-says' }, ...this.says.values());
    this.node = h('section', { class: 'jp-daifu-endings', aria: { label: 'Decision' } }, bar, says);
    this.tell('pass');
  }

  focus(): void {
    this.buttons.get('pass')?.focus();
  }

  update(): void {
    const isDefault = this.session.surgery.isChanged ? 'surgery' : 'pass';
    for (const [name, element] of this.buttons) {
      const whyNot = this.whyNot(name);
      disable(element, whyNot);
      element.classList.toggle('jp-mod-accept', name === isDefault);
      setText(this.text(name), whyNot ? `${bare(name)} is not possible now: ${whyNot}` : this.will(name));
    }
    this.expression.hidden = this.session.detail?.endings.return?.enabled === false;
  }

  private button(name: Name): HTMLButtonElement {
    const says = h('p', { id: newId() });
    const element = button(LABELS[name], {
      class: `jp-daifu-button jp-mod-${name}`,
      daifu: `button-${name}`,
      aria: { describedby: says.id },
      on: { focus: () => this.tell(name), mouseenter: () => this.tell(name) },
      press: () => this.press(name)
    });
    this.buttons.set(name, element);
    this.says.set(name, says);
    return element;
  }

  private text(name: Name): HTMLElement {
    return this.says.get(name) ?? h('p');
  }

  /** All texts lie on one another, so that the panel keeps its height; this one is seen. */
  private tell(name: Name): void {
    this.told = name;
    for (const [other, text] of this.says) {
      text.classList.toggle('jp-mod-told', other === name);
      text.removeAttribute('data-daifu');
    }
    set(this.text(name), { daifu: 'says' });
  }

  private unfold(): void {
    this.others.hidden = !this.others.hidden;
    setAria(this.more, 'expanded', !this.others.hidden);
    setText(this.more, this.others.hidden ? 'More' : 'Less');
    if (this.others.hidden && MORE.includes(this.told)) {
      this.tell('pass');
    }
  }

  private whyNot(name: Name): string {
    const { asking, detail, whyNot } = this.session;
    const busy = whyNot || (asking.busy ? 'it is being sent' : '');
    if (busy || name === 'action') {
      return busy;
    }
    if (!detail) {
      return 'the frame is being read';
    }
    if (name === 'surgery') {
      return detail.can_edit || this.session.opened ? '' : (detail.why_not ?? 'this code has no source');
    }
    const ending = detail.endings[name];
    return ending?.enabled ? '' : (ending?.why_not ?? 'not at this place');
  }

  private will(name: Name): string {
    if (name === 'action') {
      return SAYS_ACTION;
    }
    const says = this.session.detail?.endings[name]?.says ?? '';
    return name === 'surgery' && !this.session.surgery.isChanged ? EDIT_FIRST : says;
  }

  private press(name: Name): void {
    if (this.whyNot(name)) {
      return;
    }
    if (name === 'action') {
      this.moves.toConsole();
    } else if (name === 'surgery' && this.session.surgery.isChanged) {
      this.moves.operate();
    } else if (name === 'surgery') {
      this.moves.toEditor();
    } else if (name === 'return' && !this.expression.value.trim()) {
      this.expression.focus();
    } else {
      this.decide(name);
    }
  }

  private decide(word: Word): void {
    const { session } = this;
    const repair = word === 'return' ? { word, expression: this.expression.value } : { word };
    const times = word === 'pass' || word === 'skip' ? this.repeat.times : undefined;
    const ask = session.detail?.endings[word]?.ask ?? '';
    session.asking.decide('decide', { level: session.level, repair, times }, bare(word), ask);
  }
}

function bare(name: Name): string {
  return LABELS[name].replace('…', '');
}
