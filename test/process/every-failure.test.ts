// S615: a program that uses everything runs while one call of the driver, or of the C library, fails. The short form takes a call of every
// third function of the driver and of each of the C library, with codes in turn; the long form (MILLRACE_LONG) the first 40 calls of each, with every code.
import { rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { IS_LONG } from '../support/long.js';
import { linesOf, runProgram } from './child.js';
import type { Fate } from './programs/every-failure.js';

const TIMEOUT_MS = IS_LONG ? 7_200_000 : 600_000;
const SIDE_BY_SIDE = 2;
const MOST_CALLS = 40;

type Counts = Readonly<Record<string, number>>;
interface Way {
  /** The variables that name the file with the failure, and the log. */
  readonly variables: readonly [failure: string, log: string];
  readonly env: Readonly<Record<string, string>>;
  /** How many failures a process meets. */
  readonly part: number;
}
const DRIVER: Way = { variables: ['MILLRACE_FAKE_CUDA_FAIL', 'MILLRACE_FAKE_CUDA_LOG'], env: {}, part: 40 };
// What a process does only once fails, too.
const SYSTEM: Way = {
  variables: ['MILLRACE_FAILING_CALLS', 'MILLRACE_FAILING_CALLS_LOG'],
  env: { MILLRACE_CPU_DEVICES: '2', LD_PRELOAD: path.join(path.dirname(FAKE_DRIVER ?? ''), 'libfailing_calls.so') },
  part: 1,
};

const files = new Set<string>();
afterAll(() => files.forEach((file) => rmSync(file, { force: true })));

/** What the program prints, a line of JSON for each failure; without any, how often it calls each function, which is `usual` later. */
async function run<T>({ variables, env }: Way, worker: number, usual?: Counts, failures: readonly string[] = []): Promise<readonly T[]> {
  const file = path.join(os.tmpdir(), `millrace-failure-${process.pid}-${worker}`);
  const log = `${file}.log`;
  files.add(file).add(log);
  for (const each of [file, log]) writeFileSync(each, '');
  const ending = await runProgram('every-failure.ts', usual === undefined ? [] : [JSON.stringify(usual), ...failures], {
    timeoutMs: TIMEOUT_MS,
    env: { ...env, [variables[0]]: `@${file}`, [variables[1]]: log },
  });
  const lines = linesOf(ending);
  const { code, signal, stderr } = ending;
  if (code !== 0)
    throw new Error(`${failures[lines.length] ?? 'the run without failures'} ended the process (${signal ?? code}): ${stderr}`);
  return lines.map((line) => JSON.parse(line) as T);
}

/** Runs the program for each failure. A process ends with the first device that is lost, and another one goes on. */
async function fatesOf(way: Way, usual: Counts, failures: readonly string[]): Promise<readonly Fate[]> {
  const fates: Fate[] = [];
  const left = [...failures];
  const work = async (worker: number): Promise<void> => {
    for (let part = left.splice(0, way.part); part.length > 0; part = left.splice(0, way.part)) {
      for (let from = 0; from < part.length; ) {
        const some = await run<Fate>(way, worker, usual, part.slice(from));
        fates.push(...some);
        from += some.length;
      }
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, (_, worker) => work(worker)));
  return fates;
}

function expectSurvived(fates: readonly Fate[], failures: readonly string[], leastReached: number): void {
  expect(fates.flatMap(({ failure, faults }) => faults.map((fault) => `${failure}: ${fault}`))).toEqual([]);
  expect(fates.length).toBe(failures.length);
  // Calls that depend on the time may be fewer.
  expect(fates.filter(({ isReached }) => isReached).length).toBeGreaterThan(leastReached * failures.length);
}

test('S615 whichever call of the driver fails, promises settle, values are right, and a device works or is lost', {
  timeout: TIMEOUT_MS,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const [counts = {}] = await run<Counts>(DRIVER, 0);
  expect(Object.keys(counts).length).toBeGreaterThan(75);
  // Out of memory, not supported, invalid value; those that lose the device: a kernel that failed, an unknown error.
  const [codes, losses] = [[2, 801, 1] as const, [719, 999] as const];
  // Each loss needs another process.
  const some = (at: number): number => (at % 39 === 0 ? losses[(at / 39) % losses.length]! : codes[Math.floor(at / 3) % codes.length]!);
  const failures = Object.entries(counts).flatMap(([name, count], at) =>
    Array.from({ length: IS_LONG ? Math.min(count, MOST_CALLS) : Number(at % 3 === 0) }, (_, n) =>
      (IS_LONG ? [...codes, ...losses] : [some(at)]).map((code) => `${name}:${n + 1}:${code}`),
    ).flat(),
  );
  // Those that lose the device come last.
  const isLoss = (failure: string): boolean => losses.some((code) => failure.endsWith(`:${code}`));
  failures.sort((a, b) => Number(isLoss(a)) - Number(isLoss(b)));
  expectSurvived(await fatesOf(DRIVER, counts, failures), failures, 0.9);
});

test('S615 whichever call of the system fails, promises settle, values are right, and a CPU device works or is lost', {
  timeout: TIMEOUT_MS,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const [counts = {}] = await run<Counts>(SYSTEM, 0);
  expect(Object.keys(counts).length).toBeGreaterThan(8);
  // Without memory, or threads.
  const failures = Object.entries(counts).flatMap(([name, count], at) => {
    const calls = IS_LONG ? Array.from({ length: Math.min(count, MOST_CALLS) }, (_, n) => n + 1) : [at % 2 === 0 ? 1 : Math.min(count, 6)];
    return [...new Set(calls)].map((n) => `${name}:${n}:${name === 'pthread_create' ? 11 : 12}`);
  });
  expectSurvived(await fatesOf(SYSTEM, counts, failures), failures, IS_LONG ? 0.3 : 0.6);
});
