/** Saving before a risky repair, and the versions that surgeries made. Read when unfolded. */

import { button, h, replace } from './dom';
import type { Part } from './part';
import type { Version } from './protocol';
import { diffOf } from './review';
import type { Session } from './session';

export class Versions implements Part {
  readonly node = h('details', { class: 'jp-daifu-fold', daifu: 'versions' });
  private readonly list = h('div', { class: 'jp-daifu-foldBody' });
  private known = -1;

  constructor(private readonly session: Session) {
    this.node.append(h('summary', {}, 'Versions of the code'), this.list);
    this.node.addEventListener('toggle', () => this.node.open && void session.attempt(() => this.ask()));
  }

  update(): void {
    const version = this.session.state?.version ?? 0;
    if (this.node.open && version !== this.known && !this.session.whyNot) {
      this.known = version;
      void this.ask().catch(() => undefined); // the next state asks again
    }
  }

  private async ask(): Promise<void> {
    const { versions } = await this.session.transport.request<{ versions: Version[] }>('versions');
    const empty = h('p', { class: 'jp-daifu-muted' }, 'No surgery has replaced code yet.');
    replace(this.list, ...(versions.length ? versions.map(version => this.version(version)) : [empty]));
  }

  private version({ number, unit, time, current, reverted }: Version): HTMLElement {
    const below = h('div');
    const when = typeof time === 'number' ? new Date(time * 1000).toLocaleTimeString() : (time ?? '');
    const small = 'jp-daifu-button jp-mod-small';
    const difference = button('Difference', {
      class: small,
      daifu: 'version-diff',
      data: { key: `diff-${number}` },
      press: () => void this.session.attempt(() => this.diff(number, below))
    });
    const revert = button('Take back', {
      class: small,
      daifu: 'version-revert',
      title: 'Later calls run the older code',
      data: { key: `revert-${number}` },
      whyNot: reverted ? 'it was taken back' : '',
      press: () => void this.session.attempt(() => this.revert(number))
    });
    const text = `${number} `;
    const name = h('span', { class: 'jp-daifu-name' }, unit);
    const now = h('span', { class: 'jp-daifu-muted' }, [when, reverted ? 'taken back' : current ? 'in use' : ''].filter(Boolean).join(', '));
    return h('div', { class: 'jp-daifu-version', daifu: 'version' }, h('div', { class: 'jp-daifu-bar' }, text, name, now, difference, revert), below);
  }

  private async diff(number: number, below: HTMLElement): Promise<void> {
    const { diff } = await this.session.transport.request<{ diff: string[] }>('versions', { diff: { number } });
    replace(below, below.hasChildNodes() ? null : diffOf(diff));
  }

  private async revert(number: number): Promise<void> {
    const { text } = await this.session.transport.request<{ text?: string }>('versions', { revert: { number } });
    await this.ask();
    this.list.append(h('pre', { class: 'jp-daifu-text' }, text ?? ''));
  }
}

/** Saves what can be saved, and says what was. */
export class Save implements Part {
  readonly node = h('div', { class: 'jp-daifu-save' });
  private readonly report = h('pre', { class: 'jp-daifu-text', daifu: 'save-report', hidden: true });
  private readonly button: HTMLButtonElement;

  constructor(private readonly session: Session) {
    this.button = button('Save first', {
      class: 'jp-daifu-button jp-mod-small',
      daifu: 'save',
      title: 'Write models, optimizers and counters to a file, before a repair that might go wrong',
      press: () => void session.attempt(() => this.save())
    });
    this.node.append(this.button, this.report);
  }

  update(): void {
    this.button.setAttribute('aria-disabled', String(this.session.whyNot !== ''));
  }

  private async save(): Promise<void> {
    const { text } = await this.session.transport.request<{ text: string }>('save');
    replace(this.report, text);
    this.report.hidden = false;
    this.session.said.emit({ text, urgent: false });
  }
}
