/** Telling others that something changed, and letting go of it again. */

export type Dispose = () => void;

export class Signal<T = void> {
  private readonly listeners = new Set<(value: T) => void>();

  connect(listener: (value: T) => void): Dispose {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(value: T): void {
    for (const listener of [...this.listeners]) {
      listener(value);
    }
  }

  clear(): void {
    this.listeners.clear();
  }
}

/** What is to be undone when a view, or the page's session, goes. */
export class Disposables {
  private readonly all: Dispose[] = [];

  add(...disposes: Dispose[]): void {
    this.all.push(...disposes);
  }

  dispose(): void {
    for (const dispose of this.all.splice(0).reverse()) {
      dispose();
    }
  }
}
