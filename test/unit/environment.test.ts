// docs/environment.md has every MILLRACE_ variable that the library, the addon and the scripts read, and no other.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { nearestVariable, VARIABLES } from '../../src/toolchain/base/environment-variables.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Macros, and names of asynchronous resources. */
const NOT_VARIABLES: readonly string[] = ['MILLRACE_CPU_DEVICE', 'MILLRACE_DEVICE', 'MILLRACE_HOST'];
/** A quoted name, except as the code of a warning, and a member of `env`. The name ends with the first `${` of a template. */
const READ = /(?<!code: )['"`](MILLRACE_[A-Z0-9_]+)(?:['"`]|\$\{)|\benv\.(MILLRACE_[A-Z0-9_]+)/g;

function readIn(text: string): string[] {
  return Array.from(text.matchAll(READ), ([, quoted, member]) => (quoted ?? member)!).filter((name) => !NOT_VARIABLES.includes(name));
}

const files = ['src', 'native', 'scripts'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(?:ts|mjs|cjs|js|cpp|h|cu|sh)$/.test(file))
    .map((file) => join(root, folder, file)),
);
/** Scripts set these for the tests, which read them. */
const OF_TESTS = /^MILLRACE_(?:TEST_|FAKE_|BENCH_|LONG$|PROGRAMS$|SEEDS$|KERNEL_SEED$|KERNELS$)/;
const read = new Set(files.flatMap((file) => readIn(readFileSync(file, 'utf8'))).filter((name) => !OF_TESTS.test(name)));
const rows = readFileSync(join(root, 'docs/environment.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'));
const documented = rows.flatMap((row) => Array.from(row.split(' | ')[0]!.matchAll(/`(MILLRACE_\w+)`/g), ([, name]) => name!));

test('the table has every variable that is read, and each of its variables is read', () => {
  const isSame = (name: string, other: string): boolean => name === other || (name.endsWith('_') && other.startsWith(name));
  expect([...read].filter((name) => !documented.some((other) => isSame(name, other)))).toEqual([]);
  expect(documented.filter((other) => ![...read].some((name) => isSame(name, other)))).toEqual([]);
  expect(documented).toEqual([...new Set(documented)].toSorted());
  for (const row of rows) expect(row.split(/(?<!\\) \| /)).toHaveLength(4);
});

test('variables are recognised however they are read', () => {
  const text = `env['MILLRACE_A'], process.env.MILLRACE_B, getenv("MILLRACE_C"), searchFor(env, \`MILLRACE_D_\${x}\`), { code: 'MILLRACE_E' }, 'ERR_MILLRACE_F'`;
  expect(readIn(text)).toEqual(['MILLRACE_A', 'MILLRACE_B', 'MILLRACE_C', 'MILLRACE_D_']);
});

test('doctor knows the variables of the table, and the one that a misspelt one means', () => {
  expect(VARIABLES).toEqual(documented);
  for (const [name, meant] of [
    ['MILLRACE_CX', 'MILLRACE_CXX'],
    ['MILRACE_CXX', 'MILLRACE_CXX'],
    ['MILLRACE_IMAGE', 'MILLRACE_IMAGES'],
    ['MILLRACE_CUDA_DRIVE', 'MILLRACE_CUDA_DRIVER'],
  ] as const)
    expect(nearestVariable(name)).toBe(meant);
});
