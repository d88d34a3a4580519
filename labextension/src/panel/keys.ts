/** Keys typed in the panel are the panel's: one that reached the notebook could run the cell and destroy the panel. */

import type { Dispose } from './signal';

/** JupyterLab's shortcuts stay away from a focused element with this attribute; on its ancestors alone it does not help. */
export const SUPPRESS = 'data-lm-suppress-shortcuts';

const EVENTS = ['keydown', 'keypress', 'keyup'] as const;

export function keepKeys(root: HTMLElement): Dispose {
  const keep = (event: KeyboardEvent): void => {
    if (isSave(event)) {
      letThrough(event, root);
    } else {
      event.stopPropagation();
      if (isHabit(event)) {
        event.preventDefault();
      }
    }
  };
  const mark = ({ target }: FocusEvent): void => {
    if (target instanceof Element && !target.hasAttribute(SUPPRESS)) {
      target.setAttribute(SUPPRESS, 'true');
    }
  };
  root.setAttribute(SUPPRESS, 'true');
  root.addEventListener('focusin', mark);
  EVENTS.forEach(name => root.addEventListener(name, keep));
  return () => {
    root.removeEventListener('focusin', mark);
    EVENTS.forEach(name => root.removeEventListener(name, keep));
  };
}

/** Who presses Shift-Enter in a notebook wants to run a cell, not to press the button that has the focus. */
const isHabit = (event: KeyboardEvent): boolean =>
  event.key === 'Enter' && (event.shiftKey || event.altKey || isCommand(event)) && event.target instanceof HTMLButtonElement;

export const isCommand = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey;

function isSave(event: KeyboardEvent): boolean {
  return isCommand(event) && !event.altKey && event.key.toLowerCase() === 's';
}

/** JupyterLab asks the focused element and those around it; the attribute is gone for this one event. */
function letThrough(event: KeyboardEvent, root: HTMLElement): void {
  const hidden: Element[] = [];
  for (let at = event.target instanceof Element ? event.target : null; at && at !== root.parentElement; at = at.parentElement) {
    if (at.hasAttribute(SUPPRESS)) {
      at.removeAttribute(SUPPRESS);
      hidden.push(at);
    }
  }
  window.setTimeout(() => hidden.forEach(element => element.setAttribute(SUPPRESS, 'true')));
}

/** One tab stop for a list; the arrow keys move in it. `items` are its visible items, in order. */
export function rove(event: KeyboardEvent, items: HTMLElement[]): boolean {
  const at = items.findIndex(item => item === document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  const item = to === undefined ? undefined : items[to];
  if (item) {
    items.forEach(one => (one.tabIndex = one === item ? 0 : -1));
    item.focus();
  }
  if (to !== undefined) {
    event.preventDefault(); // the page does not scroll
  }
  return to !== undefined;
}
