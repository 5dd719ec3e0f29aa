// Draws docs/images/graph.svg: the graph of the program "diamond" in docs/graphs.md, which this script runs on the CPU device. Needs a
// build. `--check` writes nothing and fails if the drawing differs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { transformSync } from 'esbuild';
import { root } from './tools.mjs';

const IMAGE = join(root, 'docs/images/graph.svg');
// Inside the project, so that the program can import millrace by its name.
const PROGRAM = join(root, 'build/graph-image/program.mjs');

const page = readFileSync(join(root, 'docs/graphs.md'), 'utf8');
const block = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code).find((code) => code.includes("label: 'diamond'"));
const end = 'await device.close();';
if (!block?.includes('openDevice()') || !block.includes(end)) throw new Error('docs/graphs.md has no program with a graph named diamond.');

const program = block
  .replace('openDevice()', "openDevice('cpu')")
  .replaceAll(/^console\.log.*$/gm, '')
  .replace(end, `export const svg = await diamond.toSvg();\n${end}`);
mkdirSync(dirname(PROGRAM), { recursive: true });
writeFileSync(PROGRAM, transformSync(program, { loader: 'ts', target: 'es2022', format: 'esm' }).code);
const { svg } = await import(pathToFileURL(PROGRAM).href);

if (!process.argv.includes('--check')) {
  mkdirSync(dirname(IMAGE), { recursive: true });
  writeFileSync(IMAGE, svg);
} else if (readFileSync(IMAGE, 'utf8') !== svg) {
  console.error('docs/images/graph.svg is not the graph of docs/graphs.md: run node scripts/graph-image.mjs.');
  process.exit(1);
}
