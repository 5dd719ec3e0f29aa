// Runs the steps of everything.ts while one call of the driver, or of the C library, fails, and checks what must hold then: every promise settles in time, a value
// that is given is right, an error is the library's own, each device is either lost or works as before, and what was made is given back.
//
//   every-failure.ts                                 prints how often each function is called, as JSON: by the first run of the steps in a
//                                                    process, and by a later one
//   every-failure.ts [warm] <function:n:code>...     makes the n-th call of the function fail with this code, one after the other; `warm`: the
//                                                    steps have run once before. Else what a process does only once fails, too
//
// Prints a line of JSON for each call that was made to fail. Ends after the first that lost a device, which cannot be opened again.
// Of the driver: MILLRACE_FAKE_CUDA_FAIL is @ and the name of a file, and MILLRACE_FAKE_CUDA_LOG names one. Of the C library, on CPU devices:
// MILLRACE_FAILING_CALLS and MILLRACE_FAILING_CALLS_LOG are, and LD_PRELOAD is the library of test/native/failing_calls.cpp.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { type Device, MillraceError, openDevice } from 'millrace';
import { ONLY_ON_CPU, ONLY_ON_CUDA, type Place, STEPS } from './everything.js';

/** What became of the failure of one call. */
export interface Fate {
  readonly failure: string;
  /** Whether the steps made so many calls of the function. */
  readonly isReached: boolean;
  /** The errors of the library. */
  readonly errors: readonly string[];
  /** What must not be. */
  readonly faults: readonly string[];
  readonly isLost: boolean;
}

/** What the one makes, the other one gives back. Closed streams are kept, and captures make graphs, so these are not compared. */
const PAIRS = [
  ['cuEventCreate', 'cuEventDestroy'],
  ['cuMemAlloc', 'cuMemFree'],
  ['cuMemAllocAsync', 'cuMemFreeAsync'],
  ['cuMemHostRegister', 'cuMemHostUnregister'],
  ['cuModuleLoadData', 'cuModuleUnload'],
  ['cuGraphInstantiateWithFlags', 'cuGraphExecDestroy'],
  ['cuArray3DCreate', 'cuArrayDestroy'],
  ['cuTexObjectCreate', 'cuTexObjectDestroy'],
  ['cuSurfObjectCreate', 'cuSurfObjectDestroy'],
  ['cuCtxPushCurrent', 'cuCtxPopCurrent'],
] as const;
/** Host memory whose page lock was refused is used without it as long as the device is open, and the error says what to do. */
const UNLOCKED = 'its host memory could not be page-locked, which a batch needs';
const DEADLINE_MS = 30_000;
/** While a call of the driver takes 5 s. */
const MOST_WAIT_MS = 2500;
const loop = { last: performance.now(), longestMs: 0 };
setInterval(() => {
  const now = performance.now();
  loop.longestMs = Math.max(loop.longestMs, now - loop.last);
  loop.last = now;
}, 20).unref();
const [, , ...failures] = process.argv;
const isWarm = failures[0] === 'warm' && failures.shift() !== undefined;
const isLong = process.env['MILLRACE_LONG'] === '1';
const isOfSystem = process.env['MILLRACE_FAILING_CALLS'] !== undefined;
const variable = isOfSystem ? 'MILLRACE_FAILING_CALLS' : 'MILLRACE_FAKE_CUDA_FAIL';
const file = process.env[variable]!.slice(1);
const log = process.env[isOfSystem ? 'MILLRACE_FAILING_CALLS_LOG' : 'MILLRACE_FAKE_CUDA_LOG']!;
const NAMES = isOfSystem ? (['cpu:0', 'cpu:1'] as const) : (['cuda:0', 'cuda:1'] as const);

