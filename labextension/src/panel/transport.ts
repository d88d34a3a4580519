/** Requests and replies over a connection that may be gone for hours. */

import { KernelLink, type Link, type Model } from './model';
import type { Incoming, Reply, State } from './protocol';
import { Signal } from './signal';

/** Readings can be asked again; an action or a decision is sent once. */
const ONCE = new Set(['action', 'decide', 'save', 'versions', 'rerun', 'section']);
const PING_EVERY = 5_000;
const PATIENCE = 15_000;
const OVERTAKEN = 2_000;
/** A kernel on this machine answers without a network, so a browser that is offline says little by itself. */
const UNHEARD = 3_000;
const NETWORK = ['online', 'offline'];

interface Request {
  message: { id: string; kind: string };
  first: number;
  sent: number;
  resolve(reply: never): void;
  reject(error: Error): void;
}

/** The kernel did not do what was asked; the message is for the user. */
export class Refused extends Error {}

export class Transport {
  readonly states = new Signal<State>();
  readonly changed = new Signal();
  /** The kernel's version of the state, whenever it answers a ping. */
  readonly versions = new Signal<number>();
  /** The kernel answers again after a silence: what it knows may be new. */
  readonly back = new Signal();
  /** While the crashed thread works it reads no messages, so silence says nothing. */
  working = false;
  silent = false;
  /** No pings where nothing more is expected: each shows the kernel as idle for a moment, also while it runs. */
  isWatching = true;

  private lastPing = Date.now();
  private told = 'connected false';
  private readonly requests = new Map<string, Request>();
  private readonly kernel: KernelLink;
  private readonly timer: number;
  private readonly receive = (message: Incoming): void => this.handle(message);

  constructor(private readonly model: Model) {
    this.kernel = new KernelLink(model);
    this.kernel.changed.connect(() => this.linkChanged());
    NETWORK.forEach(event => window.addEventListener(event, this.probe));
    model.on('msg:custom', this.receive);
    this.timer = window.setInterval(() => this.tick(), 1_000);
  }

  get link(): Link {
    const isUnheard = !navigator.onLine && this.waitsFor(UNHEARD);
    return this.kernel.now === 'connected' && isUnheard ? 'offline' : this.kernel.now;
  }

  /** Resolves with the reply; rejects with `Refused`, whose message is for the user. */
  request<T = unknown>(kind: string, fields: object = {}): Promise<T & Reply> {
    return new Promise((resolve, reject) => {
      const message = { id: uuid(), kind, ...fields };
      const now = Date.now();
      this.requests.set(message.id, { message, first: now, sent: now, resolve, reject });
      this.send(message);
    });
  }

  isAsking(...kinds: string[]): boolean {
    return [...this.requests.values()].some(({ message }) => kinds.includes(message.kind));
  }

  /** No more is heard: the crash is over, or the page leaves it. */
  dispose(): void {
    window.clearInterval(this.timer);
    NETWORK.forEach(event => window.removeEventListener(event, this.probe));
    this.model.off('msg:custom', this.receive);
    this.kernel.dispose();
    this.giveUp('The panel is closed.');
    this.states.clear();
    this.versions.clear();
    this.back.clear();
    this.changed.clear();
  }

  private send(message: object): void {
    try {
      this.model.send(message);
    } catch {
      this.kernel.end(); // only a disposed connection throws; an interrupted one keeps the message
    }
  }

  private handle(message: Incoming): void {
    const wasSilent = this.silent;
    this.silent = false;
    if (message.kind === 'state') {
      this.states.emit(message.state);
    } else if (message.kind === 'reply') {
      this.settle(message);
    }
    if (wasSilent) {
      this.askAgain(Date.now());
      this.back.emit();
    }
    this.tell();
  }

  private settle(reply: Reply): void {
    const request = this.requests.get(reply.id);
    if (!request) {
      return; // another page's
    }
    this.requests.delete(reply.id);
    if (!reply.ok) {
      request.reject(new Refused(reply.error ?? 'The kernel could not do this.'));
      return;
    }
    if (request.message.kind === 'ping') {
      this.askAgain(request.sent - OVERTAKEN);
    }
    request.resolve(reply as never);
  }

  /** What was sent before this time has been overtaken: it was lost, or its reply was. */
  private askAgain(before: number): void {
    if (this.working) {
      return;
    }
    for (const request of [...this.requests.values()].filter(one => one.sent < before)) {
      if (ONCE.has(request.message.kind)) {
        this.requests.delete(request.message.id);
        request.reject(new Refused('No answer came. Look whether it was done, and try again.'));
      } else {
        request.sent = Date.now();
        this.send(request.message);
      }
    }
  }

  private tick(): void {
    if (this.kernel.now !== 'connected') {
      return;
    }
    const now = Date.now();
    const { ping } = this;
    if (ping && now - ping.sent > PATIENCE) {
      ping.sent = now;
      this.send(ping.message);
    } else if (!ping && this.isWatching && now - this.lastPing >= PING_EVERY) {
      this.probe();
    }
    this.silent ||= !this.working && this.waitsFor(PATIENCE);
    this.tell();
  }

  private get ping(): Request | undefined {
    return [...this.requests.values()].find(({ message }) => message.kind === 'ping');
  }

  private waitsFor(time: number): boolean {
    return [...this.requests.values()].some(({ first }) => Date.now() - first > time);
  }

  private tell(): void {
    const now = `${this.link} ${this.silent}`;
    if (now !== this.told) {
      this.told = now;
      this.changed.emit();
    }
  }

  private readonly probe = (): void => {
    if (this.ping) {
      return;
    }
    this.lastPing = Date.now();
    this.request<{ version: number }>('ping').then(
      ({ version }) => this.versions.emit(version),
      () => undefined
    );
  };

  private linkChanged(): void {
    if (this.link === 'gone') {
      this.giveUp('The kernel was restarted.');
    } else if (this.link === 'connected') {
      this.back.emit();
    }
    this.tell();
  }

  private giveUp(reason: string): void {
    const requests = [...this.requests.values()];
    this.requests.clear();
    requests.forEach(({ reject }) => reject(new Refused(reason)));
  }
}

/** `crypto.randomUUID` exists on https and localhost only. */
function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
}
