/** The source of the selected frame, or of a function opened by name, in an editor. */

import { search, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { button, h, setText } from './dom';
import { python, setDocument } from './editor';
import { marks, show, type Mark, type Reason } from './marks';
import { Opener } from './opener';
import { Seen, type Part } from './part';
import type { Session } from './session';
import { Disposables } from './signal';
import type { Text } from './surgery';

export class Source implements Part {
  readonly node: HTMLElement;
  private readonly name = h('span', { class: 'jp-daifu-name' });
  private readonly note = h('span', { class: 'jp-daifu-muted', daifu: 'editor-note' });
  private readonly body = h('div', { class: 'jp-daifu-editor', daifu: 'editor' });
  private readonly reset: HTMLButtonElement;
  private readonly close: HTMLButtonElement;
  private readonly opener: Opener;
  private readonly fixed = new Compartment();
  private readonly numbers = new Compartment();
  private readonly seen = new Seen();
  private readonly disposables = new Disposables();
  /** Each text keeps its undo history while another is shown. */
  private readonly states = new Map<string, EditorState>();
  private view: EditorView | null = null;
  private key = '';

  constructor(
    private readonly session: Session,
    private readonly leave: () => void,
    private readonly operate: () => void
  ) {
    this.opener = new Opener(session);
    this.reset = button('Original text', {
      class: 'jp-daifu-button jp-mod-small',
      daifu: 'editor-reset',
      hidden: true,
      title: 'Take the changes back; undo brings them back',
      press: () => this.restore()
    });
    this.close = button('Back to the frame', {
      class: 'jp-daifu-button jp-mod-small',
      daifu: 'function-close',
      hidden: true,
      press: () => session.close()
    });
    const head = h('div', { class: 'jp-daifu-head' }, h('h3', {}, 'Source'), this.name, this.note);
    head.append(this.reset, this.close, this.opener.toggle);
    this.node = h('section', { class: 'jp-daifu-source', aria: { label: 'Source' } }, head, this.opener.node, this.body);
    this.disposables.add(
      session.drafts.edited.connect(({ key, text, by }) => {
        if (by !== this && key === this.key && this.view) {
          setDocument(this.view, text);
        }
      })
    );
  }

  focus(): void {
    this.view?.focus();
  }

  update(): void {
    const { surgery, detail, opened } = this.session;
    const { text } = surgery;
    this.opener.update();
    if (!text) {
      return; // what was shown stays until the frame is here
    }
    const fixed = this.session.isOver || (!opened && detail?.can_edit === false);
    const mark = opened ? null : markOf(detail?.mark, text);
    const refusal = surgery.refusalOf(text.key);
    const reason = refusal?.line == null ? null : { line: refusal.line - text.firstLine + 1, text: refusal.text };
    const note = (!opened && detail?.can_edit === false && detail.why_not) || '';
    if (this.seen.isNew(text.key, text.original, text.firstLine, mark, reason, fixed)) {
      this.present(text, mark, reason, fixed);
    }
    setText(this.name, opened ? text.name : `${text.name} in ${detail?.place ?? ''}`);
    setText(this.note, note ? `can't be edited: ${note}` : surgery.isChanged ? 'changed' : '');
    this.note.classList.toggle('jp-mod-changed', !note && surgery.isChanged);
    this.reset.hidden = !surgery.isChanged || fixed;
    this.close.hidden = !opened;
  }

  dispose(): void {
    this.disposables.dispose();
    this.opener.dispose();
    this.view?.destroy();
  }

  private present(text: Text, mark: Mark | null, reason: Reason | null, fixed: boolean): void {
    const source = this.session.drafts.get(text.key) ?? text.original;
    const options = [
      this.fixed.reconfigure(readOnly(fixed)),
      this.numbers.reconfigure(lineNumbers({ formatNumber: number => String(number + text.firstLine - 1) }))
    ];
    if (!this.view) {
      this.view = new EditorView({ state: this.create(source), parent: this.body });
    } else if (this.key !== text.key) {
      this.states.set(this.key, this.view.state);
      this.view.setState(this.states.get(text.key) ?? this.create(source));
    }
    const isOther = this.key !== text.key;
    this.key = text.key;
    setDocument(this.view, source);
    this.view.dispatch({ effects: options });
    show(this.view, mark, reason);
    const line = reason?.line ?? (isOther ? mark?.line : undefined);
    if (line !== undefined) {
      this.reveal(line);
    }
  }

  private reveal(line: number): void {
    if (this.view) {
      const { doc } = this.view.state;
      const at = doc.line(Math.max(1, Math.min(line, doc.lines))).from;
      this.view.dispatch({ effects: EditorView.scrollIntoView(at, { y: 'center' }) });
    }
  }

  private create(doc: string): EditorState {
    const { session } = this;
    const complete = (text: string) =>
      session.transport.request<{ from: number; names: { name: string }[] }>('complete', { level: session.level, text });
    return EditorState.create({
      doc,
      extensions: [
        python({
          label: 'Source of the function',
          keys: [{ key: 'Mod-Enter', run: () => (this.operate(), true) }],
          leave: () => (this.escape(), true),
          complete
        }),
        this.numbers.of(lineNumbers()),
        this.fixed.of([]),
        marks,
        search({ top: true }),
        keymap.of(searchKeymap),
        EditorView.updateListener.of(({ docChanged, state }) => docChanged && this.typed(state.doc.toString()))
      ]
    });
  }

  private typed(text: string): void {
    if (text !== (this.session.drafts.get(this.key) ?? this.session.surgery.text?.original)) {
      this.session.drafts.edit(this.key, text, this);
      this.session.surgery.edited();
    }
  }

  private escape(): void {
    if (this.session.surgery.review) {
      this.session.surgery.back();
    } else {
      this.leave();
    }
  }

  private restore(): void {
    const { text } = this.session.surgery;
    if (text && this.view) {
      setDocument(this.view, text.original);
      this.typed(text.original);
      this.view.focus();
    }
  }
}

function readOnly(fixed: boolean): Extension {
  return fixed ? EditorState.readOnly.of(true) : [];
}

/** The kernel counts lines as the file does. */
function markOf(mark: Mark | null | undefined, { firstLine }: Text): Mark | null {
  return mark ? { ...mark, line: mark.line - firstLine + 1 } : null;
}
