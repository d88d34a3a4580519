/** The messages between the page and the kernel. All text in them is plain text. */

export type Phase = 'waiting' | 'working' | 'recovered' | 'aborted' | 'ended';
export type Word = 'pass' | 'surgery' | 'skip' | 'continue' | 'break' | 'return' | 'abort';
export type Step = string | number;
export type MimeBundle = Record<string, unknown>;

export interface Crash {
  type: string;
  message: string;
  unit: string;
  place: string;
  line: number;
  statement: string;
  kind: string;
  thread?: string | null;
  since: number;
  in_a_row?: number;
  remarks?: string[];
}

export interface Loop {
  line: number;
  header: string;
  at: [string, string][];
}

export interface FrameItem {
  level: number;
  kind: 'user' | 'library' | 'folded';
  count?: number;
  frames?: FrameItem[];
  function: string;
  place: string;
  line: number;
  source: string;
  vaccinated: boolean;
  crashed: boolean;
  note?: string;
}

export interface Refusal {
  text: string;
  line?: number | null;
  key?: string | null;
}

export interface ConsoleEntry {
  level: number | null;
  code: string;
  stdout?: string;
  value?: string | null;
  error?: string | null;
  note?: string | null;
  rich?: MimeBundle[];
}

export interface Choice {
  restart_at: string | number;
  line: number;
  statement: string;
  kind?: string;
  reason?: string;
  repeats?: string[];
}

export interface Preview {
  line: number;
  statement: string;
  kind?: string;
  reason?: string;
  replaced?: string[];
  choices: Choice[];
}

export interface Rerun {
  msg_id: string;
  changed: boolean;
  diff: string[];
  hours: string;
  preview?: Preview | null;
  refusal?: Refusal | null;
}

export type Block =
  | { text: string }
  | { code: string }
  | { rows: unknown[][]; head?: unknown[] }
  | { field: string; label: string; value: string }
  | { button: string; command: string; enabled?: boolean; why_not?: string };

export interface Section {
  name: string;
  title: string;
  open?: boolean;
  blocks: Block[];
}

export interface OutputItem {
  stream?: 'stdout' | 'stderr';
  text?: string;
  data?: MimeBundle;
  error?: string;
}

export interface State {
  version: number;
  crash_id: string;
  phase: Phase;
  doing: string;
  crash: Crash;
  progress: Loop[];
  frames: FrameItem[];
  selected: number;
  refusal: Refusal | null;
  drafts: Record<string, string>;
  console: ConsoleEntry[];
  queued: number;
  others: { crash_id: string; text: string }[];
  rerun: Rerun | null;
  sections: Section[];
  end: { text: string; outcome?: string; seconds?: number } | null;
  output: { lost: boolean; items: OutputItem[] };
}

export interface Variable {
  name: string;
  type: string;
  text: string;
  path: Step[];
  more?: boolean;
  stats?: boolean;
}

export interface VariablePage {
  variables: Variable[];
  total: number;
  start?: number;
}

export interface Ending {
  enabled: boolean;
  says: string;
  why_not?: string;
  ask?: string;
}

export interface FrameDetail extends VariablePage {
  level: number;
  function: string;
  place: string;
  line: number;
  vaccinated: boolean;
  key: string;
  text: string;
  first_line: number;
  mark?: { line: number; start?: number | null; end?: number | null } | null;
  values?: [string, string][];
  can_edit: boolean;
  why_not?: string;
  endings: Partial<Record<Word, Ending>>;
}

/** A function opened by name, as the editor shows it. */
export interface FunctionText {
  name: string;
  text: string;
  first_line: number;
  key: string;
}

export interface Version {
  number: number;
  unit: string;
  filename?: string;
  time?: number | string;
  current?: boolean;
  reverted?: boolean;
}

export interface Completion {
  from: number;
  names: { name: string; kind?: string }[];
}

export interface PreviewReply {
  preview?: Preview;
  diff?: string[];
  refusal?: Refusal;
}

export interface DecideReply {
  ask?: string;
}

/** What every reply has; a kind's own result stands beside it. */
export interface Reply {
  kind: 'reply';
  id: string;
  ok: boolean;
  error?: string;
}

export type Incoming = Reply | { kind: 'state'; state: State };
