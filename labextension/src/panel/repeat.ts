/** "The same here, at most N times." */

import { h } from './dom';

export class Repeat {
  readonly node: HTMLElement;
  private readonly check = h('input', { on: { change: () => this.follow() } });
  private readonly number = h('input', { class: 'jp-daifu-input jp-mod-number', aria: { label: 'How many times at most' } });

  constructor() {
    this.check.type = 'checkbox';
    this.number.type = 'number';
    this.number.min = '1';
    this.number.value = '10';
    this.number.disabled = true;
    const label = h('label', {}, this.check, 'the same here, at most');
    const title = 'Pass and Skip then answer further crashes of this kind at this statement as well';
    this.node = h('span', { class: 'jp-daifu-same', daifu: 'same', title }, label, this.number, 'times');
  }

  /** Not given: this once. */
  get times(): number | undefined {
    const times = Math.floor(Number(this.number.value));
    return this.check.checked && times >= 1 ? times : undefined;
  }

  private follow(): void {
    this.number.disabled = !this.check.checked;
    if (this.check.checked) {
      this.number.select();
    }
  }
}
