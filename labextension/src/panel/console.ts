/** The action console: Python in the crashed namespace. */

import { EditorState } from '@codemirror/state';
import { EditorView, placeholder, type Command } from '@codemirror/view';
import { button, disable, h, setText } from './dom';
import { python, setDocument } from './editor';
import { Seen, type Part } from './part';
import type { Completion, ConsoleEntry } from './protocol';
import { rich } from './rich';
import type { Session } from './session';
import { Disposables } from './signal';

/** Kept as a draft, so that a half-typed action outlives a reload. */
const KEY = 'console';

export class Console implements Part {
  readonly node: HTMLElement;
  private readonly entries = h('div', { class: 'jp-daifu-entries', daifu: 'console-output', role: 'log', hidden: true });
  private readonly where = h('span', { class: 'jp-daifu-name' });
  private readonly input = h('div', { class: 'jp-daifu-prompt', daifu: 'console-input' });
  private readonly run: HTMLButtonElement;
  private readonly view: EditorView;
  private readonly disposables = new Disposables();
  private readonly seen = new Seen();
  private shown: string[] = [];
  /** Where in the history the input stands; its end is what is being typed. */
  private at = 0;
  private typing = '';

  constructor(
    private readonly session: Session,
    private readonly leave: () => void
  ) {
    this.entries.tabIndex = 0;
    this.entries.setAttribute('aria-label', 'Actions done');
    this.run = button('Run', { daifu: 'console-run', title: 'Shift-Enter', press: () => this.act() });
    const head = h('div', { class: 'jp-daifu-head' }, h('h3', {}, 'Action'), this.where);
    const row = h('div', { class: 'jp-daifu-inputRow' }, this.input, this.run);
    this.node = h('section', { class: 'jp-daifu-console', aria: { label: 'Action' } }, head, this.entries, row);
    this.view = new EditorView({ parent: this.input, state: this.create() });
    this.disposables.add(
      session.drafts.edited.connect(({ key, text, by }) => {
        if (key === KEY && by !== this) {
          setDocument(this.view, text);
        }
      })
    );
  }

  focus(): void {
    this.view.focus();
  }

  update(): void {
    const { state, level, whyNot } = this.session;
    const frame = this.session.frame(level);
    setText(this.where, frame ? `runs in ${frame.function}, line ${frame.line}` : '');
    disable(this.run, whyNot);
    if (this.seen.isNew(state?.console)) {
      this.present(state?.console ?? []);
    }
  }

  dispose(): void {
    this.disposables.dispose();
    this.view.destroy();
  }

  /** Entries are only added; the oldest may be gone. What stands stays, so that a selection or a scroll is kept. */
  private present(entries: ConsoleEntry[]): void {
    const keys = entries.map(entry => JSON.stringify(entry));
    const kept = this.shown.every((key, at) => key === keys[at]);
    if (!kept) {
      this.entries.replaceChildren();
    }
    const from = kept ? this.shown.length : 0;
    this.entries.append(...entries.slice(from).map(entry => this.entry(entry)));
    this.entries.hidden = entries.length === 0;
    this.reveal();
    this.shown = keys;
    this.at = this.codes.length;
  }

  /** The newest entry from its beginning, where it is taller than the list. */
  private reveal(): void {
    const last = this.entries.lastElementChild;
    if (last instanceof HTMLElement) {
      const end = this.entries.scrollHeight - this.entries.clientHeight;
      this.entries.scrollTop = Math.min(end, last.offsetTop);
    }
  }

  private entry({ level, code, stdout, value, error, note, rich: bundles }: ConsoleEntry): HTMLElement {
    const text = (content: string | null | undefined, name: string): HTMLElement | false =>
      !!content && h('pre', { class: `jp-daifu-text jp-mod-${name}`, daifu: `console-${name}` }, content);
    const frame = this.session.frame(level);
    const title = frame ? `in ${frame.function}` : '';
    return h(
      'div',
      { class: 'jp-daifu-entry', daifu: 'console-entry' },
      code ? h('pre', { class: 'jp-daifu-text jp-mod-code', title }, code) : null,
      text(stdout, 'stdout'),
      ...(bundles ?? []).map(bundle => rich(bundle, this.node)),
      text(value, 'value'),
      text(error, 'error'),
      text(note, 'note')
    );
  }

  private act(): void {
    const code = this.view.state.doc.toString();
    if (!code.trim() || this.session.whyNot) {
      return;
    }
    this.typing = '';
    this.put('');
    void this.session.attempt(() => this.send(code));
  }

  private async send(code: string): Promise<void> {
    try {
      await this.session.transport.request('action', { level: this.session.level, code });
    } catch (error) {
      if (this.view.state.doc.length === 0) {
        this.put(code); // not done: it can be tried again
      }
      throw error;
    }
  }

  private put(text: string): void {
    const { length } = this.view.state.doc;
    this.view.dispatch({ changes: { from: 0, to: length, insert: text }, selection: { anchor: text.length } });
  }

  /** Up on the first line and Down on the last go through the history. */
  private readonly older: Command = view => {
    const { doc, selection } = view.state;
    return doc.lineAt(selection.main.head).number === 1 && this.go(this.at - 1);
  };

  private readonly newer: Command = view => {
    const { doc, selection } = view.state;
    return doc.lineAt(selection.main.head).number === doc.lines && this.go(this.at + 1);
  };

  private get codes(): string[] {
    return this.session.state?.console.map(({ code }) => code).filter(code => code) ?? [];
  }

  private go(to: number): boolean {
    const { codes } = this;
    if (to < 0 || to > codes.length) {
      return false;
    }
    if (this.at === codes.length) {
      this.typing = this.view.state.doc.toString();
    }
    this.at = to;
    this.put(codes[to] ?? this.typing);
    return true;
  }

  private create(): EditorState {
    const { session } = this;
    const run = (): boolean => (this.act(), true);
    return EditorState.create({
      doc: session.drafts.get(KEY) ?? '',
      extensions: [
        python({
          label: 'Python to run in the selected frame',
          keys: [
            { key: 'Shift-Enter', run },
            { key: 'Mod-Enter', run }
          ],
          leave: () => (this.leave(), true),
          arrows: { older: this.older, newer: this.newer },
          complete: text => session.transport.request<Completion>('complete', { level: session.level, text })
        }),
        placeholder('Python; Shift-Enter runs it'),
        EditorView.lineWrapping,
        EditorView.updateListener.of(({ docChanged, state }) => {
          const text = state.doc.toString();
          if (docChanged && text !== (session.drafts.get(KEY) ?? '')) {
            session.drafts.edit(KEY, text, this);
          }
        })
      ]
    });
  }
}
