// Gives damaged input to what reads the input of others. libFuzzer, which needs clang++, looks for records and definitions of graphs that
// reach new code, under AddressSanitizer; the other readers get inputs damaged at random. What libFuzzer has found is kept in
// ~/.cache/millrace/fuzz (XDG_CACHE_HOME) and where the next run begins. An input that fails is printed or written to build/fuzz.
//
//   --inputs 10000000   records, and of other readers a share each: a half of tokens, a thousandth of files
//   --jobs N            processes of libFuzzer; default: one for each core
//   --seed 1            of the damage at random
import { mkdirSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { onPath, root, run } from './tools.mjs';

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '10000000' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    seed: { type: 'string', default: '1' },
  },
});
for (const [name, value] of Object.entries(values))
  if (!(Number(value) >= 1)) throw new Error(`--${name} (${value}) is not a number from 1.`);

const compiler = onPath('clang++');
if (compiler === undefined) {
  console.log('skipped: records. libFuzzer needs clang++, which is not on the PATH.');
} else {
  run(process.execPath, ['scripts/test-native.mjs', '--sanitize=fuzzer', '--build-only'], { env: { ...process.env, CXX: compiler } });
  const found = join(root, 'build', 'fuzz');
  const seeds = join(found, 'seeds');
  const corpus = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'millrace', 'fuzz', 'records');
  for (const folder of [seeds, corpus]) mkdirSync(folder, { recursive: true });
  const jobs = Number(values.jobs);
  const limits = [`-runs=${Math.ceil(Number(values.inputs) / jobs)}`, '-max_len=2048', `-artifact_prefix=${found}/`];
  const parallel = jobs > 1 ? [`-fork=${jobs}`] : [];
  run(join(root, 'build/native-tests-fuzzer/test/native/fuzz_records'), [corpus, seeds, ...limits, ...parallel], {
    env: { ...process.env, MILLRACE_FUZZ_SEEDS: seeds },
  });
}
run(process.execPath, ['--import', 'tsx', 'test/process/programs/damaged-inputs.ts', 'all', values.inputs, values.seed]);
