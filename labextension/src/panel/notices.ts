/** What is to be known above all else: no connection, a failure, a refusal without a line, a question. */

import type { Question } from './asking';
import { button, h, replace } from './dom';
import { Seen, type Part } from './part';
import type { Session } from './session';

export class Notices implements Part {
  readonly node = h('div', { class: 'jp-daifu-notices' });
  private readonly seen = new Seen();

  constructor(private readonly session: Session) {}

  update(): void {
    const { link, problem, isOver, transport } = this.session;
    const refusal = this.refusal();
    if (!this.seen.isNew(link, problem, isOver, transport.silent, refusal)) {
      return;
    }
    const notices: HTMLElement[] = [];
    if (!isOver && link === 'offline') {
      notices.push(notice('link', 'No connection to the kernel. The crash waits there; nothing is lost.'));
    } else if (!isOver && transport.silent) {
      notices.push(notice('link', 'The kernel does not answer. Asking again…'));
    }
    if (problem) {
      notices.push(this.closable(problem));
    }
    if (refusal) {
      notices.push(h('div', { class: 'jp-daifu-refusal', daifu: 'refusal' }, refusal));
    }
    replace(this.node, ...notices);
  }

  /** A refusal with a line stands at that line, as long as the editor shows its text. */
  private refusal(): string | null {
    const { surgery } = this.session;
    const key = surgery.text?.key;
    const ours = key === undefined ? null : surgery.refusalOf(key);
    if (ours) {
      return ours.line == null ? ours.text : null;
    }
    const { state } = this.session;
    return state?.refusal && surgery.isStanding(state.refusal) ? state.refusal.text : null;
  }

  private closable(text: string): HTMLElement {
    const close = button('×', {
      class: 'jp-daifu-button jp-mod-link',
      aria: { label: 'Close' },
      press: () => {
        this.session.problem = '';
        this.session.changed.emit();
      }
    });
    const node = notice('problem', text);
    node.append(close);
    return node;
  }
}

/** A question, asked beside the buttons that it is about. */
export class QuestionBar implements Part {
  readonly node = h('div', { class: 'jp-daifu-question', role: 'group', hidden: true });
  private readonly seen = new Seen();

  constructor(
    private readonly session: Session,
    private readonly kind: Question['kind'],
    private readonly leave: () => void
  ) {
    this.node.addEventListener('keydown', event => event.key === 'Escape' && this.back());
  }

  update(): void {
    const asked = this.session.asking.question;
    const question = asked?.kind === this.kind ? asked : null;
    if (!this.seen.isNew(question?.text, question?.yes)) {
      return;
    }
    this.node.hidden = !question;
    this.node.toggleAttribute('data-daifu', !!question);
    if (question) {
      this.node.dataset['daifu'] = 'ask';
      const id = { class: 'jp-daifu-button jp-mod-warn', daifu: 'ask-yes' };
      const yes = button(question.yes, { ...id, press: () => question.go() });
      const no = button('Back', { daifu: 'ask-no', press: () => this.back() });
      replace(this.node, h('p', {}, question.text), h('div', { class: 'jp-daifu-bar' }, yes, no));
      this.node.setAttribute('aria-label', question.text);
      if (this.node.closest('[data-daifu=root]')?.contains(document.activeElement)) {
        no.focus(); // what can't be taken back is not one key away
      }
    }
  }

  private back(): void {
    this.session.asking.back();
    this.leave();
  }
}

function notice(name: string, text: string): HTMLElement {
  return h('div', { class: `jp-daifu-notice jp-mod-${name}`, daifu: `notice-${name}` }, h('span', {}, text));
}
