/** The anywidget module: one session for each model in the page, and a view of it for each place that shows it. */

import { Dock } from './dock';
import type { Model } from './model';
import { Session } from './session';
import { View } from './view';

interface Page {
  session: Session;
  dock: Dock;
  dispose(): void;
}

/** anywidget hands out a new proxy of the model for every view, so pages are kept by the crash. */
const pages = new Map<string, Page>();

function pageOf(model: Model): Page {
  const id = String(model.get('crash_id') ?? '');
  const known = pages.get(id);
  if (known) {
    return known;
  }
  const session = new Session(model);
  const dock = new Dock(session);
  const page = {
    session,
    dock,
    dispose: () => {
      pages.delete(id);
      dock.dispose();
      session.dispose();
    }
  };
  pages.set(id, page);
  return page;
}

export default {
  initialize({ model }: { model: Model }): () => void {
    const page = pageOf(model);
    return () => page.dispose();
  },

  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const { session, dock } = pageOf(model);
    const view = new View(session);
    el.classList.add('jp-daifu-host');
    el.append(view.node);
    view.announce();
    dock.look();
    return () => view.dispose();
  }
};
