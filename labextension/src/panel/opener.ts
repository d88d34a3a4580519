/** Opens any function of the user by its name. */

import { button, h, replace, setAria, setText } from './dom';
import { rove } from './keys';
import type { Part } from './part';
import type { Session } from './session';

const QUIET = 200;
const MOST = 100;

export class Opener implements Part {
  readonly node: HTMLElement;
  readonly toggle: HTMLButtonElement;
  private readonly input: HTMLInputElement;
  private readonly list = h('div', { class: 'jp-daifu-names', role: 'listbox', aria: { label: 'Functions' } });
  private readonly none = h('p', { class: 'jp-daifu-muted' });
  private timer = 0;

  constructor(private readonly session: Session) {
    this.toggle = button('Open function…', {
      class: 'jp-daifu-button jp-mod-small',
      daifu: 'function-open',
      aria: { expanded: false },
      press: () => this.show(this.node.hidden)
    });
    this.input = h('input', {
      class: 'jp-daifu-input',
      daifu: 'function-name',
      aria: { label: 'Name of a function' },
      on: { input: () => this.later() }
    });
    this.input.placeholder = 'name of a function';
    this.node = h('div', { class: 'jp-daifu-opener', hidden: true }, this.input, this.list, this.none);
    this.node.addEventListener('keydown', event => this.key(event));
  }

  update(): void {
    this.toggle.hidden = this.session.isOver;
  }

  dispose(): void {
    window.clearTimeout(this.timer);
  }

  private show(open: boolean): void {
    this.node.hidden = !open;
    setAria(this.toggle, 'expanded', open);
    if (open) {
      this.input.focus();
      void this.ask();
    } else {
      this.toggle.focus();
    }
  }

  private later(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.ask(), QUIET);
  }

  private async ask(): Promise<void> {
    const filter = this.input.value;
    await this.session.attempt(async () => {
      const { names } = await this.session.transport.request<{ names: string[] }>('functions', { filter });
      if (filter === this.input.value) {
        replace(this.list, ...names.slice(0, MOST).map((name, at) => this.option(name, at === 0)));
        setText(this.none, names.length ? '' : 'No function of yours has this in its name.');
      }
    });
  }

  private option(name: string, first: boolean): HTMLElement {
    return h(
      'div',
      {
        class: 'jp-daifu-option',
        role: 'option',
        daifu: 'function-option',
        tabIndex: first ? 0 : -1,
        aria: { selected: false },
        on: { click: () => this.open(name) }
      },
      name
    );
  }

  private open(name: string): void {
    this.node.hidden = true;
    setAria(this.toggle, 'expanded', false);
    void this.session.open(name).then(() => this.toggle.focus());
  }

  private key(event: KeyboardEvent): void {
    const options = [...this.list.querySelectorAll<HTMLElement>('[role=option]')];
    if (event.key === 'Escape') {
      this.show(false);
    } else if (event.key === 'Enter') {
      const chosen = options.find(option => option === document.activeElement) ?? options[0];
      chosen?.click();
    } else if (event.target !== this.input || event.key === 'ArrowDown') {
      rove(event, options);
    }
  }
}
