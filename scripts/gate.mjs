// The regression gate: how many instructions the hot paths execute, compared with bench/gate-baseline.json. Instructions, not times, so a
// busy or slow machine changes nothing; bench/native/step_counter.cpp counts them with ptrace, which needs no performance counters.
//
//   node scripts/gate.mjs            exit code 1 if a path executes more than its tolerance above the baseline
//   node scripts/gate.mjs --update   writes what it counted as the baseline of this compiler and this V8
//
// The programs are built by scripts/test-native.mjs. What cannot be counted here is skipped, with the reason.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './tools.mjs';

const BASELINE = join(root, 'bench', 'gate-baseline.json');
const BUILT = join(root, 'build', 'cmake', 'bench', 'native');
const COUNTER = join(BUILT, 'step_counter');
/** Counts of the native paths are equal from run to run; another patch of the compiler may change a few instructions. */
const NATIVE_TOLERANCE = 0.05;
/** What V8 compiles of a call differs by up to 3.3 % from run to run. */
const CALL_TOLERANCE = 0.08;
/** A machine that is busy with other things switches rarely between the counter and the program. */
const TIMEOUT_MS = 180_000;
/** The C library copies a record by other instructions on other processors: 127 to 142 of a submission, for the same code. */
const ONE_COPY = { GLIBC_TUNABLES: 'glibc.cpu.hwcaps=-AVX512F,-AVX_Fast_Unaligned_Load,-SSSE3,-ERMS' };
/** What the programs submit in a region. */
const RECORDS = 100;
const CALLS = 5;
/** In the order of call-steps.mjs. */
const CALL_PATHS = [
  'launch, tracked',
  'launch, explicit',
  'copy of pinned memory, tracked',
  'copy of an ordinary array, explicit',
  'sum of two arrays, disposed',
];
/** Their median: V8 may collect garbage in one of them. */
const ROUNDS = 3;
const NOT_ALLOWED = 3;

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Counts of the regions, or the reason why there are none. */
function count(args) {
  const { status, signal, error, stdout, stderr } = spawnSync(COUNTER, args, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, ...ONE_COPY },
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  if (signal !== null) return `it took longer than ${TIMEOUT_MS / 1000} s`;
  if (status === NOT_ALLOWED) return stderr.trim();
  if (status !== 0) throw new Error(`step_counter ${args.join(' ')} failed: ${stderr}${error ?? ''}`);
  return JSON.parse(stdout);
}

function nativeCounts(path) {
  const counts = count([join(BUILT, 'channel_records'), path]);
  return typeof counts === 'string' ? counts : (median(counts.slice(1)) - counts[0]) / RECORDS;
}

/** By path. Without --single-threaded, V8 may compile in the middle of a region. */
function callCounts() {
  const program = join(root, 'test', 'process', 'programs', 'call-steps.mjs');
  const counts = count([process.execPath, '--single-threaded', program, String(ROUNDS)]);
  const kind = (at) => median(counts.filter((_, n) => n % (CALL_PATHS.length + 1) === at));
  const found = (n) => (typeof counts === 'string' ? counts : (kind(n + 1) - kind(0)) / CALLS);
  return Object.fromEntries(CALL_PATHS.map((path, n) => [path, found(n)]));
}

function compiler() {
  const cache = readFileSync(join(root, 'build', 'cmake', 'CMakeCache.txt'), 'utf8');
  const path = /^CMAKE_CXX_COMPILER:[A-Z]+=(.*)$/m.exec(cache)?.[1] ?? 'c++';
  const [first] = execFileSync(path, ['--version'], { encoding: 'utf8' }).split('\n');
  const version = /(\d+)\.\d+/.exec(first)?.[1];
  return `${/clang/i.test(first) ? 'clang' : 'g++'} ${version}`;
}

if (!existsSync(COUNTER)) {
  console.log(`skipped: ${COUNTER} is not built; node scripts/test-native.mjs --benches builds it.`);
  process.exit(0);
}
const processor = process.arch === 'x64' ? '' : ` on ${process.arch}`;
const v8 = `V8 ${process.versions.v8.split('.').slice(0, 2).join('.')}${processor}`;
const measured = [
  [
    compiler() + processor,
    NATIVE_TOLERANCE,
    { 'channel, a submission': nativeCounts('submit'), 'channel, a launch record': nativeCounts('channel') },
  ],
  [v8, CALL_TOLERANCE, callCounts()],
];
const baseline = existsSync(BASELINE) ? JSON.parse(readFileSync(BASELINE, 'utf8')) : {};
let failed = 0;
for (const [maker, tolerance, paths] of measured) {
  for (const [path, found] of Object.entries(paths)) {
    const before = baseline[maker]?.[path];
    if (typeof found === 'string') console.log(`skipped: ${path}: ${found}`);
    else if (process.argv.includes('--update')) (baseline[maker] ??= {})[path] = Math.round(found);
    else if (before === undefined) console.log(`skipped: ${path}: ${Math.round(found)} instructions; no baseline for ${maker}`);
    else {
      const ratio = found / before;
      const isOver = ratio > 1 + tolerance;
      if (isOver) failed++;
      const verdict = isOver ? 'FAILED' : ratio < 1 - tolerance ? 'passed; --update makes this the baseline' : 'passed';
      const limit = `${ratio.toFixed(3)} of the baseline's ${before} (${maker}; at most ${1 + tolerance})`;
      console.log(`${verdict}: ${path}: ${Math.round(found)} instructions, ${limit}`);
    }
  }
}
if (process.argv.includes('--update')) writeFileSync(BASELINE, `${JSON.stringify(baseline, undefined, 2)}\n`);
process.exit(failed > 0 ? 1 : 0);
