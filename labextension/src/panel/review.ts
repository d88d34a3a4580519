/** A surgery before it is applied: what changes, where the run can go on, and what runs again there. */

import { button, disable, h, newId, replace, setText, type Child } from './dom';
import { isCommand } from './keys';
import { Seen, type Part } from './part';
import type { Choice } from './protocol';
import type { Session } from './session';

export class Review implements Part {
  readonly node: HTMLElement;
  private readonly body = h('div');
  private readonly why = h('span', { class: 'jp-daifu-muted' });
  private readonly apply: HTMLButtonElement;
  private readonly seen = new Seen();

  constructor(
    private readonly session: Session,
    private readonly operate: () => void,
    private readonly backToEditor: () => void
  ) {
    this.apply = button('Apply', {
      class: 'jp-daifu-button jp-mod-accept',
      daifu: 'apply',
      title: 'Ctrl-Enter',
      press: () => this.operate()
    });
    const back = button('Back', { daifu: 'back', title: 'Escape', press: () => this.back() });
    const bar = h('div', { class: 'jp-daifu-bar' }, this.apply, back, this.why);
    const aria = { label: 'What the surgery changes' };
    this.node = h('section', { class: 'jp-daifu-review', daifu: 'review', hidden: true, aria }, this.body, bar);
    this.node.addEventListener('keydown', event => this.key(event));
  }

  update(): void {
    const { review } = this.session.surgery;
    const appears = this.node.hidden && !!review;
    this.node.hidden = !review;
    if (!review) {
      return;
    }
    const { whyNot, asking } = this.session;
    disable(this.apply, whyNot || (asking.busy ? 'it is being sent' : ''));
    setText(this.why, whyNot);
    if (this.seen.isNew(review)) {
      const { diff, preview, choice } = review;
      const lines = diff.length ? diffOf(diff) : h('p', {}, 'Nothing is changed: the code is taken as it is.');
      replace(this.body, lines, this.choices(preview.choices, choice), replaced(preview.replaced));
    }
    if (appears && this.node.closest('[data-daifu=root]')?.contains(document.activeElement)) {
      this.node.scrollIntoView({ block: 'nearest' });
    }
  }

  private choices(choices: Choice[], chosen: Choice['restart_at'] | null): HTMLElement {
    const name = newId();
    const options = choices.map((choice, at) => this.choice(choice, name, at, choice.restart_at === chosen));
    return h('fieldset', { class: 'jp-daifu-choices' }, h('legend', {}, 'The run goes on at'), ...options);
  }

  private choice(choice: Choice, name: string, at: number, checked: boolean): HTMLElement {
    const input = h('input', {
      on: { change: () => this.session.surgery.choose(choice.restart_at) },
      data: { key: `choice-${at}` }
    });
    input.type = 'radio';
    input.name = name;
    input.checked = checked;
    const again = choice.repeats?.length ? `runs again: ${choice.repeats.join(', ')}` : 'nothing runs twice';
    const says = [choice.reason, again].filter(Boolean).join('; ');
    return h(
      'label',
      { class: 'jp-daifu-choice', daifu: 'choice' },
      input,
      h('span', {}, `line ${choice.line} `, h('code', {}, choice.statement)),
      h('span', { class: 'jp-daifu-muted' }, says)
    );
  }

  private back(): void {
    this.session.surgery.back();
    this.backToEditor();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === 'Escape') {
      this.back();
    } else if (event.key === 'Enter' && isCommand(event)) {
      this.operate();
    }
  }
}

/** Unified diff lines, by their first character. */
export function diffOf(lines: string[]): HTMLElement {
  const classes: Record<string, string> = { '+': 'jp-mod-added', '-': 'jp-mod-removed', '@': 'jp-mod-place' };
  const classOf = (line: string): string => (/^(---|\+\+\+)( |$)/.test(line) ? 'jp-mod-place' : (classes[line[0] ?? ''] ?? ''));
  const shown = lines
    .flatMap(line => line.replace(/\n$/, '').split('\n'))
    .map(line => h('div', { class: classOf(line) }, line || ' '));
  const aria = { label: 'Difference' };
  return h('pre', { class: 'jp-daifu-diff', daifu: 'diff', tabIndex: 0, role: 'group', aria }, ...shown);
}

function replaced(names: string[] | undefined): Child {
  return names?.length ? h('p', { class: 'jp-daifu-muted' }, `Replaced for every caller: ${names.join(', ')}`) : null;
}
