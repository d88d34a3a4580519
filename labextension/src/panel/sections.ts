/** What other features show in the panel: blocks of text, tables, fields and buttons, made by the kernel. */

import { button, disable, h, replace } from './dom';
import { Seen, type Part } from './part';
import type { Block, Section } from './protocol';
import type { Session } from './session';

interface Result {
  text?: string;
}

export class Sections implements Part {
  readonly node = h('div', { class: 'jp-daifu-sections', daifu: 'sections' });
  private readonly seen = new Seen();
  /** What was typed or unfolded outlives a new state. */
  private readonly values = new Map<string, string>();
  private readonly open = new Map<string, boolean>();
  private readonly told = new Map<string, string>();

  constructor(private readonly session: Session) {}

  update(): void {
    const sections = this.session.state?.sections ?? [];
    if (this.seen.isNew(sections, [...this.told])) {
      replace(this.node, ...sections.map(section => this.section(section)));
    }
    for (const element of this.node.querySelectorAll<HTMLElement>('[data-command]')) {
      disable(element, element.dataset['why'] ?? this.session.whyNot);
    }
  }

  private section(section: Section): HTMLElement {
    const told = this.told.get(section.name);
    const details = h(
      'details',
      { class: 'jp-daifu-fold', daifu: 'section', data: { name: section.name } },
      h('summary', { data: { key: `section-${section.name}` } }, section.title),
      h(
        'div',
        { class: 'jp-daifu-foldBody' },
        ...section.blocks.map((block, at) => this.block(section, block, at)),
        told ? h('pre', { class: 'jp-daifu-text' }, told) : null
      )
    );
    details.open = this.open.get(section.name) ?? section.open ?? false;
    details.addEventListener('toggle', () => this.open.set(section.name, details.open));
    return details;
  }

  private block(section: Section, block: Block, at: number): HTMLElement {
    if ('text' in block) {
      return h('p', {}, block.text);
    }
    if ('code' in block) {
      return h('pre', { class: 'jp-daifu-text' }, block.code);
    }
    if ('rows' in block) {
      return table(block.rows, block.head);
    }
    return 'field' in block ? this.field(section, block) : this.button(section, block, at);
  }

  private field(section: Section, block: Extract<Block, { field: string }>): HTMLElement {
    const key = `${section.name}/${block.field}`;
    const input = h('input', { class: 'jp-daifu-input', data: { key } });
    input.value = this.values.get(key) ?? block.value;
    input.addEventListener('input', () => this.values.set(key, input.value));
    return h('label', { class: 'jp-daifu-field' }, block.label, input);
  }

  private button(section: Section, block: Extract<Block, { button: string }>, at: number): HTMLElement {
    const key = `${section.name}/${block.command}/${at}`;
    const press = (): void => void this.session.attempt(() => this.command(section, block.command));
    const element = button(block.button, { data: { key, command: block.command }, title: block.why_not, press });
    if (block.enabled === false) {
      element.dataset['why'] = block.why_not ?? 'not now';
    }
    return element;
  }

  private async command(section: Section, command: string): Promise<void> {
    const fields = section.blocks.filter(block => 'field' in block);
    const values = Object.fromEntries(
      fields.map(({ field, value }) => [field, this.values.get(`${section.name}/${field}`) ?? value])
    );
    const message = { name: section.name, command, values };
    const { text } = await this.session.transport.request<Result>('section', message);
    this.told.set(section.name, text ?? '');
  }
}

function table(rows: unknown[][], head: unknown[] | undefined): HTMLElement {
  const line = (cells: unknown[], tag: 'td' | 'th'): HTMLElement =>
    h('tr', {}, ...cells.map(cell => h(tag, {}, String(cell ?? ''))));
  return h(
    'table',
    { class: 'jp-daifu-table' },
    head ? h('thead', {}, line(head, 'th')) : null,
    h('tbody', {}, ...rows.map(row => line(row, 'td')))
  );
}
