// Builds without file descriptors, in a child process with a low limit: each such build fails alone, and the device keeps working.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { runProgram, type Ending } from './child.js';
import { copyingCompiler } from './copying-compiler.js';

const scratch = mkdtempSync(path.join(tmpdir(), 'millrace-descriptors-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs one of ./programs with at most so many descriptors. */
function runLimited(descriptors: number, program: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ending> {
  return runProgram(program, args, { descriptors, env, timeoutMs: 90_000 });
}

test('builds fail while there are no file descriptors, and succeed afterwards', async () => {
  const ran = await runLimited(128, 'no-descriptors', [], { MILLRACE_CACHE_DIR: path.join(scratch, 'cache') });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  const { failures, worked, state } = JSON.parse(ran.stdout) as { failures: string[]; worked: number; state: string };
  expect(failures).toEqual(['UnavailableError ERR_MILLRACE_UNAVAILABLE']);
  expect({ worked, state }).toEqual({ worked: 12, state: 'open' });
}, 100_000);

// Each in a process of its own, because only the first build of a thread can find that something was never loaded.
test.each(IS_LONG ? [0, 1, 2, 4] : [0, 2])(
  'a TypeScript kernel whose build is the first of its process, with %i file descriptors left, builds afterwards',
  async (spare) => {
    const env = { MILLRACE_CACHE_DIR: path.join(scratch, `first-${spare}`) };
    const ran = await runLimited(128, 'no-descriptors-first', [String(spare)], env);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const without = 'UnavailableError ERR_MILLRACE_UNAVAILABLE';
    expect(JSON.parse(ran.stdout)).toEqual({ without, again: 'built', other: 'built', values: [7, 8], state: 'open' });
  },
  100_000,
);

// With one descriptor for each kernel that waits they would exceed it.
test('150 kernels built at once stay below a limit of 160 file descriptors', async () => {
  const ran = await runLimited(160, 'many-kernels', ['150', 'cpu:0', '7'], {
    MILLRACE_CXX: copyingCompiler(scratch),
    MILLRACE_CACHE_DIR: path.join(scratch, 'many'),
  });
  expect(ran).toMatchObject({ code: 0, stderr: '', stdout: '150 of 150\n' });
}, 100_000);
