/** Rich output. Pictures are <img>, HTML is shown in a frame that may run and load nothing. */

import { h } from './dom';
import type { MimeBundle } from './protocol';

const PICTURES = ['image/png', 'image/jpeg', 'image/svg+xml'];
const POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:";

/** The best form that the panel can show, or null. */
export function rich(bundle: MimeBundle, root: Element): HTMLElement | null {
  for (const type of PICTURES) {
    const data = textOf(bundle[type]);
    if (data) {
      return picture(type, data, textOf(bundle['text/plain']));
    }
  }
  const html = textOf(bundle['text/html']);
  if (html) {
    return framed(html, root);
  }
  const plain = textOf(bundle['text/plain']);
  return plain ? h('pre', { class: 'jp-daifu-text' }, plain) : null;
}

function picture(type: string, data: string, alternative: string): HTMLElement {
  const image = h('img', { class: 'jp-daifu-picture' });
  const isText = type === 'image/svg+xml';
  image.src = `data:${type}${isText ? '' : ';base64'},${isText ? encodeURIComponent(data) : data.replace(/\s/g, '')}`;
  image.alt = alternative || 'picture';
  return image;
}

function framed(html: string, root: Element): HTMLElement {
  const frame = h('iframe', { class: 'jp-daifu-html', title: 'HTML output' });
  const { color, fontFamily, colorScheme } = getComputedStyle(root);
  const style = `body { margin: 0; font: 13px ${fontFamily}; color: ${color}; color-scheme: ${colorScheme}; }
    table { border-collapse: collapse; } th, td { padding: 2px 8px; text-align: right; }`;
  frame.setAttribute('sandbox', '');
  frame.setAttribute('srcdoc', `<meta http-equiv="Content-Security-Policy" content="${POLICY}"><style>${style}</style>${html}`);
  return frame;
}

/** Notebook text may come in lines. */
function textOf(data: unknown): string {
  return Array.isArray(data) ? data.join('') : typeof data === 'string' ? data : '';
}
