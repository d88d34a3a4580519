/** The widget model, as far as the panel needs it, and the kernel behind it where the front end shows it. */

import { Signal, type Dispose } from './signal';

export interface Model {
  get(name: string): unknown;
  send(content: object): void;
  on(event: string, callback: (...args: never[]) => void): void;
  off(event: string, callback?: (...args: never[]) => void): void;
  widget_manager?: unknown;
}

/** offline: messages wait until the connection is back. gone: the process that crashed is no more. */
export type Link = 'connected' | 'offline' | 'gone';

interface LuminoSignal {
  connect(slot: () => void): unknown;
  disconnect(slot: () => void): unknown;
}

interface Kernel {
  status?: string;
  connectionStatus?: string;
  isDisposed?: boolean;
  statusChanged?: LuminoSignal;
  connectionStatusChanged?: LuminoSignal;
}

const ENDED = new Set(['restarting', 'autorestarting', 'dead', 'terminating']);

/** Watches the connection to the kernel, where the front end shows it. */
export class KernelLink {
  readonly changed = new Signal();
  private ended = false;
  private before: Link = 'connected';
  private readonly kernel: Kernel | undefined;
  private readonly disposes: Dispose[] = [];

  constructor(model: Model) {
    this.kernel = kernelOf(model);
    const look = (): void => this.look();
    for (const signal of [this.kernel?.statusChanged, this.kernel?.connectionStatusChanged]) {
      signal?.connect(look);
      this.disposes.push(() => signal?.disconnect(look));
    }
    // The widget manager gives its models up when the kernel is restarted, and only then.
    const end = (): void => this.end();
    model.on('comm_live_update', end);
    this.disposes.push(() => model.off('comm_live_update', end));
    this.look();
  }

  get now(): Link {
    if (this.ended) {
      return 'gone';
    }
    return (this.kernel?.connectionStatus ?? 'connected') === 'connected' ? 'connected' : 'offline';
  }

  end(): void {
    if (!this.ended) {
      this.ended = true;
      this.changed.emit();
    }
  }

  dispose(): void {
    this.disposes.splice(0).forEach(dispose => dispose());
    this.changed.clear();
  }

  /** The kernel's status changes with every message, also the page's own: only another link is news. */
  private look(): void {
    if (ENDED.has(this.kernel?.status ?? '')) {
      this.end();
    } else if (this.now !== this.before) {
      this.before = this.now;
      this.changed.emit();
    }
  }
}

function kernelOf(model: Model): Kernel | undefined {
  const manager = model.widget_manager;
  const kernel = typeof manager === 'object' && manager !== null && 'kernel' in manager ? manager.kernel : undefined;
  return typeof kernel === 'object' && kernel !== null ? kernel : undefined;
}
