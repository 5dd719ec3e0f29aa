// S615 for each function of the driver: a program that uses everything runs while one call fails. The short form makes the first call of each
// function fail, with codes in turn; the long form (MILLRACE_LONG) the first 40 calls of each, with every code.
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import type { Fate } from './programs/every-failure.js';

const IS_LONG = process.env['MILLRACE_LONG'] === '1';
const PROGRAM = fileURLToPath(new URL('./programs/every-failure.ts', import.meta.url));
/** Out of memory, not supported, invalid value. */
const CODES = [2, 801, 1];
/** Those that lose the device: a kernel that failed, an unknown error. */
const LOSSES = [719, 999];
/** The short form loses the device with one function of so many: each time, a new process starts. */
const LOSS_EVERY = 8;
const MOST_CALLS = IS_LONG ? 40 : 1;
const SIDE_BY_SIDE = 2;

const files: string[] = [];
afterAll(() => files.forEach((file) => rmSync(file, { force: true })));

/** Prints lines of JSON. */
async function run<T>(worker: number, failures: readonly string[]): Promise<readonly T[]> {
  const file = path.join(os.tmpdir(), `millrace-failure-${process.pid}-${worker}`);
  files.push(file, `${file}.log`);
  writeFileSync(file, '');
  const env = { ...process.env, NODE_OPTIONS: '', MILLRACE_FAKE_CUDA_FAIL: `@${file}`, MILLRACE_FAKE_CUDA_LOG: `${file}.log` };
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, ...failures], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const code = await new Promise<number | string | null>((resolve) => child.on('close', (status, signal) => resolve(signal ?? status)));
  const lines = stdout.split('\n').filter((line) => line !== '');
  if (code !== 0) throw new Error(`${failures[lines.length] ?? 'the run without failures'} ended the process (${code}): ${stderr}`);
  return lines.map((line) => JSON.parse(line) as T);
}

test('S615 whichever call of the driver fails, promises settle, values are right, and a device works or is lost', {
  timeout: 7_200_000,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const [counts] = await run<Readonly<Record<string, number>>>(0, []);
  const codesOf = (at: number): readonly number[] =>
    IS_LONG ? [...CODES, ...LOSSES] : [at % LOSS_EVERY === 0 ? LOSSES[(at / LOSS_EVERY) % LOSSES.length]! : CODES[at % CODES.length]!];
  const failures = Object.entries(counts!).flatMap(([name, count], at) =>
    Array.from({ length: Math.min(count, MOST_CALLS) }, (_, n) => codesOf(at).map((code) => `${name}:${n + 1}:${code}`)).flat(),
  );
  expect(Object.keys(counts!).length).toBeGreaterThan(75);
  const fates: Fate[] = [];
  const left = [...failures];
  const work = async (worker: number): Promise<void> => {
    for (let part = left.splice(0, 10); part.length > 0; part = left.splice(0, 10)) {
      // A process ends with the first device that is lost.
      for (let from = 0; from < part.length; ) {
        const some = await run<Fate>(worker, part.slice(from));
        fates.push(...some);
        from += some.length;
      }
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, (_, worker) => work(worker)));
  expect(fates.flatMap(({ failure, faults }) => faults.map((fault) => `${failure}: ${fault}`))).toEqual([]);
  expect(fates.length).toBe(failures.length);
  // Calls that depend on the time may be fewer.
  expect(fates.filter(({ isReached }) => isReached).length).toBeGreaterThan(0.9 * failures.length);
});
