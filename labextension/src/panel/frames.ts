/** The call stack, outermost first: the user's frames, and those of libraries folded. */

import { h, replace } from './dom';
import { rove } from './keys';
import { Seen, type Part } from './part';
import type { FrameItem } from './protocol';
import type { Session } from './session';

const NONE: FrameItem[] = [];

export class Frames implements Part {
  readonly node: HTMLElement;
  private readonly tree = h('div', {
    class: 'jp-daifu-frames',
    daifu: 'frames',
    role: 'tree',
    aria: { label: 'Call stack, outermost first' }
  });
  private readonly legend = h('p', { class: 'jp-daifu-legend', aria: { hidden: true } }, '◆ vaccinated: can resume');
  private readonly unfolded = new Set<string>();
  private readonly seen = new Seen();
  private shown = '';

  constructor(private readonly session: Session) {
    const head = h('div', { class: 'jp-daifu-head' }, h('h3', {}, 'Call stack'));
    this.node = h('section', { class: 'jp-daifu-stack', aria: { label: 'Call stack' } }, head, this.tree, this.legend);
    this.tree.addEventListener('keydown', event => this.key(event));
  }

  update(): void {
    const { state, level, detail } = this.session;
    const frames = state?.frames ?? NONE;
    if (this.seen.isNew(frames, level, detail?.values, [...this.unfolded].join())) {
      replace(this.tree, ...frames.flatMap((item, at) => this.items(item, `frame-${at}`)));
      this.oneTabStop();
    }
    const shown = `${level} ${!!detail}`; // with its values it is higher
    if (this.shown !== shown) {
      this.reveal(shown);
    }
  }

  private items(item: FrameItem, key: string): HTMLElement[] {
    if (item.kind !== 'folded') {
      return [this.frame(item, 1)];
    }
    const inside = item.frames ?? [];
    const open = this.unfolded.has(key) || inside.some(({ level }) => level === this.session.level);
    const count = item.count ?? inside.length;
    const text = `${count} ${count === 1 ? 'frame' : 'frames'} of libraries`;
    const fold = h(
      'div',
      {
        class: 'jp-daifu-frame jp-mod-folded',
        daifu: 'frames-folded',
        role: 'treeitem',
        tabIndex: -1,
        aria: { level: 1, expanded: open, selected: false },
        data: { key },
        on: { click: () => this.unfold(key, !this.unfolded.has(key)) }
      },
      h('span', { class: 'jp-daifu-twist' }, open ? '▾' : '▸'),
      text
    );
    return open ? [fold, ...inside.map(frame => this.frame(frame, 2))] : [fold];
  }

  private frame(item: FrameItem, depth: number): HTMLElement {
    const selected = item.level === this.session.level;
    const mark = h('span', { class: 'jp-daifu-mark', aria: { hidden: true } }, item.crashed ? '✕' : item.vaccinated ? '◆' : '');
    const state = [item.vaccinated && 'vaccinated', item.crashed && 'the crash', item.note].filter(Boolean).join(', ');
    const title = [`${item.function} in ${item.place}, line ${item.line}`, state].filter(Boolean).join(': ');
    const name = h('span', { class: 'jp-daifu-function' }, item.function);
    const place = h('span', { class: 'jp-daifu-where' }, h('bdi', {}, `${item.place}:${item.line}`));
    const heard = h('span', { class: 'jp-daifu-heard' }, state);
    return h(
      'div',
      {
        class: `jp-daifu-frame jp-mod-${item.kind}${item.crashed ? ' jp-mod-crashed' : ''}`,
        daifu: 'frame',
        role: 'treeitem',
        tabIndex: -1,
        title,
        aria: { level: depth, selected },
        data: { key: `level-${item.level}`, level: item.level },
        on: { click: () => this.session.select(item.level) }
      },
      h('div', { class: 'jp-daifu-frameRow' }, mark, name, heard, place),
      item.source ? h('code', { class: 'jp-daifu-frameSource' }, item.source.trim()) : null,
      selected ? this.values() : null
    );
  }

  /** The values of the names in the statement that the selected frame executes. */
  private values(): HTMLElement | null {
    const values = this.session.detail?.values ?? [];
    const lines = values.map(([name, text]) => h('code', { title: `${name} = ${text}` }, `${name} = ${text}`));
    return lines.length ? h('div', { class: 'jp-daifu-frameValues', daifu: 'frame-values' }, ...lines) : null;
  }

  private unfold(key: string, open: boolean): void {
    if (open) {
      this.unfolded.add(key);
    } else {
      this.unfolded.delete(key);
    }
    this.update();
  }

  private get treeItems(): HTMLElement[] {
    return [...this.tree.querySelectorAll<HTMLElement>('[role=treeitem]')];
  }

  private oneTabStop(): void {
    const items = this.treeItems;
    const stop =
      items.find(item => item === document.activeElement) ??
      items.find(item => item.getAttribute('aria-selected') === 'true') ??
      items[0];
    if (stop) {
      stop.tabIndex = 0;
    }
  }

  private reveal(shown: string): void {
    const item = this.tree.querySelector<HTMLElement>('[aria-selected=true]');
    if (item && this.tree.clientHeight > 0) {
      this.shown = shown;
      this.tree.scrollTop = Math.max(0, item.offsetTop - this.tree.clientHeight + item.offsetHeight + 8);
    }
  }

  private key(event: KeyboardEvent): void {
    const item = document.activeElement;
    if (rove(event, this.treeItems) || !(item instanceof HTMLElement)) {
      return;
    }
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      item.click();
    } else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      const { key } = item.dataset;
      if (item.hasAttribute('aria-expanded') && key) {
        this.unfold(key, event.key === 'ArrowRight');
      }
    }
  }
}
