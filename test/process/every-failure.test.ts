// S615: a program that uses everything runs while one call of the driver, or of the C library, fails. The long form (MILLRACE_LONG) takes the
// first 40 calls of each function, with every code, in as many processes as there are cores; the short form some of these, of as
// many functions, which MILLRACE_FAILURE_SEED chooses. MILLRACE_FAILURES chooses others: their number; a part of all, such as 2/3; or their names, as messages have them.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { randomOf } from '../support/failing-programs.js';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { IS_LONG } from '../support/long.js';
import { linesOf, runProgram } from './child.js';
import type { Fate } from './programs/every-failure.js';

const TIMEOUT_MS = IS_LONG ? 7_200_000 : 600_000;
const SIDE_BY_SIDE = IS_LONG ? os.availableParallelism() : 2;
const MOST_CALLS = 40;
const CHOSEN = process.env['MILLRACE_FAILURES'] ?? '';

/** Where kernels of these processes are kept. */
const { MILLRACE_CACHE_DIR, XDG_CACHE_HOME = path.join(os.homedir(), '.cache') } = process.env;
const KERNELS = MILLRACE_CACHE_DIR ?? path.join(XDG_CACHE_HOME, 'millrace/kernels');

type Counts = Readonly<Record<string, number>>;
interface Way {
  /** The variables that name the file with the failure, and the log. */
  readonly variables: readonly [failure: string, log: string];
  readonly env: Readonly<Record<string, string>>;
  readonly codesOf: (name: string) => readonly number[];
  /** After these a process cannot go on. */
  readonly losses: readonly number[];
  /** Whether a call may also take 5 s and succeed: nothing may be lost by that, nor the event loop stand still. */
  readonly hasDelays?: boolean;
  /** Of the short form. */
  readonly sample: number;
  /** They left something behind once, and come each time. */
  readonly mended: readonly string[];
}
const DRIVER: Way = {
  variables: ['MILLRACE_FAKE_CUDA_FAIL', 'MILLRACE_FAKE_CUDA_LOG'],
  env: {},
  // Out of memory, not supported, invalid value; a kernel that failed, an unknown error.
  codesOf: () => [2, 801, 1, 719, 999],
  losses: [719, 999],
  hasDelays: true,
  sample: 10,
  mended: ['cuStreamCreateWithPriority:4:2', 'cuModuleLoadData:6:801', 'cuCtxPushCurrent:38:1'],
};
const SYSTEM: Way = {
  variables: ['MILLRACE_FAILING_CALLS', 'MILLRACE_FAILING_CALLS_LOG'],
  env: { MILLRACE_CPU_DEVICES: '2', LD_PRELOAD: path.join(path.dirname(FAKE_DRIVER ?? ''), 'libfailing_calls.so') },
  // Without memory; without threads and processes, descriptors, room on the disk.
  codesOf: (name) => [{ pthread_create: 11, fork: 11, open: 24, write: 28, rename: 28 }[name] ?? 12],
  losses: [],
  sample: 5,
  mended: [],
};

const files = new Set<string>();
afterAll(() => files.forEach((file) => rmSync(file, { recursive: true, force: true })));

interface Run<T> {
  /** A line for each failure; without any, how often each function is called. */
  readonly printed: readonly T[];
  /** How the process ended, if it should not have. */
  readonly fault?: string;
}
async function run<T>({ variables, env }: Way, worker: number, args: readonly string[] = []): Promise<Run<T>> {
  const file = path.join(os.tmpdir(), `millrace-failure-${process.pid}-${worker}`);
  const log = `${file}.log`;
  // Compilers' files.
  const folder = path.join(os.tmpdir(), `millrace-failure-${process.pid}.files`);
  files.add(file).add(log).add(folder);
  for (const each of [file, log]) writeFileSync(each, '');
  mkdirSync(folder, { mode: 0o700, recursive: true });
  const own = { TMPDIR: folder, MILLRACE_FAILING_CALLS_IN: `${folder}:${KERNELS}` };
  const ending = await runProgram('every-failure.ts', args, {
    timeoutMs: TIMEOUT_MS,
    env: { ...env, ...(variables[0] === 'MILLRACE_FAILING_CALLS' ? own : {}), [variables[0]]: `@${file}`, [variables[1]]: log },
  });
  const printed = linesOf(ending).map((line) => JSON.parse(line) as T);
  const { code, signal, stderr } = ending;
  return code === 0 ? { printed } : { printed, fault: `ended the process (${signal ?? code}): ${stderr}` };
}

/** What one process meets. */
interface Part {
  readonly isWarm: boolean;
  readonly failures: readonly string[];
}

/**
 * Failures by name, and whether the steps ran before in that process. A loss ends its process, so it comes in the first run of the steps, as does
 * what a process calls less often later.
 */
