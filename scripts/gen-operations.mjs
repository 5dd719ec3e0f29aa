// Writes the list of operations that come with the package to docs/operations.md. `--check` writes nothing and fails if it differs.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SHIPPED } from './shipped-operations.mjs';
import { root } from './tools.mjs';

const [BEGIN, END] = ['<!-- begin: scripts/shipped-operations.mjs -->\n', '<!-- end -->'];
const path = join(root, 'docs/operations.md');
const text = readFileSync(path, 'utf8');
const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
if (begin < 0 || end < begin) throw new Error(`${path} has no place for the list.`);
const rows = SHIPPED.map(
  ({ names, operands, dtypes }) => `| ${names.map((name) => `\`${name}\``).join(' ')} | ${dtypes.join(' ')} | ${operands} |\n`,
);
const table = `| operations | elements | operands |\n| --- | --- | --- |\n${rows.join('')}`;
const made = `${text.slice(0, begin)}${BEGIN}${table}${text.slice(end)}`;
if (made !== text) {
  if (process.argv.includes('--check')) {
    console.error('docs/operations.md differs from scripts/shipped-operations.mjs: run npm run gen.');
    process.exit(1);
  }
  writeFileSync(path, made);
}
