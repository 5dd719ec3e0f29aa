// The output of compilers that errors carry, without names of this package.
import { describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { CompileError } from '../../../src/core/base/errors.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { readableLog } from '../../../src/toolchain/base/readable-log.js';
import { SHIM_DIRECTORY } from '../../../src/toolchain/base/package-and-cpu-identity.js';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { IS_LONG } from '../../support/long.js';
import { hasNvcc } from '../../support/nvcc.js';
import { RTC } from '../../support/rtc.js';

/** Each with what the log must say of it. */
const MISTAKES: readonly (readonly [what: string, source: string, says: RegExp])[] = [
  ['a plain kernel', '__global__ void k(float* x, int n) {\n  x[blockIdx.x] = missing(n);\n}', /of\.cu[:(]2[:)].*missing/],
  ['a barrier', '__global__ void k(float* x, int n) {\n  __syncthreads();\n  x[n] = missing;\n}', /of\.cu[:(]3[:)].*missing/],
  [
    'functions that wait',
    '__device__ float sum(float v) {\n  return missing + __shfl_down_sync(0xffffffffu, v, 1);\n}\n__global__ void k(float* x, int n) { x[n] = sum(x[n]); }',
    /of\.cu[:(]2[:)].*missing/,
  ],
  [
    'a template that waits',
    'template <class T> __device__ T sum(T v) {\n  __syncthreads();\n  return v.missing;\n}\n__global__ void k(float* x, int n) { x[n] = sum(x[n]); }',
    /of\.cu[:(]3[:)].*error/,
  ],
  ['an index with the wrong operand', '__global__ void k(float* x, int n) {\n  dim3 d = blockIdx * n;\n}', /of\.cu[:(]2[:)].*operator/],
  ['a wrong argument', '__global__ void k(float* x, int n) {\n  atomicAdd(x, "a");\n  __syncwarp();\n}', /of\.cu[:(]2[:)].*error/],
  [
    'a parameter',
    'template <class T> struct A { typedef T B; };\n__global__ void k(A<double>::B* x, int n) {}',
    /of\.cu[:(]2[:)].*parameter 'x'/,
  ],
];

const COMPILERS = [
  ['the CPU device', true, () => CpuCompiler.open()],
  ['nvcc', hasNvcc, () => NvccCompiler.open('sm_90')],
  ['NVRTC', RTC !== undefined, () => Promise.resolve(new NvrtcCompiler(RTC!, 'sm_90'))],
] as const;

describe.each(COMPILERS)('%s', (name, isThere, open) => {
  // What is rewritten for threads that wait is so for the CPU device alone.
  const mistakes = name === 'the CPU device' || IS_LONG ? MISTAKES : MISTAKES.filter(([what]) => !/barrier|that wait/.test(what));
  test.skipIf(!isThere).each(mistakes)('%s (skipped without the compiler)', { timeout: 60_000 }, async (_what, source, says) => {
    const compiler = await open();
    const spec = cudaKernel('k', { x: inout(f32), n: i32 }, source, { file: '/home/me/of.cu' }).build as BuildSpec;
    const error: unknown = await compiler.compile(spec).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CompileError);
    const { message, log, diagnostics } = error as CompileError;
    expect(log).toMatch(says);
    for (const text of [message, log, ...diagnostics.map((one) => one.message)]) expect(text).not.toMatch(/\bmr_|\bMR_|shim\/|kernel\.cu/);
    for (const { column } of diagnostics) expect(column).toBeLessThan(120);
  });
});

test('signatures are those of the source', async () => {
  const source =
    '__device__ float twice(float v) { __syncwarp(); return missing; }\n__global__ void k(float* x, int n) { x[n] = twice(x[n]) + missing; }';
  const compiler = await CpuCompiler.open();
  const spec = cudaKernel('k', { x: inout(f32), n: i32 }, source, { file: '/home/me/of.cu' }).build as BuildSpec;
  const { log } = (await compiler.compile(spec).catch((reason: unknown) => reason)) as CompileError;
  expect(log).toMatch(/^\/home\/me\/of\.cu: In function 'void k\(float\*, int\)':$/m);
  expect(log).toMatch(/^\/home\/me\/of\.cu: In function 'float twice\(float\)':$/m);
});

test('a function that is nowhere defined', async () => {
  const source = '__device__ void never(float*);\n__global__ void k(float* x, int n) { never(x); }';
  const spec = cudaKernel('k', { x: inout(f32), n: i32 }, source).build as BuildSpec;
  const compiler = await CpuCompiler.open();
  const { log } = (await compiler.compile(spec).catch((reason: unknown) => reason)) as CompileError;
  expect(log).toContain("in function `k':");
  expect(log).toMatch(/^undefined reference to `never\(float\*\)'$/m);
});

test('an error that only the headers have stays, and other logs are unchanged', () => {
  const log = `${SHIM_DIRECTORY}/atomics.h:42:5: error: 'mr_thing' was not declared in this scope\n   42 | mr_thing\n      | ^`;
  expect(readableLog(log)).toBe(`${SHIM_DIRECTORY}/atomics.h:42:5: error: 'thing' was not declared in this scope`);
  const own = "kernel.cu:3:1: error: 'x' was not declared\n    3 | x\n      | ^\nkernel.cu:1:1: note: here\n";
  expect(readableLog(own)).toBe(own);
});
