/** When it is over: one line, and what the run printed since, where its cell can't show it. */

import { h, replace, setText } from './dom';
import { Seen, type Part } from './part';
import type { OutputItem } from './protocol';
import { rich } from './rich';
import type { Session } from './session';

const GONE = 'The kernel was restarted: this crash is gone.';

export class Ended implements Part {
  readonly node = h('div', { class: 'jp-daifu-ended', hidden: true });
  private readonly text = h('p', { class: 'jp-daifu-end', daifu: 'end' });
  private readonly output = h('div', { class: 'jp-daifu-output', daifu: 'output', hidden: true });
  private readonly seen = new Seen();

  constructor(private readonly session: Session) {
    this.node.append(this.text, this.output);
  }

  update(): void {
    const { state, phase, isOver } = this.session;
    this.node.hidden = !isOver;
    if (!isOver) {
      return;
    }
    const crash = state ? `${state.crash.type} at line ${state.crash.line}` : '';
    setText(this.text, state?.end?.text ?? (phase === 'gone' ? [crash, GONE].filter(Boolean).join('. ') : crash));
    const items = state?.output?.items ?? [];
    if (this.seen.isNew(items)) {
      this.output.hidden = items.length === 0;
      const says = h('p', { class: 'jp-daifu-muted' }, 'Printed since this page was opened:');
      replace(this.output, says, ...joined(items).map(item => this.item(item)));
    }
  }

  private item({ stream, text, data, error }: OutputItem): HTMLElement | null {
    if (data) {
      return rich(data, this.node);
    }
    const kind = error ? 'error' : (stream ?? 'stdout');
    return h('pre', { class: `jp-daifu-text jp-mod-${kind}` }, error ?? text ?? '');
  }
}

/** A stream arrives in pieces, also of lines. */
function joined(items: OutputItem[]): OutputItem[] {
  const all: OutputItem[] = [];
  for (const item of items) {
    const last = all.at(-1);
    if (last?.stream && last.stream === item.stream) {
      all[all.length - 1] = { stream: last.stream, text: `${last.text ?? ''}${item.text ?? ''}` };
    } else {
      all.push(item);
    }
  }
  return all;
}
