/** Elements made from text. Nothing here, or anywhere in the panel, reads text as HTML. */

export type Child = Node | string | null | undefined | false;

export interface Props {
  class?: string;
  /** The stable name of an important element, for tests and style. */
  daifu?: string;
  title?: string;
  role?: string;
  id?: string;
  hidden?: boolean;
  tabIndex?: number;
  aria?: Record<string, string | number | boolean | null | undefined>;
  data?: Record<string, string | number>;
  on?: { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
}

let ids = 0;

/** An id for aria references, unlike any other in the page. */
export function newId(): string {
  return `jp-daifu-${Date.now().toString(36)}-${++ids}`;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, props);
  if (tag === 'button') {
    element.setAttribute('type', 'button');
  }
  append(element, children);
  return element;
}

export function set(element: HTMLElement, props: Props): void {
  if (props.class !== undefined) {
    element.className = props.class;
  }
  for (const name of ['title', 'role', 'id'] as const) {
    setAttribute(element, name, props[name]);
  }
  setAttribute(element, 'data-daifu', props.daifu);
  if (props.hidden !== undefined) {
    element.hidden = props.hidden;
  }
  if (props.tabIndex !== undefined) {
    element.tabIndex = props.tabIndex;
  }
  for (const [name, value] of Object.entries(props.aria ?? {})) {
    setAria(element, name, value);
  }
  for (const [name, value] of Object.entries(props.data ?? {})) {
    element.dataset[name] = String(value);
  }
  for (const [event, listener] of Object.entries(props.on ?? {})) {
    element.addEventListener(event, listener as EventListener);
  }
}

/** null takes it away. */
export function setAria(element: Element, name: string, value: string | number | boolean | null | undefined): void {
  if (value === null || value === undefined) {
    element.removeAttribute(`aria-${name}`);
  } else {
    element.setAttribute(`aria-${name}`, String(value));
  }
}

export function append(element: Element, children: Child[]): void {
  element.append(...children.filter(child => child instanceof Node || (typeof child === 'string' && child !== '')) as (Node | string)[]);
}

/** Other children instead; the focus goes to the child with the same `data-key`, where the focused one had one. */
export function replace(element: Element, ...children: Child[]): void {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const key = focused instanceof HTMLElement ? focused.dataset['key'] : undefined;
  element.replaceChildren();
  append(element, children);
  if (key !== undefined) {
    const same = [...element.querySelectorAll<HTMLElement>('[data-key]')].find(one => one.dataset['key'] === key);
    same?.focus({ preventScroll: true });
  }
}

/** Text that changes rarely is not written again: a selection in it stays. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

export interface ButtonProps extends Props {
  press(): void;
  /** Why it can't be pressed now. It stays focusable, so that the reason can be read. */
  whyNot?: string;
}

export function button(label: string, { press, whyNot = '', ...props }: ButtonProps): HTMLButtonElement {
  const element = h('button', { class: 'jp-daifu-button', ...props }, label);
  element.addEventListener('click', () => {
    if (element.getAttribute('aria-disabled') !== 'true') {
      press();
    }
  });
  disable(element, whyNot);
  return element;
}

export function disable(element: HTMLElement, whyNot: string): void {
  setAria(element, 'disabled', whyNot ? true : null);
}

function setAttribute(element: Element, name: string, value: string | undefined): void {
  if (value !== undefined) {
    element.setAttribute(name, value);
  }
}
