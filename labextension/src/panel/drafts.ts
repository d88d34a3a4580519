/** Texts that are being edited. The kernel keeps a copy of each, so that a reload of the page loses nothing typed. */

import { Signal } from './signal';
import type { Transport } from './transport';

const QUIET = 400;

interface Draft {
  text: string;
  /** What the kernel is known to have. */
  kept: string;
  timer?: number;
  sending: boolean;
}

export interface Edit {
  key: string;
  text: string;
  /** Who edited: an editor does not take its own text back. */
  by: object;
}

export class Drafts {
  readonly edited = new Signal<Edit>();
  private readonly drafts = new Map<string, Draft>();

  constructor(private readonly transport: Transport) {}

  get(key: string): string | undefined {
    return this.drafts.get(key)?.text;
  }

  edit(key: string, text: string, by: object): void {
    const draft = this.drafts.get(key) ?? { text, kept: '', sending: false };
    draft.text = text;
    this.drafts.set(key, draft);
    window.clearTimeout(draft.timer);
    draft.timer = window.setTimeout(() => this.send(key), QUIET);
    this.edited.emit({ key, text, by });
  }

  /** Take what other pages typed; what is typed here and not kept yet stays. */
  take(kept: Record<string, string>): void {
    for (const [key, text] of Object.entries(kept)) {
      const draft = this.drafts.get(key);
      if (!draft || (!this.isUnsent(draft) && draft.text === draft.kept && draft.kept !== text)) {
        this.drafts.set(key, { text, kept: text, sending: false });
        this.edited.emit({ key, text, by: this });
      }
    }
  }

  /** Send at once what waits to be sent, also after the connection was gone. */
  flush(): void {
    for (const [key, draft] of this.drafts) {
      if (draft.text !== draft.kept) {
        draft.sending = false;
        this.send(key);
      }
    }
  }

  dispose(): void {
    this.drafts.forEach(({ timer }) => window.clearTimeout(timer));
    this.edited.clear();
  }

  private isUnsent(draft: Draft): boolean {
    return draft.sending || draft.timer !== undefined;
  }

  /** One at a time, so that an older text never arrives after a newer one. */
  private send(key: string): void {
    const draft = this.drafts.get(key);
    if (!draft || draft.sending) {
      return;
    }
    window.clearTimeout(draft.timer);
    draft.timer = undefined;
    draft.sending = true;
    const { text } = draft;
    this.transport.request('draft', { key, text }).then(
      () => {
        draft.kept = text;
        draft.sending = false;
        if (draft.text !== text && draft.timer === undefined) {
          this.send(key);
        }
      },
      () => (draft.sending = false) // it stays here, and is sent with the next change
    );
  }
}
