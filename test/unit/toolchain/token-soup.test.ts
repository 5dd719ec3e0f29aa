// Sources with mistakes: the compiler reports them, and the library raises no internal error.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { IS_LONG } from '../../support/long.js';
import { read, soups, TEXTS } from './token-soup.js';

const RUNS = IS_LONG ? 100_000 : 300;

test('sources with mutated tokens compile, or are rejected with a CompileError', {
  timeout: 120_000 + RUNS * 20,
}, () => {
  for (const text of TEXTS) read(text);
  fc.assert(fc.property(soups, read), { numRuns: RUNS, seed: Number(process.env['MILLRACE_KERNEL_SEED'] ?? 20_261) });
});

test.each([
  ['a forgotten parenthesis', 'extern "C" __global__ void k(int* x) { __syncthreads(; }', /expected/],
  ['a brace that nothing closes', 'extern "C" __global__ void k(int* x) { if (x[0]) { __syncthreads(); x[0] = 1; }', /expected/],
  ['a bracket too many', 'extern "C" __global__ void k(int* x) { __syncthreads(); x[0]] = 1; }', /expected/],
  ['a conditional without an end', 'extern "C" __global__ void k(int* x) { x[0] = x[1] ? __syncthreads_or(1); }', /expected/],
])('the compiler says what is wrong with %s', { timeout: 60_000 }, async (_title, source, said) => {
  const compiler = await CpuCompiler.open();
  const facts = { entry: 'k', name: 'k', options: [], fmad: true, isBounded: false, isChecked: false };
  const error: unknown = await compiler
    .compile({ ...facts, source, mapping: { file: 'mine.cu', lines: [] } })
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CompileError);
  expect((error as CompileError).message).toMatch(said);
  expect((error as CompileError).diagnostics[0]).toMatchObject({ file: 'mine.cu', line: 1 });
});

// The reader looks for its end behind the last token.
test('a switch without a condition before another statement is no statement', () => {
  read(
    'extern "C" __global__ void k(int* x) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 4) { x[i] = 2; } switch switch (x[0]) { case 0: break; } }',
  );
  read(`extern "C" __global__ void k(int* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) { switch switch (x[0]) { case 0: break; } }
}`);
});

const LONG = 6_000;
/** Generous: each takes well under a second, but minutes with a quadratic algorithm. */
const MOST_MS = 10_000;

test.each(['<', '(', '{', '[', '::', '/*', '"', '#', 'template<'])(
  'a run of %s is read in a time that grows with its length',
  { timeout: 300_000 },
  (run) => {
    const start = performance.now();
    read(
      `__device__ int f() { __syncthreads(); return 1; }\n${run.repeat(LONG)}\nextern "C" __global__ void k(int* x, int n) { x[0] = f(); }`,
    );
    read(`${run.repeat(LONG)};\nextern "C" __global__ void k(int* x, int n) { ${run === '<' ? run.repeat(LONG) : ''}; __syncthreads(); }`);
    expect(performance.now() - start).toBeLessThan(MOST_MS);
  },
);
