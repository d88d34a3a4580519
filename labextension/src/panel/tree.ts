/** The variables of one frame, as far as they were asked for: pages of a hundred, what is unfolded, statistics. */

import type { FrameDetail, Step, Variable, VariablePage } from './protocol';
import { Signal } from './signal';
import type { Transport } from './transport';

export interface Row {
  key: string;
  depth: number;
  variable: Variable;
  open: boolean;
  statistics?: string;
}

/** A place in the table where more can be asked for. */
export interface More {
  parent: Step[] | null;
  depth: number;
  shown: number;
  total: number;
}

const TOP = '';
const keyOf = (path: Step[] | null): string => (path ? JSON.stringify(path) : TOP);

export class VariableTree {
  readonly changed = new Signal();
  filter = '';
  problem = '';
  /** Counts the changes. */
  revision = 0;
  private readonly pages = new Map<string, VariablePage>();
  private readonly open = new Map<string, Step[]>();
  private readonly statistics = new Map<string, string>();
  private asked = 0;

  constructor(
    private readonly transport: Transport,
    private readonly level: number
  ) {}

  /** The first page comes with the frame. What was unfolded is asked for anew: its values may have changed. */
  take(detail: FrameDetail): void {
    this.statistics.clear();
    if (this.filter || (this.pages.get(TOP)?.variables.length ?? 0) > detail.variables.length) {
      void this.load(null, 0);
    } else {
      this.pages.set(TOP, { variables: detail.variables, total: detail.total });
    }
    for (const path of this.open.values()) {
      void this.load(path, 0);
    }
    this.tell();
  }

  get total(): number {
    return this.pages.get(TOP)?.total ?? 0;
  }

  rows(): (Row | More)[] {
    return this.below(null, 0);
  }

  async search(filter: string): Promise<void> {
    this.filter = filter;
    await this.load(null, 0);
  }

  async toggle({ path }: Variable): Promise<void> {
    const key = keyOf(path);
    if (this.open.delete(key)) {
      this.tell();
    } else {
      this.open.set(key, path);
      await this.load(path, 0);
    }
  }

  more({ parent, shown }: More): Promise<void> {
    return this.load(parent, shown);
  }

  async askStatistics({ path }: Variable): Promise<void> {
    const key = keyOf(path);
    this.statistics.set(key, 'reading the data');
    this.tell();
    const answer = this.transport.request<{ text: string }>('statistics', { level: this.level, path });
    this.statistics.set(key, await answer.then(({ text }) => text, reason));
    this.tell();
  }

  private tell(): void {
    this.revision++;
    this.changed.emit();
  }

  private async load(parent: Step[] | null, start: number): Promise<void> {
    const key = keyOf(parent);
    const place = parent ? { path: parent } : this.filter ? { filter: this.filter } : {};
    const turn = ++this.asked;
    const { filter } = this;
    try {
      const kind = parent ? 'expand' : 'variables';
      const page = await this.transport.request<VariablePage>(kind, { level: this.level, start, ...place });
      if (parent || filter === this.filter) {
        const before = start ? (this.pages.get(key)?.variables ?? []).slice(0, start) : [];
        this.pages.set(key, { variables: [...before, ...page.variables], total: page.total });
      }
      this.problem = '';
    } catch (error) {
      this.problem = turn === this.asked ? reason(error) : this.problem;
    }
    this.tell();
  }

  private below(parent: Step[] | null, depth: number): (Row | More)[] {
    const page = this.pages.get(keyOf(parent));
    if (!page) {
      return [];
    }
    const rows: (Row | More)[] = page.variables.flatMap(variable => {
      const key = keyOf(variable.path);
      const open = this.open.has(key);
      const row = { key, depth, variable, open, statistics: this.statistics.get(key) };
      return open ? [row, ...this.below(variable.path, depth + 1)] : [row];
    });
    const shown = page.variables.length;
    return shown < page.total ? [...rows, { parent, depth, shown, total: page.total }] : rows;
  }
}

/** Why a request failed, for the user. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
