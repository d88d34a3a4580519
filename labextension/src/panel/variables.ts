/** The variables of the selected frame. Data is read on request only. */

import { button, h, replace, setText } from './dom';
import { rove } from './keys';
import { Seen, type Part } from './part';
import type { Variable } from './protocol';
import type { Session } from './session';
import type { More, Row } from './tree';

const QUIET = 200;

export class Variables implements Part {
  readonly node: HTMLElement;
  private readonly rows = h('div', { role: 'rowgroup' });
  private readonly count = h('span', { class: 'jp-daifu-muted' });
  private readonly filter: HTMLInputElement;
  private readonly grid: HTMLElement;
  private readonly seen = new Seen();
  private timer = 0;

  constructor(private readonly session: Session) {
    this.filter = h('input', {
      class: 'jp-daifu-input',
      daifu: 'variables-filter',
      aria: { label: 'Filter variables' },
      on: { input: () => this.later() }
    });
    this.filter.placeholder = 'filter';
    const title = h('h3', {}, 'Variables');
    const head = h('div', { class: 'jp-daifu-head' }, title, this.count, this.filter);
    const columns = ['Name', 'Type', 'Value'].map(name => h('span', { role: 'columnheader' }, name));
    const header = h('div', { role: 'rowgroup' }, h('div', { class: 'jp-daifu-columns', role: 'row' }, ...columns));
    const aria = { label: 'Variables' };
    this.grid = h('div', { class: 'jp-daifu-variables', daifu: 'variables', role: 'treegrid', aria }, header, this.rows);
    this.grid.addEventListener('keydown', event => this.key(event));
    this.node = h('section', { class: 'jp-daifu-values', aria }, head, this.grid);
  }

  update(): void {
    const { tree, detail } = this.session;
    if (detail && this.seen.isNew(this.session.level, tree.revision)) {
      const rows = tree.rows();
      setText(this.count, tree.problem || (tree.total > 100 ? tree.total.toLocaleString('en') : ''));
      const empty = tree.filter ? 'No variable has this in its name.' : 'No variables.';
      const shown = rows.flatMap(row => ('variable' in row ? this.row(row) : [this.more(row)]));
      replace(this.rows, ...(rows.length ? shown : [line(h('span', { class: 'jp-daifu-muted' }, empty))]));
      this.oneTabStop();
    }
  }

  dispose(): void {
    window.clearTimeout(this.timer);
  }

  private row({ key, depth, variable, open, statistics }: Row): HTMLElement[] {
    const { name, type, text, more, stats } = variable;
    const twist = h('span', { class: 'jp-daifu-twist' }, more ? (open ? '▾' : '▸') : '');
    const first = h('span', { class: 'jp-daifu-cell jp-mod-name', role: 'gridcell' }, twist, name);
    first.style.paddingInlineStart = `${depth * 14}px`;
    const value = h('span', { class: 'jp-daifu-cell jp-mod-value', role: 'gridcell' }, h('span', { title: text }, text));
    if (stats && !statistics) {
      value.append(this.statistics(variable, key));
    }
    const row = h(
      'div',
      {
        class: 'jp-daifu-variable',
        daifu: 'variable',
        role: 'row',
        tabIndex: -1,
        aria: { level: depth + 1, expanded: more ? open : null },
        data: { key },
        on: { click: event => void (more && !(event.target instanceof HTMLButtonElement) && this.toggle(variable)) }
      },
      first,
      h('span', { class: 'jp-daifu-cell jp-mod-type', role: 'gridcell', title: type }, type),
      value
    );
    const told = statistics && line(h('span', { class: 'jp-daifu-statistics', daifu: 'statistics-text' }, statistics));
    return told ? [row, told] : [row];
  }

  private statistics(variable: Variable, key: string): HTMLElement {
    const element = button('statistics', {
      class: 'jp-daifu-button jp-mod-link',
      daifu: 'statistics',
      title: 'Reads the data: least, greatest, mean, NaN and infinite values',
      data: { key: `statistics-${key}` },
      press: () => void this.session.tree.askStatistics(variable)
    });
    element.tabIndex = -1;
    return element;
  }

  private more(more: More): HTMLElement {
    const text = `Show more (${more.shown.toLocaleString('en')} of ${more.total.toLocaleString('en')})`;
    const element = button(text, {
      class: 'jp-daifu-button jp-mod-link',
      daifu: 'variables-more',
      data: { key: `more-${JSON.stringify(more.parent)}` },
      press: () => void this.session.tree.more(more)
    });
    return line(element);
  }

  private toggle(variable: Variable): void {
    void this.session.tree.toggle(variable);
  }

  private later(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.session.tree.search(this.filter.value), QUIET);
  }

  private get stops(): HTMLElement[] {
    return [...this.rows.querySelectorAll<HTMLElement>('[role=row][tabindex]')];
  }

  private oneTabStop(): void {
    const stops = this.stops;
    const stop = stops.find(one => one.contains(document.activeElement)) ?? stops[0];
    if (stop) {
      stop.tabIndex = 0;
    }
  }

  /** Right unfolds, then goes to the row's button; Left folds. */
  private key(event: KeyboardEvent): void {
    const at = document.activeElement?.closest<HTMLElement>('[role=row]');
    if (!at || (document.activeElement === at && rove(event, this.stops))) {
      return;
    }
    const open = at.getAttribute('aria-expanded');
    const inner = at.querySelector('button');
    if (event.key === 'ArrowLeft' && document.activeElement !== at) {
      at.focus();
    } else if ((event.key === 'ArrowRight' && open === 'false') || (event.key === 'ArrowLeft' && open === 'true')) {
      at.click();
    } else if (event.key === 'ArrowRight') {
      inner?.focus();
    } else if (event.key === 'Enter' && document.activeElement === at) {
      (open === null ? inner : at)?.click();
    }
  }
}

function line(content: HTMLElement): HTMLElement {
  return h('div', { class: 'jp-daifu-wide', role: 'row' }, h('span', { role: 'gridcell' }, content));
}
