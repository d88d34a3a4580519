/** One crash in one page: what is known of it, what is selected and typed. Its views and the dock share it. */

import { Asking } from './asking';
import { Drafts } from './drafts';
import type { Link, Model } from './model';
import type { FrameDetail, FrameItem, FunctionText, State } from './protocol';
import { Signal } from './signal';
import { Surgery } from './surgery';
import { Transport } from './transport';
import { reason, VariableTree } from './tree';

/** What was typed a moment ago goes out before the page does. */
const LEAVING = ['beforeunload', 'pagehide'];
const READING = ['statistics', 'save'];

export class Session {
  readonly changed = new Signal();
  /** Said to screen readers. */
  readonly said = new Signal<{ text: string; urgent: boolean }>();
  readonly transport: Transport;
  readonly drafts: Drafts;
  readonly surgery: Surgery;
  readonly asking: Asking;
  readonly crashId: string;

  state: State | null = null;
  /** The frame that variables, editor, action and buttons act on. */
  level = 0;
  /** Set when the editor shows another function than the selected frame's. */
  opened: FunctionText | null = null;
  problem = '';

  private readonly details = new Map<number, FrameDetail>();
  private readonly trees = new Map<number, VariableTree>();
  private seen = '';
  private readonly flush = (): void => this.drafts.flush();

  constructor(model: Model) {
    this.crashId = String(model.get('crash_id') ?? '');
    this.transport = new Transport(model);
    this.drafts = new Drafts(this.transport);
    this.surgery = new Surgery(this);
    this.asking = new Asking(this);
    this.transport.states.connect(state => this.take(state));
    this.transport.changed.connect(() => this.changed.emit());
    this.transport.back.connect(() => this.catchUp());
    this.transport.versions.connect(version => version === this.state?.version || void this.ask());
    for (const event of LEAVING) {
      window.addEventListener(event, this.flush);
    }
    void this.ask();
  }

  get link(): Link {
    return this.transport.link;
  }

  /** What stands on the panel's root, also for style. */
  get phase(): string {
    if (this.state?.end) {
      return this.state.phase;
    }
    return this.link === 'gone' ? 'gone' : (this.state?.phase ?? 'loading');
  }

  get isOver(): boolean {
    return !['waiting', 'working', 'loading'].includes(this.phase);
  }

  /** Whether something can be decided now; else why not. */
  get whyNot(): string {
    if (this.phase === 'working') {
      return this.state?.doing ?? 'the kernel works';
    }
    return this.link === 'offline' ? 'there is no connection to the kernel' : '';
  }

  get detail(): FrameDetail | undefined {
    return this.details.get(this.level);
  }

  get tree(): VariableTree {
    return this.treeOf(this.level);
  }

  frame(level: number | null): FrameItem | undefined {
    const all = this.state?.frames.flatMap(item => item.frames ?? [item]) ?? [];
    return all.find(item => item.level === level && item.kind !== 'folded');
  }

  select(level: number): void {
    this.level = level;
    this.opened = null;
    this.surgery.back();
    this.changed.emit();
    void this.load(level);
  }

  async open(name: string): Promise<void> {
    await this.attempt(async () => {
      this.opened = await this.transport.request<FunctionText>('function', { name });
      this.surgery.back();
    });
  }

  close(): void {
    this.opened = null;
    this.surgery.back();
    this.changed.emit();
  }

  /** Do it; a failure is shown in the panel. */
  async attempt(work: () => Promise<unknown>): Promise<void> {
    this.problem = '';
    try {
      await work();
    } catch (error) {
      this.problem = reason(error);
      this.said.emit({ text: this.problem, urgent: true });
    }
    this.changed.emit();
  }

  dispose(): void {
    for (const event of LEAVING) {
      window.removeEventListener(event, this.flush);
    }
    this.transport.dispose();
    this.drafts.dispose();
    this.details.clear();
    this.trees.clear();
    this.changed.clear();
    this.said.clear();
  }

  private async ask(): Promise<void> {
    await this.transport.request<{ state: State }>('state').then(
      ({ state }) => this.take(state),
      () => undefined // a state is asked for again with the next ping
    );
  }

  private catchUp(): void {
    void this.ask();
    this.drafts.flush();
    if (!this.detail) {
      void this.load(this.level);
    }
  }

  private take(state: State): void {
    const before = this.state;
    if (before && state.version < before.version) {
      return; // overtaken by a newer one
    }
    this.state = state;
    this.transport.working = state.phase === 'working';
    this.drafts.take(state.drafts);
    if (!state.refusal) {
      this.surgery.tried();
    }
    if (!before) {
      this.level = state.selected;
    }
    this.reload(state);
    this.followOutput(before, state);
    this.announce(before, state);
    this.changed.emit();
  }

  /** Values are asked for anew when something ran; what this page has asked to be read changes none. */
  private reload(state: State): void {
    const mark = JSON.stringify([state.phase, state.console.length, state.console.at(-1), state.refusal]);
    if (mark !== this.seen && state.phase === 'waiting' && !this.transport.isAsking(...READING)) {
      void this.load(this.level, true);
    }
    this.seen = mark;
  }

  /** Of a page that lost the cell's output area, by a reload, the kernel keeps what the run prints. */
  private followOutput(before: State | null, { end, output }: State): void {
    if (end && !before?.end) {
      void this.ask();
      window.setTimeout(() => void this.ask(), 1_000);
    }
    this.transport.isWatching = !end || output.lost;
  }

  private async load(level: number, anew = false): Promise<void> {
    if (anew) {
      for (const other of [...this.details.keys()].filter(key => key !== level)) {
        this.details.delete(other);
      }
    } else if (this.details.has(level)) {
      return;
    }
    try {
      const { frame } = await this.transport.request<{ frame: FrameDetail }>('frame', { level });
      this.details.set(level, frame);
      this.treeOf(level).take(frame);
    } catch (error) {
      this.problem = reason(error);
    }
    this.changed.emit();
  }

  private treeOf(level: number): VariableTree {
    let tree = this.trees.get(level);
    if (!tree) {
      tree = new VariableTree(this.transport, level);
      tree.changed.connect(() => this.changed.emit());
      this.trees.set(level, tree);
    }
    return tree;
  }

  private announce(before: State | null, { crash, phase, refusal, doing, end }: State): void {
    const say = (text: string, urgent: boolean): void => this.said.emit({ text, urgent });
    if (!before && phase === 'waiting') {
      say(`${crash.type}: ${crash.message}, at line ${crash.line}. The run waits for a repair.`, true);
    } else if (end && !before?.end) {
      say(end.text, false);
    } else if (phase === 'working' && before?.phase !== 'working') {
      say(doing, false);
    }
    if (refusal && refusal.text !== before?.refusal?.text) {
      say(`Refused: ${refusal.text}`, true);
    }
  }
}
