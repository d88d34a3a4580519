/** What the source editor and the console's input have in common. */

import {
  acceptCompletion,
  autocompletion,
  startCompletion,
  type CompletionContext,
  type CompletionResult
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from '@codemirror/commands';
import { pythonLanguage } from '@codemirror/lang-python';
import { bracketMatching, indentOnInput, indentUnit } from '@codemirror/language';
import { EditorState, Prec, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, keymap, tooltips, type Command, type KeyBinding } from '@codemirror/view';
import { SUPPRESS } from './keys';
import type { Completion } from './protocol';
import { theme } from './theme';

export interface EditorOptions {
  label: string;
  /** Bindings that come before all others. */
  keys: KeyBinding[];
  /** Leaves the editor; what is typed stays. */
  leave: Command;
  /** Up and Down, where no completion is open. */
  arrows?: { older: Command; newer: Command };
  complete(text: string): Promise<Completion>;
}

export function python(options: EditorOptions): Extension {
  return [
    Prec.highest(keymap.of(options.keys)),
    pythonLanguage,
    theme,
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    indentUnit.of('    '),
    EditorState.tabSize.of(4),
    tooltips({ parent: document.body }),
    autocompletion({
      override: [context => names(context, options)],
      activateOnTyping: false, // as in JupyterLab: Tab asks
      icons: false
    }),
    EditorView.contentAttributes.of({ 'aria-label': options.label, [SUPPRESS]: 'true', spellcheck: 'false', tabindex: '0' }),
    keymap.of([
      { key: 'Tab', run: tab, shift: indentLess },
      { key: 'ArrowUp', run: options.arrows?.older },
      { key: 'ArrowDown', run: options.arrows?.newer },
      ...historyKeymap,
      ...defaultKeymap,
      { key: 'Escape', run: options.leave }
    ])
  ];
}

/** Completion after a name or a dot, as in JupyterLab; else four spaces or an indented block. */
const tab: Command = view => {
  if (acceptCompletion(view)) {
    return true;
  }
  const { main } = view.state.selection;
  const before = view.state.sliceDoc(view.state.doc.lineAt(main.head).from, main.head);
  if (!main.empty || before.trim() === '') {
    return indentMore(view);
  }
  if (/[\w.]$/.test(before)) {
    return startCompletion(view);
  }
  view.dispatch(view.state.replaceSelection('    '));
  return true;
};

async function names(context: CompletionContext, options: EditorOptions): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos);
  const text = line.text.slice(0, context.pos - line.from);
  try {
    const { from, names } = await options.complete(text);
    return {
      from: line.from + from,
      options: names.map(({ name, kind }) => ({ label: name, detail: kind })),
      validFor: /^\w*$/
    };
  } catch {
    return null; // no names is no reason to disturb the typing
  }
}

/** Another text, by the smallest change, so that cursor and marks stay where they can. */
export function setDocument(view: EditorView, text: string): void {
  const old = view.state.doc.toString();
  if (old === text) {
    return;
  }
  let from = 0;
  while (from < Math.min(old.length, text.length) && old[from] === text[from]) {
    from++;
  }
  let end = 0;
  while (end < Math.min(old.length, text.length) - from && old[old.length - 1 - end] === text[text.length - 1 - end]) {
    end++;
  }
  view.dispatch({ changes: { from, to: old.length - end, insert: text.slice(from, text.length - end) } });
}