function allOf(way: Way, { cold, warm }: { readonly cold: Counts; readonly warm: Counts }): ReadonlyMap<string, boolean> {
  const all = new Map<string, boolean>();
  for (const [name, count] of Object.entries({ ...warm, ...cold })) {
    const later = warm[name] ?? 0;
    for (let n = 1; n <= Math.min(Math.max(count, later), MOST_CALLS); n++)
      for (const code of way.codesOf(name)) {
        const isWarm = n <= later && !way.losses.includes(code);
        if (isWarm || n <= (cold[name] ?? 0)) all.set(`${name}:${n}:${code}`, isWarm);
      }
    if (way.hasDelays) all.set(`${name}:1:5000ms`, later > 0);
  }
  return all;
}

/** So many at random, of as many functions as there are. */
function sampleOf(all: readonly string[], count: number, seed: number): readonly string[] {
  const below = randomOf(seed);
  const left = [...all];
  const seen = new Map<string, number>();
  const turns = Array.from(all, () => {
    const [failure] = left.splice(below(left.length), 1) as [string];
    const name = failure.slice(0, failure.indexOf(':'));
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return [failure, seen.get(name)!] as const;
  });
  return turns
    .toSorted(([, a], [, b]) => a - b)
    .slice(0, count)
    .map(([failure]) => failure);
}

const isDelay = (failure: string): boolean => failure.endsWith('ms');
function choose(way: Way, all: readonly string[]): readonly string[] {
  const [, nth, parts] = /^(\d+)\/(\d+)$/.exec(CHOSEN) ?? [];
  if (nth !== undefined) return all.filter((_, at) => at % Number(parts) === Number(nth) - 1);
  if (CHOSEN.includes(':')) return CHOSEN.split(',');
  if (CHOSEN === '' && IS_LONG) return all;
  const seed = Number(process.env['MILLRACE_FAILURE_SEED'] ?? 1);
  const failing = all.filter((failure) => !isDelay(failure));
  const sample = sampleOf(failing, Number(CHOSEN) || way.sample, seed);
  const delay = sampleOf(all.filter(isDelay), 1, seed);
  return [...new Set([...delay, ...way.mended.filter((failure) => all.includes(failure)), ...sample])];
}

/** Runs the program for each failure. A process ends with the first device that is lost, and another one goes on. */
async function fatesOf(way: Way): Promise<void> {
  // Kernels that are built now are not built while calls are counted, nor while one fails.
  await run(way, 0);
  const { printed, fault: isBroken } = await run<{ readonly cold: Counts; readonly warm: Counts }>(way, 0);
  expect(isBroken).toBeUndefined();
  const all = allOf(way, printed[0]!);
  const chosen = choose(way, [...all.keys()]);
  const warm = chosen.filter((failure) => all.get(failure) && !isDelay(failure));
  const size = Math.max(1, Math.min(20, Math.ceil(warm.length / SIDE_BY_SIDE)));
  // The long ones first.
  const parts: Part[] = [];
  for (let at = 0; at < warm.length; at += size) parts.push({ isWarm: true, failures: warm.slice(at, at + size) });
  for (const failure of chosen) {
    const isWarm = all.get(failure) ?? false;
    if (isDelay(failure)) parts.unshift({ isWarm, failures: [failure] });
    else if (!isWarm) parts.push({ isWarm, failures: [failure] });
  }

  const unreached: string[] = [];
  const faults: string[] = [];
  const fault = (text: string): void => {
    faults.push(text);
    // A run of an hour shows what it has found.
    if (IS_LONG) process.stderr.write(`${text}\n`);
  };
  const work = async (worker: number): Promise<void> => {
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      for (let left = part.failures; left.length > 0; ) {
        const { printed: fates, fault: ended } = await run<Fate>(way, worker, [...(part.isWarm ? ['warm'] : []), ...left]);
        for (const fate of fates) for (const each of fate.faults) fault(`${fate.failure}: ${each}`);
        if (ended !== undefined) fault(`${left[fates.length] ?? left.at(-1)}: ${ended}`);
        for (const { failure, isReached } of fates) if (!isReached) unreached.push(failure);
        left = left.slice(fates.length + Number(ended !== undefined));
      }
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, (_, worker) => work(worker)));
  const names = [...new Set(faults.map((text) => text.match(/^\w+:\d+:\w+/)?.[0]))].join(',');
  expect(faults, `again: MILLRACE_FAILURES=${names} npx vitest run --project programs test/process/every-failure`).toEqual([]);
  // Calls that depend on the time may be fewer.
  expect(unreached.length, unreached.join(',')).toBeLessThanOrEqual(0.4 * chosen.length);
  if (IS_LONG) process.stderr.write(`${chosen.length} of ${all.size} failures, ${chosen.length - unreached.length} reached\n`);
}

test('S615 whichever call of the driver fails, promises settle, values are right, and a device works or is lost', {
  timeout: TIMEOUT_MS,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await fatesOf(DRIVER);
});

test('S615 whichever call of the system fails, promises settle, values are right, and a CPU device works or is lost', {
  timeout: TIMEOUT_MS,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await fatesOf(SYSTEM);
});
