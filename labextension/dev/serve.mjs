// The panel with canned states: http://127.0.0.1:8765/?state=crash&theme=dark . JupyterLab's themes come from ../.venv.
import { context } from 'esbuild';
import { copyFile, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const here = path => fileURLToPath(new URL(path, import.meta.url));
const out = here('../../build/panel-dev');
const themes = here('../../.venv/share/jupyter/lab/themes/@jupyterlab');

await mkdir(out, { recursive: true });
await copyFile(here('index.html'), `${out}/index.html`);
for (const theme of ['light', 'dark']) {
  await copyFile(`${themes}/theme-${theme}-extension/index.css`, `${out}/${theme}.css`).catch(() =>
    console.log(`no JupyterLab in ../.venv: the ${theme} theme is missing`)
  );
}
const server = await context({
  entryPoints: { main: here('main.ts'), panel: here('../style/panel.css') },
  outdir: out,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  sourcemap: true
});
await server.watch();
await server.serve({ servedir: out, host: '127.0.0.1', port: Number(process.env.PORT ?? 8765) });
console.log(`http://127.0.0.1:${process.env.PORT ?? 8765}/?state=crash&theme=light`);
