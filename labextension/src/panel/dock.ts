/** The panel at the bottom of the page, while the crash waits and no cell of the page shows it. */

import { button, h, set, setAria, setText } from './dom';
import { keepKeys } from './keys';
import type { Session } from './session';
import { Disposables } from './signal';
import { View } from './view';

const LOOK_EVERY = 500;
/** The view of a new crash, or of a cell that is run again, comes a moment later. */
const PATIENCE = 1_000;

const NEWEST = 'daifu-ipy:dock';

export class Dock {
  private readonly disposables = new Disposables();
  /** Since when no cell shows it. */
  private missing: number | null = Date.now();
  private node: HTMLElement | null = null;
  private view: View | null = null;
  private wasInPage = false;

  constructor(private readonly session: Session) {
    const timer = window.setInterval(() => this.look(), LOOK_EVERY);
    const retire = (event: Event): void => {
      if (event instanceof CustomEvent && event.detail === session.crashId) {
        this.dispose(); // the notebook was opened again: its new model's dock takes over
      }
    };
    window.dispatchEvent(new CustomEvent(NEWEST, { detail: session.crashId }));
    window.addEventListener(NEWEST, retire);
    this.disposables.add(
      () => window.clearInterval(timer),
      () => window.removeEventListener(NEWEST, retire),
      session.changed.connect(() => this.look())
    );
  }

  dispose(): void {
    this.disposables.dispose();
    this.close();
  }

  /** Looks for views in the page, not in a list: another notebook's model may show the same crash. */
  look(): void {
    const roots = document.querySelectorAll<HTMLElement>('.jp-daifu-panel');
    const inPage = [...roots].some(
      root => root.dataset['crash'] === this.session.crashId && !root.closest('.jp-daifu-dock')
    );
    this.wasInPage ||= inPage;
    this.missing = inPage ? null : (this.missing ?? Date.now());
    if (inPage) {
      this.close();
    } else if (!this.node && this.isNeeded) {
      this.open();
    }
  }

  /** After the end only where the run's output has no other place in this page. */
  private get isNeeded(): boolean {
    const { state, isOver, phase } = this.session;
    if (!state || phase === 'gone' || Date.now() - (this.missing ?? Infinity) < PATIENCE) {
      return false;
    }
    const isLost = !this.wasInPage && state.output.lost && state.output.items.length > 0;
    return !isOver || (isLost && !wasDismissed(this.session.crashId));
  }

  private open(): void {
    this.view = new View(this.session);
    const title = h('span', { class: 'jp-daifu-dockTitle' });
    const toggle = button('Fold', {
      class: 'jp-daifu-button jp-mod-small',
      daifu: 'dock-toggle',
      aria: { expanded: true },
      press: () => this.fold(toggle)
    });
    const dismiss = button('Close', {
      class: 'jp-daifu-button jp-mod-small',
      daifu: 'dock-close',
      press: () => {
        dismissed(this.session.crashId);
        this.close();
      }
    });
    const bar = h('div', { class: 'jp-daifu-dockBar' }, title, toggle, dismiss);
    const node = h('aside', { class: 'jp-daifu-dock', daifu: 'dock', aria: { label: 'Crash that waits' } }, bar);
    node.append(this.view.node);
    const follow = (): void => {
      const { state, isOver } = this.session;
      const what = state ? `${state.crash.type} at line ${state.crash.line}` : 'A crash';
      setText(title, isOver ? what : `${what} waits for a repair; its cell is not in this page`);
      dismiss.hidden = !this.session.isOver;
    };
    follow();
    this.disposables.add(keepKeys(node), this.session.changed.connect(follow));
    host().append(node);
    this.node = node;
    this.view.announce();
  }

  private fold(toggle: HTMLElement): void {
    const folded = this.node?.classList.toggle('jp-mod-folded') ?? false;
    setAria(toggle, 'expanded', !folded);
    setText(toggle, folded ? 'Unfold' : 'Fold');
  }

  private close(): void {
    this.view?.dispose();
    this.node?.remove();
    this.view = null;
    this.node = null;
  }
}

/** Several crashes stand on one another. */
function host(): HTMLElement {
  const known = document.querySelector<HTMLElement>('.jp-daifu-docks');
  const all = known ?? h('div', { class: 'jp-daifu-docks' });
  set(all, { role: 'region', aria: { label: 'Crashes that wait' } });
  if (!known) {
    document.body.append(all);
  }
  return all;
}

const keyOf = (crashId: string): string => `daifu-ipy:dismissed:${crashId}`;

function dismissed(crashId: string): void {
  try {
    sessionStorage.setItem(keyOf(crashId), 'yes');
  } catch {
    // a page that may store nothing shows it once more after a reload
  }
}

function wasDismissed(crashId: string): boolean {
  try {
    return sessionStorage.getItem(keyOf(crashId)) !== null;
  } catch {
    return false;
  }
}
