// Builds ../daifu_ipy/static: panel.js, the anywidget module with all that it needs, and panel.css.
import { build } from 'esbuild';
import { copyFile, mkdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const here = path => fileURLToPath(new URL(path, import.meta.url));
const out = here('../daifu_ipy/static');

await mkdir(out, { recursive: true });
await build({
  entryPoints: [here('src/panel/index.ts')],
  outfile: `${out}/panel.js`,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'warning'
});
await copyFile(here('style/panel.css'), `${out}/panel.css`);
for (const name of ['panel.js', 'panel.css']) {
  console.log(`${name} ${Math.round((await stat(`${out}/${name}`)).size / 1000)} kB`);
}
