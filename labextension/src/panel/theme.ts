/** The editors look as JupyterLab's own do. */

import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags as t } from '@lezer/highlight';

const variable = (name: string): string => `var(--jp-mirror-editor-${name}-color)`;
const color = (name: string): { color: string } => ({ color: variable(name) });

/** Two of JupyterLab's colours are too faint for small text in one of its themes: they go some way to the text's. */
const clear = (name: string): { color: string } => ({
  color: `color-mix(in srgb, ${variable(name)} 75%, var(--jp-content-font-color0))`
});

const highlighting = HighlightStyle.define([
  { tag: t.meta, ...clear('meta') },
  { tag: t.keyword, ...color('keyword'), fontWeight: 'bold' },
  { tag: t.atom, ...color('atom') },
  { tag: t.number, ...color('number') },
  { tag: [t.definition(t.name), t.function(t.definition(t.variableName))], ...color('def') },
  { tag: t.standard(t.variableName), ...color('builtin') },
  { tag: [t.special(t.variableName), t.self], ...color('variable-2') },
  { tag: t.variableName, ...color('variable') },
  { tag: t.punctuation, ...color('punctuation') },
  { tag: t.propertyName, ...color('property') },
  { tag: t.operator, ...color('operator'), fontWeight: 'bold' },
  { tag: t.comment, ...clear('comment'), fontStyle: 'italic' },
  { tag: t.string, ...color('string') },
  { tag: [t.labelName, t.monospace, t.special(t.string)], ...color('string-2') },
  { tag: [t.separator, t.derefOperator, t.bracket], color: 'inherit' }
]);

const look = EditorView.theme({
  // not '&' alone: the tooltips' container in the page's body has the theme's class as well
  '&.cm-editor': {
    backgroundColor: 'var(--jp-layout-color0)',
    color: 'var(--jp-content-font-color1)',
    border: 'var(--jp-border-width) solid var(--jp-cell-editor-border-color)'
  },
  '&.cm-focused': {
    outline: 'none',
    borderColor: 'var(--jp-cell-editor-active-border-color)',
    boxShadow: 'var(--jp-input-box-shadow)'
  },
  '.cm-scroller': {
    fontFamily: 'var(--jp-code-font-family)',
    fontSize: 'var(--jp-code-font-size)',
    lineHeight: 'var(--jp-code-line-height)'
  },
  '.cm-content': { caretColor: 'var(--jp-editor-cursor-color)', padding: '5px 0' },
  '.cm-cursor, .cm-dropCursor': {
    borderLeft: 'var(--jp-code-cursor-width0) solid var(--jp-editor-cursor-color)'
  },
  '.cm-selectionBackground, .cm-content ::selection': {
    backgroundColor: 'var(--jp-editor-selected-background)'
  },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--jp-editor-selected-focused-background)'
  },
  '.cm-gutters': {
    backgroundColor: 'var(--jp-layout-color0)',
    color: 'color-mix(in srgb, var(--jp-ui-font-color1) 70%, transparent)',
    border: 'none'
  },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 6px 0 4px' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': {
    backgroundColor: 'var(--jp-layout-color3)',
    color: 'inherit'
  },
  '.cm-searchMatch': {
    backgroundColor: 'var(--jp-search-unselected-match-background-color)',
    color: 'var(--jp-search-unselected-match-color)'
  },
  '.cm-searchMatch span': { color: 'inherit' },
  '.cm-searchMatch.cm-searchMatch-selected': {
    backgroundColor: 'var(--jp-search-selected-match-background-color)',
    color: 'var(--jp-search-selected-match-color)'
  },
  '.cm-placeholder': { color: 'var(--jp-ui-font-color2)' },
  '.cm-panels': {
    backgroundColor: 'var(--jp-toolbar-background)',
    color: 'var(--jp-ui-font-color1)',
    fontFamily: 'var(--jp-ui-font-family)',
    fontSize: 'var(--jp-ui-font-size1)',
    borderColor: 'var(--jp-toolbar-border-color)'
  },
  '.cm-panel.cm-search': { padding: '4px 24px 4px 6px' },
  '.cm-panel.cm-search label': { fontSize: '12px' },
  '.cm-textfield': {
    backgroundColor: 'var(--jp-input-background)',
    border: 'var(--jp-border-width) solid var(--jp-border-color1)',
    borderRadius: 'var(--jp-border-radius)',
    color: 'inherit',
    fontSize: '12px'
  },
  '.cm-textfield::placeholder': { color: 'inherit', opacity: '0.75' },
  '.cm-button': {
    backgroundImage: 'none',
    backgroundColor: 'var(--jp-layout-color2)',
    border: 'none',
    borderRadius: 'var(--jp-border-radius)',
    fontSize: '12px'
  },
  '.cm-panel.cm-search [name=close]': { color: 'inherit', fontSize: '16px', top: '4px', right: '8px' },
  '.cm-tooltip': {
    backgroundColor: 'var(--jp-layout-color1)',
    border: 'var(--jp-border-width) solid var(--jp-border-color1)',
    boxShadow: 'var(--jp-elevation-z6)',
    color: 'var(--jp-content-font-color1)',
    zIndex: '10001' // above the dock
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {
    fontFamily: 'var(--jp-code-font-family)',
    fontSize: 'var(--jp-code-font-size)',
    maxHeight: '16em'
  },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--jp-brand-color1)',
    color: 'var(--jp-ui-inverse-font-color1)'
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: 'bold' },
  '.cm-completionDetail': { opacity: '0.7', fontStyle: 'normal', fontFamily: 'var(--jp-ui-font-family)' }
});

export const theme: Extension = [look, syntaxHighlighting(highlighting)];