const errors = new Set<string>();
const failedSteps = new Set<string>();
const faults: string[] = [];
process.on('unhandledRejection', (error) => void faults.push(`unhandled: ${textOf(error)}`));
process.on('uncaughtException', (error) => void faults.push(`uncaught: ${textOf(error)}`));

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function inTime<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle`)), DEADLINE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function judge(step: string, error: unknown): void {
  if (error instanceof Error && 'suppressed' in error) {
    judge(step, (error as SuppressedError).error);
    judge(step, error.suppressed);
  } else if (error instanceof AggregateError) {
    for (const each of error.errors) judge(step, each);
  } else if (error instanceof MillraceError && error.name !== 'InternalError') {
    errors.add(`${step}: ${error.name}: ${error.message}`);
  } else {
    faults.push(`${step}: ${textOf(error)}`);
  }
}

async function runSteps(devices: Omit<Place, 'stream'>, only?: ReadonlySet<string>): Promise<void> {
  for (const [step, run] of Object.entries(STEPS)) {
    if ((isOfSystem ? ONLY_ON_CUDA : ONLY_ON_CPU).includes(step) || only?.has(step) === false) continue;
    const failed = (error: unknown): void => {
      failedSteps.add(step);
      judge(step, error);
    };
    try {
      const stream = devices.device.createStream();
      await inTime(step, run({ ...devices, stream })).catch(failed);
      await inTime(`closing the stream of ${step}`, stream.close());
    } catch (error) {
      failed(error);
    }
  }
}

/** Opens both devices, and closes what was opened. A device that does not open is an error like any other. */
async function withDevices(run: (devices: Omit<Place, 'stream'>) => Promise<void>): Promise<boolean> {
  const opened: Device[] = [];
  for (const name of NAMES) {
    const opening = inTime(`opening ${name}`, openDevice(name));
    await opening.then((device) => opened.push(device)).catch((error: unknown) => judge(`openDevice of ${name}`, error));
  }
  const [device, peer] = opened;
  if (device !== undefined && peer !== undefined) await run({ device, peer });
  // A device may be lost while it opens.
  const isLost = opened.some(({ state }) => state === 'lost') || [...errors].some((error) => error.includes(': DeviceLostError: '));
  for (const each of opened) await inTime('close', each.close()).catch((error: unknown) => judge('close', error));
  return isLost;
}

/** How often each function did not fail, and whether one failed. */
function callsSince(from: number): { readonly counts: Counts; readonly isReached: boolean } {
  const counts: Record<string, number> = {};
  let isReached = false;
  for (const [, name, rest] of readFileSync(log)
    .subarray(from)
    .toString()
    .matchAll(/thread=\d+ (\w+)(.*)/g)) {
    if (/ (?:fails|takes)=/.test(rest!)) isReached = true;
    else counts[name!] = (counts[name!] ?? 0) + 1;
  }
  return { counts, isReached };
}

/** Fails calls as `failure` says while `run` runs. */
async function fateOf(failure: string): Promise<Fate> {
  const from = isOfSystem ? 0 : statSync(log).size;
  loop.longestMs = 0;
  writeFileSync(file, failure);
  const isLost = await withDevices(async (devices) => {
    await runSteps(devices);
    writeFileSync(file, '');
    if (devices.device.state === 'lost' || devices.peer.state === 'lost') return;
    // The same devices work. The steps behind the failed call have shown it of themselves, so the short form repeats those that failed.
    const before = [...errors];
    errors.clear();
    await runSteps(devices, isLong ? undefined : new Set(failedSteps));
    faults.push(...[...errors].filter((error) => !error.includes(UNLOCKED)).map((error) => `afterwards: ${error}`));
    errors.clear();
    for (const error of before) errors.add(error);
  });
  writeFileSync(file, '');
  const { counts, isReached } = callsSince(from);
  for (const [make, end] of isLost || isOfSystem ? [] : PAIRS) {
    // What the driver refuses to take back may be left.
    const left = (counts[make] ?? 0) - (counts[end] ?? 0);
    if (left !== 0 && !(left === 1 && failure.startsWith(`${end}:`))) faults.push(`${left} of ${make} are left`);
  }
  if (failure.endsWith('ms')) {
    if (isLost) faults.push('lost');
    for (const error of errors) faults.push(`late: ${error}`);
    if (loop.longestMs > MOST_WAIT_MS) faults.push(`the event loop stood still for ${loop.longestMs.toFixed(0)} ms`);
  }
  const fate = { failure, isReached, errors: [...errors], faults: [...faults], isLost };
  failedSteps.clear();
  errors.clear();
  faults.length = 0;
  return fate;
}

type Counts = Readonly<Record<string, number>>;
/** The steps run once, without a failure. */
async function callsOfSteps(): Promise<Counts> {
  const from = isOfSystem ? 0 : statSync(log).size;
  writeFileSync(file, '');
  await withDevices(runSteps);
  if (errors.size + faults.length > 0) throw new Error(`Without a failure:\n${[...errors, ...faults].join('\n')}`);
  return callsSince(from).counts;
}

if (failures.length === 0) {
  const cold = await callsOfSteps();
  console.log(JSON.stringify({ cold, warm: isOfSystem ? {} : await callsOfSteps() }));
}
if (isWarm) await callsOfSteps();
for (const failure of failures) {
  const fate = await fateOf(failure);
  console.log(JSON.stringify(fate));
  if (fate.isLost) break;
}
process.exit();
