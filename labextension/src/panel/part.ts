/** A part of the panel: an element that follows the session. */

export interface Part {
  readonly node: HTMLElement;
  /** Called after every change of the session; cheap where nothing of the part's own changed. */
  update(): void;
  dispose?(): void;
}

/** Tells whether what a part shows has changed since it was asked last. */
export class Seen {
  private shown: unknown[] = [];
  private last: string | undefined;

  isNew(...shown: unknown[]): boolean {
    if (this.last !== undefined && shown.every((one, at) => one === this.shown[at])) {
      return false; // most changes are of something else: pictures in the console are not read for each key typed
    }
    this.shown = shown;
    const now = JSON.stringify(shown);
    const isNew = now !== this.last;
    this.last = now;
    return isNew;
  }
}
