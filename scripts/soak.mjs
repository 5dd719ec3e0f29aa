// Runs tests for hours that CI runs for minutes: the conformance suite on CPU devices with randomised schedules, one seed after
// another; random programs against the model; and the long forms of tests. Prints each failure with the command that repeats it.
//
//   --seeds 1-1000     the seeds; 0 for none
//   --programs 10000   the number of random programs; 0 for none
//   --long 3           the number of runs of the long forms, with other random kernels each time; 0 for none
//   --jobs N           parallel runs; default: one for every two cores, because some tests need two kernels to overlap
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bin } from './tools.mjs';

/** Tests of random programs in one run: tracked and checked, on one device and on two. */
const KINDS = 4;
const PROGRAMS_A_RUN = 1000;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1-1000' },
    programs: { type: 'string', default: '10000' },
    long: { type: 'string', default: '3' },
    jobs: { type: 'string', default: String(Math.max(1, Math.floor(availableParallelism() / 2))) },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'millrace-soak-'));
const failures = [];

/** Runs some tests. On failure, records the output and the command that repeats it. */
async function run(nth, { what, env, args, minutes = 30 }) {
  const report = join(folder, `${nth}.json`);
  const started = performance.now();
  const command = ['run', ...args, '--reporter=json', `--outputFile=${report}`];
  const child = spawn(process.execPath, [bin('vitest/vitest.mjs'), ...command], {
    env: { ...process.env, ...env },
    stdio: 'ignore',
    timeout: minutes * 60_000,
    killSignal: 'SIGKILL',
  });
  const [status, signal] = await once(child, 'exit');
  const failed = status === 0 ? [] : failedOf(report, status ?? signal);
  rmSync(report, { force: true });
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const repeat = [...settings, 'npx vitest run', ...args].join(' ');
  console.log(`${what}: ${failed.length === 0 ? 'passed' : `${failed.length} failed`} (${seconds} s)`);
  for (const text of failed) {
    console.log(`  ${text}\n  ${repeat}`);
    failures.push(`${what}: ${text}`);
  }
}

function failedOf(report, ended) {
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
    const tests = testResults.flatMap((file) => file.assertionResults).filter((test) => test.status === 'failed');
    const texts = tests.map((test) => `${test.fullName}: ${test.failureMessages.join(' ').slice(0, 2000)}`);
    return texts.length > 0 ? texts : [`a file did not run: ${testResults.map((file) => file.message).join(' ')}`];
  } catch {
    return [`the run ended with ${ended} and left no report`];
  }
}

function wholeNumber(name, least) {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < least) throw new Error(`--${name} (${values[name]}) is not a whole number from ${least}.`);
  return value;
}

function* seededRuns() {
  const [first, last = first] = values.seeds.split('-').map(Number);
  if (!Number.isInteger(first) || !Number.isInteger(last)) throw new Error(`The seeds (${values.seeds}) are not like 7 or 1-1000.`);
  if (first === 0) return;
  for (let seed = first; seed <= last; seed++) {
    const env = { MILLRACE_CPU_SEED: String(seed), MILLRACE_PROGRAMS: '50' };
    yield {
      what: `seed ${seed}, one device`,
      env,
      args: ['--project', 'cpu'],
    };
    yield { what: `seed ${seed}, two devices`, env, args: ['--project', 'two-cpu'] };
  }
}

function* programRuns() {
  const programs = wholeNumber('programs', 0);
  for (let done = 0; done < programs; done += PROGRAMS_A_RUN) {
    // Randomise the schedule in every second run.
    const schedule = (done / PROGRAMS_A_RUN) % 2 === 0 ? {} : { MILLRACE_CPU_SEED: String(done + 1) };
    const each = Math.ceil(Math.min(PROGRAMS_A_RUN, programs - done) / KINDS);
    yield {
      what: `programs ${done + 1} to ${Math.min(done + PROGRAMS_A_RUN, programs)}`,
      env: { ...schedule, MILLRACE_PROGRAMS: String(each) },
      args: ['--project', 'cpu', '--project', 'two-cpu', '-t', 'random programs'],
    };
  }
}

/** Tests that `npm test` runs with fewer random kernels and rounds, and whose kernels it compiles with -O1. */
const LONG_TESTS = [
  'test/package/matrix.test.ts',
  'test/process/end-anywhere.test.ts',
  'test/process/teardown.test.ts',
  'test/process/terminate-anywhere.test.ts',
  'test/process/terminate-file-operations.test.ts',
  'test/unit/compiler/kernel-soup.test.ts',
  'test/unit/compiler/places.test.ts',
  'test/unit/compiler/tool-matrix.test.ts',
  'test/unit/core/access-history.test.ts',
  'test/unit/core/kept-failures.test.ts',
  'test/unit/toolchain/hidden-changes.test.ts',
  'test/unit/toolchain/parameter-checks.test.ts',
  'test/unit/toolchain/plain-indices.test.ts',
  'test/unit/toolchain/random-cuda.test.ts',
  'test/unit/toolchain/regions.test.ts',
  'test/unit/toolchain/simd-columns.test.ts',
  'test/unit/toolchain/simd-element-width.test.ts',
  'test/unit/toolchain/simd.test.ts',
  'test/unit/toolchain/source-mistakes.test.ts',
  'test/unit/toolchain/token-soup.test.ts',
  'test/unit/toolchain/value-checks.test.ts',
];
/** Thousands of failures, a second or less for each. */
const EVERY_FAILURE = 'test/process/every-failure.test.ts';
const OPERATIONS = ['test/conformance/arithmetic/operations.test.ts', 'test/conformance/arithmetic/shaped-operations.test.ts'];
const LONG_KERNELS = 40;
const LONG_TEXTS = 12;

function* longRuns() {
  if (wholeNumber('long', 0) > 0)
    yield { what: 'every failure', env: { MILLRACE_LONG: '1' }, args: ['--project', 'programs', EVERY_FAILURE], minutes: 240 };
  for (let at = 0; at < wholeNumber('long', 0); at++) {
    const random = { MILLRACE_KERNELS: String(LONG_KERNELS), MILLRACE_KERNEL_SEED: String(1 + at * LONG_KERNELS) };
    // No later run has these texts, so what is compiled of them is not kept.
    const texts = { MILLRACE_SEEDS: `${at * LONG_TEXTS},${(at + 1) * LONG_TEXTS}` };
    const operations = { MILLRACE_LONG: '1', MILLRACE_OPS_SEED: String(at + 1) };
    yield { what: `operations, ${at + 1}`, env: operations, args: ['--project', 'cpu', ...OPERATIONS] };
    yield { what: `long forms, ${at + 1}`, env: { MILLRACE_LONG: '1', MILLRACE_TEST_CACHE: 'off', ...random, ...texts }, args: LONG_TESTS };
  }
}

const runs = [...longRuns(), ...programRuns(), ...seededRuns()].entries();
// Each worker takes the next run when it has finished one, because they share the iterator.
await Promise.all(
  Array.from({ length: wholeNumber('jobs', 1) }, async () => {
    for (const [nth, each] of runs) await run(nth, each);
  }),
);

rmSync(folder, { recursive: true, force: true });
console.log(failures.length === 0 ? 'Nothing failed.' : `${failures.length} failed.`);
process.exitCode = failures.length === 0 ? 0 : 1;
