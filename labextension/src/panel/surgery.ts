/** New text for a function: first its difference and the restart locations to choose from, then it is applied. */

import type { Choice, FrameDetail, Preview, PreviewReply, Refusal } from './protocol';
import type { Session } from './session';

/** The text that the editor shows. */
export interface Text {
  key: string;
  original: string;
  firstLine: number;
  name: string;
}

export interface Review {
  key: string;
  source: string;
  preview: Preview;
  diff: string[];
  choice: Choice['restart_at'] | null;
}

export class Surgery {
  review: Review | null = null;
  /** Why the text in the editor was not taken. */
  refusal: Refusal | null = null;
  private answered: Refusal | null = null;

  constructor(private readonly session: Session) {}

  get text(): Text | null {
    const { opened, detail } = this.session;
    if (opened) {
      return { key: opened.key, original: opened.text, firstLine: opened.first_line, name: opened.name };
    }
    return detail ? textOf(detail) : null;
  }

  /** What stands in the editor. */
  get source(): string {
    const { text } = this;
    return text ? (this.session.drafts.get(text.key) ?? text.original) : '';
  }

  get isChanged(): boolean {
    return this.text !== null && this.source !== this.text.original;
  }

  /** The reason to show with this text: the preview's, else the kernel's after a repair was tried. */
  refusalOf(key: string): Refusal | null {
    const told = this.session.state?.refusal ?? null;
    const standing = told && this.isStanding(told) ? told : null;
    return [this.refusal, standing].find(one => one && (one.key ?? key) === key) ?? null;
  }

  /** A later preview that was taken answers the kernel's refusal. */
  isStanding(refusal: Refusal): boolean {
    return JSON.stringify(refusal) !== JSON.stringify(this.answered);
  }

  /** The kernel has taken a new repair: an equal refusal of it is a new one. */
  tried(): void {
    this.answered = null;
  }

  async preview(): Promise<void> {
    const { text, source, session } = this;
    if (!text) {
      return;
    }
    await session.attempt(async () => {
      const fields = { level: session.level, source, key: text.key };
      const reply = await session.transport.request<PreviewReply>('preview', fields);
      this.answered = session.state?.refusal ?? null;
      this.refusal = reply.refusal ? { ...reply.refusal, key: text.key } : null;
      this.review = reply.preview
        ? { key: text.key, source, preview: reply.preview, diff: reply.diff ?? [], choice: byDefault(reply.preview) }
        : null;
      if (this.refusal) {
        session.said.emit({ text: `Refused: ${this.refusal.text}`, urgent: true });
      }
    });
  }

  choose(restartAt: Choice['restart_at']): void {
    if (this.review) {
      this.review.choice = restartAt;
      this.session.changed.emit();
    }
  }

  /** A review of a text that has changed since is no review. */
  edited(): void {
    if (this.review && this.review.source !== this.source) {
      this.review = null;
    }
    this.session.changed.emit();
  }

  back(): void {
    this.review = null;
    this.session.changed.emit();
  }

  /** What is sent to apply the text under review. */
  get decision(): { source: string; key: string; restart_at: Choice['restart_at'] | null } | null {
    const { review } = this;
    return review && { source: review.source, key: review.key, restart_at: review.choice };
  }
}

function byDefault({ choices }: Preview): Choice['restart_at'] | null {
  return choices[0]?.restart_at ?? null; // the kernel names the default first
}

function textOf({ key, text, first_line, function: name }: FrameDetail): Text {
  return { key, original: text, firstLine: first_line, name };
}
