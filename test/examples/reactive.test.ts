// The programs of examples/reactive: each runs in a process of its own, on CPU devices and on GPUs where there are any, and its output is
// compared with the comments "// prints:" in its file. They are compiled by `scripts/build.mjs --with-examples`.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { listDevices } from 'millrace';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FOLDER = path.join(ROOT, 'examples/reactive');
/** The first run compiles kernels. */
const RUN_MS = 60_000;
/** Longer programs are no longer read at a glance. */
const MAX_LINES = 80;

const programs = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ name: file.slice(0, -3), text: readFileSync(path.join(FOLDER, file), 'utf8') }));
const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);

test.for(programs)('$name is in the README and is short', ({ name, text }) => {
  expect(readFileSync(path.join(FOLDER, 'README.md'), 'utf8')).toContain(`| [${name}](${name}.ts) |`);
  expect(text.split('\n').length).toBeLessThanOrEqual(MAX_LINES);
});

runOn('CPU devices', 'cpu', ['cpu:0', 'cpu:1']);

if (gpus.length > 0) runOn('GPUs', gpus[0]!, gpus.slice(0, 2));
else {
  test('the programs on GPUs', (context) => {
    expect(process.env['MILLRACE_TEST_CUDA'], 'MILLRACE_TEST_CUDA is 1, and no GPU is listed').not.toBe('1');
    context.skip('this machine has no GPU');
  });
}

/** `several` is for the program that spreads one image over devices. */
function runOn(title: string, device: string, several: readonly string[]): void {
  describe(title, () => {
    test.for(programs)('$name', { timeout: RUN_MS }, async ({ name, text }) => {
      const expected = [...text.matchAll(/\/\/ prints: (.*)$/gm)].map((match) => match[1]);
      expect(expected.length).toBeGreaterThan(0);
      const file = path.join(ROOT, 'build/js/examples/reactive', `${name}.js`);
      const env = { ...process.env, MILLRACE_CPU_DEVICES: '2' };
      const args = name === 'image-tiles' ? several : [device];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [file, ...args], { cwd: ROOT, env, timeout: RUN_MS });
      expect(stdout.trim().split('\n')).toEqual(expected);
      expect(stderr).toBe('');
    });
  });
}
