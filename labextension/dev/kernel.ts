/** A model with a kernel behind it that answers at once, or not at all. */

import type { Model } from '../src/panel/model';
import type { Choice, State } from '../src/panel/protocol';
import { detail, variables } from './crash';

type Message = Record<string, unknown> & { id: string; kind: string };
type Listener = (...args: never[]) => void;

const DIFF = `--- train, now
+++ train, new
@@ -7,5 +7,5 @@
         for batch, (inputs, targets) in enumerate(loader):
             outputs = model(inputs)  # logits
-            loss = nn.functional.cross_entropy(outputs, targets)
+            loss = nn.functional.cross_entropy(outputs[:len(targets)], targets)
             optimizer.zero_grad()`.split('\n');

export const choices: Choice[] = [
  {
    restart_at: 'edit',
    line: 20,
    statement: 'loss = nn.functional.cross_entropy(outputs[:len(targets)], targets)',
    reason: 'the first changed statement, which is the one that crashed',
    repeats: []
  },
  {
    restart_at: 19,
    line: 19,
    statement: 'outputs = model(inputs)',
    reason: 'the interrupted iteration from its start',
    repeats: ['model(inputs)']
  }
];

export class FakeKernel implements Model {
  silent = false;
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(public state: State) {}

  get(): unknown {
    return this.state.crash_id;
  }

  on(event: string, callback: Listener): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set<Listener>()).add(callback));
  }

  off(event: string, callback?: Listener): void {
    if (callback) {
      this.listeners.get(event)?.delete(callback);
    }
  }

  send(content: object): void {
    if (!this.silent) {
      setTimeout(() => this.answer(content as Message), 5);
    }
  }

  emit(event: string, ...args: unknown[]): void {
    this.listeners.get(event)?.forEach(listener => listener(...(args as never[])));
  }

  /** Change the state and tell the page. */
  become(change: Partial<State>): void {
    this.state = { ...this.state, ...change, version: this.state.version + 1 };
    this.emit('msg:custom', { kind: 'state', state: this.state });
  }

  private answer(message: Message): void {
    const result = this.result(message);
    const failed = 'error' in result;
    this.emit('msg:custom', { kind: 'reply', id: message.id, ok: !failed, ...result });
  }

  private result(message: Message): object {
    const { kind } = message;
    const start = Number(message['start'] ?? 0);
    switch (kind) {
      case 'state':
        return { state: this.state };
      case 'ping':
        return { version: this.state.version, phase: this.state.phase };
      case 'frame':
        return { frame: this.frame(Number(message['level'])) };
      case 'variables':
        return this.page(start, String(message['filter'] ?? ''));
      case 'expand':
        return this.items(message['path'] as string[]);
      case 'statistics':
        return { text: 'least -4.18, greatest 6.02, mean 0.013, std 1.21; 0 NaN, 0 infinite, 0 zeros of 640' };
      case 'complete':
        return { from: 0, names: [{ name: 'targets', kind: 'Tensor' }, { name: 'total', kind: 'float' }] };
      case 'functions':
        return { names: ['train', 'evaluate', 'Classifier.forward'] };
      case 'function':
        return { name: message['name'], text: 'def evaluate(model, loader):\n    return 0.5\n', first_line: 40, key: 'other' };
      case 'preview':
        return this.preview(String(message['source']));
      case 'action':
        return this.action(String(message['code']), Number(message['level']));
      case 'save':
        return { text: 'model, optimizer, epoch, batch to daifu-save-1.pt (1.2 MB)' };
      case 'versions':
        return message['diff'] ? { diff: DIFF } : { versions: [{ number: 1, unit: 'train', time: 1764561000, current: true }] };
      default:
        return {};
    }
  }

  many = 0;

  private frame(level: number): object {
    return this.many ? { ...detail(level), ...this.page(0, '') } : detail(level);
  }

  private page(start: number, filter: string): object {
    const count = this.many || variables.length;
    const all = Array.from({ length: count }, (_, at) => {
      const known = variables[at % variables.length];
      return { ...known, name: at < variables.length ? known?.name : `v${at}`, path: [String(at)] };
    });
    const found = all.filter(({ name }) => name?.includes(filter));
    return { variables: found.slice(start, start + 100), total: found.length, start };
  }

  private items(path: string[]): object {
    const items = ['0.8124', '0.4312', '0.3907'].map((text, at) => ({
      name: `[${at}]`,
      type: 'float',
      text,
      path: [...path, at]
    }));
    return { variables: items, total: items.length };
  }

  private preview(source: string): object {
    if (source.includes('((')) {
      return { refusal: { text: "SyntaxError: '(' was never closed", line: 20 } };
    }
    return {
      preview: { line: 20, statement: choices[0]?.statement, kind: 'statement', reason: '', replaced: ['train'], choices },
      diff: DIFF
    };
  }

  private action(code: string, level: number): object {
    const entry = code.includes('plot')
      ? { level, code, rich: [{ 'image/svg+xml': PLOT }, { 'text/html': '<b>bold</b><script>parent.attacked = 1</script>' }] }
      : code.includes('1/0')
        ? { level, code, error: 'ZeroDivisionError: division by zero' }
        : { level, code, stdout: 'printed\n', value: 'torch.Size([63])' };
    this.become({ console: [...this.state.console, entry] });
    return { entry };
  }
}

const PLOT = `<svg xmlns="http://www.w3.org/2000/svg" width="240" height="90"><rect width="240" height="90" fill="#fff"/>
<polyline fill="none" stroke="#1976d2" stroke-width="2" points="0,10 40,50 80,62 120,70 160,74 200,78 240,80"/></svg>`;
