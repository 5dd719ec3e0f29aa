// The programs of examples/cuda: each runs in a process of its own, on the CPU device and on a GPU where there is one, and its output is
// compared with the comments "// prints:" in its file. They are compiled by `scripts/build.mjs --with-examples`. Where nvcc is installed, it
// compiles each .cu file.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { listDevices, type DeviceName } from 'millrace';
import { IS_LONG } from '../support/long.js';
import { checkWithNvcc, hasNvcc } from '../support/nvcc.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FOLDER = path.join(ROOT, 'examples/cuda');
/** The first run compiles kernels. */
const RUN_MS = 120_000;
/** Longer files are no longer read in one go. */
const MAX_LINES = 250;

const run = promisify(execFile);
const read = (file: string): string => readFileSync(path.join(FOLDER, file), 'utf8');
const names = readdirSync(FOLDER).flatMap((file) => (file.endsWith('.cu') ? [file.slice(0, -3)] : []));
const hasGpu = (await listDevices()).some(({ id }) => id === 'cuda:0');
const isRequired = process.env['MILLRACE_TEST_CUDA'] === '1';

/** Times and rates differ from run to run. */
const withoutTimes = (line: string): string => line.replaceAll(/[\d.]+(?= (?:ms|tokens\/s)\b)/g, 'N');

test('the README has every program, and their files are short', () => {
  expect(names).toEqual(['heat', 'reduce', 'transformer']);
  for (const name of names) expect(read('README.md')).toContain(`| [${name}.cu](${name}.cu), [${name}.ts](${name}.ts) |`);
  for (const file of readdirSync(FOLDER)) expect([file, read(file).split('\n').length <= MAX_LINES]).toEqual([file, true]);
});

test('docs/cuda-code.md shows heat.ts as it is', () => {
  const page = readFileSync(path.join(ROOT, 'docs/cuda-code.md'), 'utf8');
  const section = /^## From `main` to TypeScript$.*?(?=^## )/ms.exec(page)![0];
  const excerpts = [...section.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1]!);
  expect(excerpts.length).toBeGreaterThan(0);
  for (const excerpt of excerpts) expect(read('heat.ts')).toContain(excerpt);
});

for (const device of ['cpu', 'cuda:0'] as const satisfies readonly DeviceName[]) {
  describe.skipIf(device === 'cuda:0' && !hasGpu && !isRequired)(`on ${device}${hasGpu ? '' : ' (skipped where there is no GPU)'}`, () => {
    test.for(names)('%s prints what its file says', { timeout: RUN_MS }, async (name) => {
      const expected = [...read(`${name}.ts`).matchAll(/\/\/ prints: (.*)$/gm)].map((match) => withoutTimes(match[1]!));
      expect(expected.length).toBeGreaterThan(1);
      const file = path.join(ROOT, 'build/js/examples/cuda', `${name}.js`);
      if (!existsSync(file)) throw new Error('The examples are not compiled: node scripts/build.mjs --with-examples');
      const { stdout, stderr } = await run(process.execPath, [file, device], { cwd: ROOT, timeout: RUN_MS });
      expect(stdout.trim().split('\n').map(withoutTimes)).toEqual(expected);
      expect(stderr).toBe('');
    });
  });
}

test.skipIf(!hasNvcc)(
  `nvcc compiles ${IS_LONG ? 'each' : 'a'} .cu file, the code of the host too (skipped where there is no nvcc)`,
  { timeout: RUN_MS },
  () =>
    checkWithNvcc(
      (IS_LONG ? names : names.slice(0, 1)).map((name) => read(`${name}.cu`)),
      ['-arch=sm_90'],
      [],
      '-c',
    ),
);
