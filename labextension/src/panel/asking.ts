/** What is sent once and may be asked back: "was refused before: really?". */

import type { DecideReply } from './protocol';
import type { Session } from './session';

export interface Question {
  /** What it is about: it is asked where that was pressed. */
  kind: 'decide' | 'rerun';
  text: string;
  yes: string;
  go(): void;
}

export class Asking {
  question: Question | null = null;
  /** Sent, and not answered yet. */
  busy = false;

  constructor(private readonly session: Session) {}

  /** Ask first where there is something to ask, then send; the kernel may ask as well. */
  decide(kind: Question['kind'], fields: object, yes: string, first = ''): void {
    if (first) {
      this.ask(kind, first, yes, fields);
    } else {
      void this.send(kind, fields, yes);
    }
  }

  back(): void {
    this.question = null;
    this.session.changed.emit();
  }

  private async send(kind: Question['kind'], fields: object, yes: string): Promise<void> {
    if (this.busy) {
      return; // a second click is not a second answer
    }
    this.busy = true;
    this.question = null;
    await this.session.attempt(async () => {
      const { ask } = await this.session.transport.request<DecideReply>(kind, fields);
      if (ask) {
        this.ask(kind, ask, yes, fields);
      } else {
        this.session.surgery.back();
      }
    });
    this.busy = false;
    this.session.changed.emit();
  }

  private ask(kind: Question['kind'], text: string, yes: string, fields: object): void {
    this.question = { kind, text, yes, go: () => void this.send(kind, { ...fields, sure: true }, yes) };
    this.session.said.emit({ text, urgent: true });
    this.session.changed.emit();
  }
}
