/** The blocked cell was run again. That decides nothing: here is asked what is meant. */

import { button, h, replace, setText } from './dom';
import { Seen, type Part } from './part';
import type { Choice, Rerun as State } from './protocol';
import { diffOf } from './review';
import type { Session } from './session';

export class Rerun implements Part {
  readonly node = h('section', { class: 'jp-daifu-rerun', daifu: 'rerun', hidden: true, aria: { label: 'Run again' } });
  private readonly seen = new Seen();
  private restartAt: Choice['restart_at'] | null = null;

  constructor(private readonly session: Session) {}

  focus(): void {
    this.node.querySelector('button')?.focus();
  }

  update(): void {
    const rerun = this.session.state?.rerun ?? null;
    const { whyNot } = this.session;
    this.node.hidden = !rerun || this.session.isOver;
    if (rerun && this.seen.isNew(rerun, whyNot)) {
      this.restartAt = rerun.preview?.choices[0]?.restart_at ?? null;
      replace(this.node, ...this.content(rerun, whyNot));
    }
  }

  private content(rerun: State, whyNot: string): (HTMLElement | null)[] {
    const { changed, diff, hours, refusal } = rerun;
    const says = changed
      ? 'This cell was run again with another text. The crashed run still waits here.'
      : 'This cell was run again. The crashed run still waits here.';
    const refused = refusal ? h('p', { class: 'jp-daifu-refusal', daifu: 'refusal' }, refusal.text) : null;
    return [
      h('p', { class: 'jp-daifu-strong' }, says),
      changed && diff.length ? diffOf(diff) : null,
      refused,
      this.goesOn(rerun),
      this.bar(rerun, whyNot),
      h('p', { class: 'jp-daifu-muted' }, `Restarting from scratch gives up the crashed run, and with it ${hours || 'all its work'}.`)
    ];
  }

  private goesOn({ preview, changed }: State): HTMLElement | null {
    if (!preview || !changed) {
      return null;
    }
    const says = (choice: Choice | undefined): string =>
      [choice?.reason, choice?.repeats?.length ? `runs again: ${choice.repeats.join(', ')}` : ''].filter(Boolean).join('; ');
    const select = h('select', { class: 'jp-daifu-input', aria: { label: 'Goes on at' } });
    const reason = h('span', { class: 'jp-daifu-muted' }, says(preview.choices[0]));
    select.append(
      ...preview.choices.map(({ line, statement }, at) => {
        const option = h('option', {}, `line ${line}: ${statement}`);
        option.value = String(at);
        return option;
      })
    );
    select.addEventListener('change', () => {
      const choice = preview.choices[Number(select.value)];
      this.restartAt = choice?.restart_at ?? null;
      setText(reason, says(choice));
    });
    return h('p', { class: 'jp-daifu-goesOn' }, h('label', {}, 'The run goes on at ', select), reason);
  }

  private bar({ msg_id, changed, refusal }: State, whyNot: string): HTMLElement {
    const answer = (name: string, label: string, kind: string, why: string): HTMLElement =>
      button(label, {
        class: `jp-daifu-button ${kind}`,
        daifu: `rerun-${name}`,
        whyNot: why,
        title: why,
        data: { key: `rerun-${name}` },
        press: () => {
          const restart_at = name === 'apply' ? this.restartAt : undefined;
          this.session.asking.decide('rerun', { msg_id, answer: name, restart_at }, label);
        }
      });
    const same = changed ? '' : 'the text is the same';
    return h(
      'div',
      { class: 'jp-daifu-bar' },
      answer('apply', 'Go on with the new text', 'jp-mod-accept', whyNot || same || (refusal?.text ?? '')),
      answer('restart', 'Restart from scratch', 'jp-mod-warn', whyNot),
      answer('forget', 'Forget this run', '', whyNot)
    );
  }
}
