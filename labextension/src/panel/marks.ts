/** In the source: the line at which the run stands, and the reason for a refusal under its line. */

import { RangeSet, StateEffect, StateField, type EditorState, type Extension } from '@codemirror/state';
import { Decoration, EditorView, gutter, GutterMarker, WidgetType, type DecorationSet } from '@codemirror/view';
import { h } from './dom';

/** `line` counts from 1 in the editor's text; `start` and `end` are columns of the part that was executing. */
export interface Mark {
  line: number;
  start?: number | null;
  end?: number | null;
}

export interface Reason {
  line: number;
  text: string;
}

const setMark = StateEffect.define<Mark | null>();
const setReason = StateEffect.define<Reason | null>();

const crashedLine = Decoration.line({ class: 'jp-daifu-crashedLine', attributes: { 'data-daifu': 'crashed-line' } });
const executing = Decoration.mark({ class: 'jp-daifu-executing' });

class Arrow extends GutterMarker {
  override elementClass = 'jp-daifu-crashedGutter';
  override toDOM(): Node {
    return h('span', { title: 'the run stands here' }, '▶');
  }
}
const arrow = new Arrow();

class ReasonWidget extends WidgetType {
  constructor(readonly text: string) {
    super();
  }
  override eq(other: ReasonWidget): boolean {
    return other.text === this.text;
  }
  override toDOM(): HTMLElement {
    return h('div', { class: 'jp-daifu-refusal jp-mod-line', daifu: 'refusal' }, this.text);
  }
}

function field(effect: typeof setMark | typeof setReason, draw: (state: EditorState, value: never) => DecorationSet) {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(marks, transaction) {
      const told = transaction.effects.find(one => one.is(effect as typeof setMark));
      return told ? draw(transaction.state, told.value as never) : marks.map(transaction.changes);
    },
    provide: self => EditorView.decorations.from(self)
  });
}

const mark = field(setMark, (state, value: Mark | null) => {
  if (!value || value.line < 1 || value.line > state.doc.lines) {
    return Decoration.none;
  }
  const line = state.doc.line(value.line);
  const from = line.from + Math.min(value.start ?? 0, line.length);
  const to = Math.min(line.from + (value.end ?? 0), line.to);
  const part = value.start != null && value.end != null && from < to ? [executing.range(from, to)] : [];
  return Decoration.set([crashedLine.range(line.from), ...part]);
});

const reason = field(setReason, (state, value: Reason | null) => {
  if (!value) {
    return Decoration.none;
  }
  const line = state.doc.line(Math.max(1, Math.min(value.line, state.doc.lines)));
  return Decoration.set([
    Decoration.line({ class: 'jp-daifu-refusedLine' }).range(line.from),
    Decoration.widget({ widget: new ReasonWidget(value.text), block: true, side: 1 }).range(line.to)
  ]);
});

const arrows = gutter({
  class: 'jp-daifu-arrows',
  markers: view => {
    const at = view.state.field(mark).iter().value ? view.state.field(mark).iter().from : null;
    return at === null ? RangeSet.empty : RangeSet.of([arrow.range(at)]);
  },
  initialSpacer: () => arrow
});

export const marks: Extension = [mark, reason, arrows];

export function show(view: EditorView, at: Mark | null, why: Reason | null): void {
  view.dispatch({ effects: [setMark.of(at), setReason.of(why)] });
}
