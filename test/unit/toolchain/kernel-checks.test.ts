// The parameters of a module's kernels are compared in passes beside the module's one compilation.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { readModule } from '../../../src/compiler/definitions/cuda-module.js';
import { CompileError, UnavailableError } from '../../../src/core/base/errors.js';
import type { KernelCompiler } from '../../../src/toolchain/compilers/compiler.js';
import { KernelChecks } from '../../../src/toolchain/images/kernel-checks.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { f32, f64, i32, u64 } from '../../../src/core/elements/dtype.js';
import { type CudaParams, inout } from '../../../src/core/kernels/kernel.js';
import { arrayOf, struct } from '../../../src/core/kernels/value-params.js';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { hasNvcc } from '../../support/nvcc.js';
import { RTC } from '../../support/rtc.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-kernel-checks-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let directory: string;
let log: string;
beforeEach(() => {
  directory = mkdtempSync(join(scratch, 'cache-'));
  log = join(directory, 'log');
  writeFileSync(log, '');
  writeFileSync(join(directory, 'cxx'), `#!/bin/sh\necho "$*" >> ${log}\nexec g++ "$@"\n`);
  chmodSync(join(directory, 'cxx'), 0o755);
});

/** A builder whose compiler runs are recorded. */
const cpu = (env: NodeJS.ProcessEnv = { MILLRACE_CXX: join(directory, 'cxx') }): KernelBuilder =>
  new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: join(directory, 'cache'), ...env });

/** How many images the compiler made, and how many times it only checked. */
function runs(): { readonly images: number; readonly passes: number } {
  const lines = readFileSync(log, 'utf8').split('\n');
  return {
    images: lines.filter((line) => line.includes('-shared')).length,
    passes: lines.filter((line) => line.includes('-fsyntax-only')).length,
  };
}

const Sizes = struct({ n: i32, scale: f32, shifts: arrayOf(f32, 2) });
const SOURCE = `typedef double Real;
struct Sizes { int n; float scale; float shifts[2]; };
namespace far { __global__ void far_one(float* y, Sizes sizes) { y[0] = sizes.scale; } }
extern "C" __global__ void scale(float* y, Sizes sizes) {
  __shared__ float s[32];
  s[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[31 - threadIdx.x] * sizes.scale;
}
__device__ float shifted(float value) { return __shfl_sync(0xffffffffu, value, (threadIdx.x + 1) % 32); }
__global__ void shift(float* y, Sizes sizes) { y[threadIdx.x] = shifted(y[threadIdx.x]) + sizes.shifts[1]; }
__global__ void add(Real* y, decltype(sizeof(0)) by) { y[0] += by; }
__global__ void plain(int n) {}`;
const module = readModule(SOURCE, {}, { file: 'module.ts', line: 1 });
const buildOf = (name: string, params: CudaParams): BuildSpec => module.kernel(name, params).build as BuildSpec;
const RIGHT: readonly BuildSpec[] = [
  buildOf('far_one', { y: inout(f32), sizes: Sizes }),
  buildOf('scale', { y: inout(f32), sizes: Sizes }),
  buildOf('shift', { y: inout(f32), sizes: Sizes }),
  buildOf('add', { y: inout(f64), by: u64 }),
];
/** Its size is right, and only the compiler sees the type. */
const WRONG: BuildSpec = buildOf('add', { y: inout(f64), by: f64 });
const PROBLEM =
  "The parameter 'by' (f64) is 'decltype(sizeof(0)) by' in the source, at position 2: its type there is an unsigned integer of 8 bytes";

test('a module is compiled once, and its kernels are checked in one pass; the next process does neither', { timeout: 60_000 }, async () => {
  const work = (builder: KernelBuilder): Promise<unknown> =>
    Promise.all([builder.build(module.build), ...RIGHT.map((kernel) => builder.checkParameters(kernel))]);
  await work(cpu());
  expect(runs()).toEqual({ images: 1, passes: 1 });
  await work(cpu());
  expect(runs()).toEqual({ images: 1, passes: 1 });
});

test('a kernel whose parameters differ has its own error, and the others have none', { timeout: 60_000 }, async () => {
  const builder = cpu();
  const kernels = [...RIGHT, WRONG];
  const ends = await Promise.allSettled(kernels.map((kernel) => builder.checkParameters(kernel)));
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
  const { reason } = ends[4] as PromiseRejectedResult;
  expect(reason).toBeInstanceOf(CompileError);
  expect((reason as CompileError).message).toContain(PROBLEM);
  expect((reason as CompileError).diagnostics).toHaveLength(1);
  // It is no error that the cache keeps.
  await expect(cpu().checkParameters(WRONG)).rejects.toThrow(PROBLEM);
});

test('kernels without such parameters need no pass', async () => {
  const kernel = buildOf('plain', { n: i32 });
  expect(kernel.parameterChecks).toBeUndefined();
  await cpu().checkParameters(kernel);
  expect(runs()).toEqual({ images: 0, passes: 0 });
});

test('a machine without a compiler takes from the cache what was checked elsewhere', { timeout: 60_000 }, async () => {
  await cpu().checkParameters(RIGHT[0]!);
  const none = cpu({ PATH: '/nonexistent', CXX: '', MILLRACE_CXX: '' });
  await none.checkParameters(RIGHT[0]!);
  await expect(none.checkParameters(RIGHT[1]!)).rejects.toThrow(UnavailableError);
});

test('parameters of a source whose headers may change are checked each time', { timeout: 60_000 }, async () => {
  const own = readModule(SOURCE, { options: [`-I${directory}`] }, { file: 'module.ts', line: 1 });
  const kernel = own.kernel('add', { y: inout(f64), by: u64 }).build as BuildSpec;
  await cpu().checkParameters(kernel);
  await cpu().checkParameters(kernel);
  expect(runs()).toEqual({ images: 0, passes: 2 });
});

const COMPILERS = [
  ['the CPU device', true, () => CpuCompiler.open()],
  ['the CPU device that finds races', true, () => CpuCompiler.open(process.env, undefined, true)],
  ['nvcc', hasNvcc, () => NvccCompiler.open('sm_90')],
  ['NVRTC', RTC !== undefined, () => Promise.resolve(new NvrtcCompiler(RTC!, 'sm_90'))],
] as const;

describe.each(COMPILERS)('%s', (_name, isThere, open) => {
  test.skipIf(!isThere)('checks several kernels at once (skipped without the compiler)', { timeout: 60_000 }, async () => {
    const compiler = await open();
    await compiler.check(RIGHT);
    await expect(compiler.check([...RIGHT, WRONG])).rejects.toThrow(PROBLEM);
    const layout = struct({ n: i32, scale: f32, shifts: arrayOf(f32, 2) }, { align: 16 });
    await expect(compiler.check([buildOf('far_one', { y: inout(f32), sizes: layout })])).rejects.toThrow(
      'its alignment there is not 16 bytes',
    );
    await expect(compiler.check([RIGHT[0]!, buildOf('add', { y: inout(f64), by: i32 })])).rejects.toThrow("The parameter 'by' (i32)");
  });
});

describe.each(COMPILERS.filter(([name]) => name !== 'nvcc'))('%s', (_name, isThere, open) => {
  test.skipIf(!isThere)('an instance that cannot be is named (skipped without the compiler)', { timeout: 60_000 }, async () => {
    const own = readModule(
      'template <int N> __global__ void shift(int* x) { x[0] += N; }\n__global__ void plain(int* x) {}',
      {},
      {
        file: 'module.ts',
        line: 1,
      },
    );
    own.kernel('shift<Absent>', { x: inout(i32) });
    const compiler = await open();
    const error: unknown = await compiler.compile(own.closed()).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CompileError);
    const { message, log: output } = error as CompileError;
    expect(message).toMatch(/^K702: The module of kernels 'plain, shift<Absent>' does not compile with .*Absent/);
    for (const text of [message, output]) expect(text).not.toMatch(/exports|__nv_name_map|\bmr_|\bMR_/);
    expect(message).toContain('at module.ts:1:1');
  });
});

/** A module with instances of a template. */
function folding(): { readonly build: BuildSpec; readonly kernels: readonly BuildSpec[] } {
  const source = `#if 0
__global__ void left_out() {}
#endif
__device__ int kept;
namespace a { template <class T, int N> __global__ void fold(T* x) { x[0] += N; } }
__global__ void plain(decltype(0)* x) { x[0] = kept; }`;
  const own = readModule(source, {}, { file: 'module.ts', line: 1 });
  const kernels = [
    own.kernel('plain', { x: inout(i32) }),
    own.kernel('fold<float, 2>', { x: inout(f32) }),
    own.kernel('a::fold<int, -2>', { x: inout(i32) }),
  ];
  return { build: own.closed(), kernels: kernels.map(({ build }) => build as BuildSpec) };
}

test('the image of a module has the instances of templates that were asked for', { timeout: 60_000 }, async () => {
  const { build, kernels } = folding();
  expect(build.instances).toEqual(['a::fold<float, 2>', 'a::fold<int, -2>']);
  const { image, symbolOf } = await cpu().build(build);
  const names = readFileSync(Buffer.from(image).toString(), 'latin1');
  for (const { path } of kernels) expect(names).toContain(`mr_entry_${symbolOf(path!)}`);
  const others = await cpu().build({ ...build, instances: ['a::fold<float, 2>'] });
  expect(others.fromCache).toBe(false);
});

test.skipIf(RTC === undefined)('NVRTC names the instances of a module (skipped without it)', { timeout: 60_000 }, async () => {
  const { build, kernels } = folding();
  const builder = new KernelBuilder({ backend: 'cuda', computeCapability: [9, 0], nvrtc: RTC! }, { MILLRACE_CACHE: 'off' });
  await Promise.all(kernels.map((kernel) => builder.checkParameters(kernel)));
  const { symbolOf } = await builder.build(build);
  // The preprocessor left a kernel out, so the others have no table; instances have one all the same.
  expect(kernels.map(({ path }) => symbolOf(path!))).toEqual(['plain', '_ZN1a4foldIfLi2EEEvPT_', '_ZN1a4foldIiLin2EEEvPT_']);
});

test.skipIf(!hasNvcc)(
  'nvcc refuses the instances of a module, and builds its other kernels (skipped without it)',
  { timeout: 60_000 },
  async () => {
    const { build, kernels } = folding();
    const builder = new KernelBuilder({ backend: 'cuda', computeCapability: [9, 0] }, { ...process.env, MILLRACE_CACHE: 'off' });
    expect((await builder.build(build)).image.length).toBeGreaterThan(0);
    const ends = await Promise.allSettled(kernels.map((kernel) => builder.checkParameters(kernel)));
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    const { reason } = ends[1] as PromiseRejectedResult;
    expect(reason).toBeInstanceOf(UnavailableError);
    expect((reason as Error).message).toContain("K701: Kernel 'fold<float, 2>' is a template");
  },
);

test.skipIf(!hasNvcc)(
  'nvcc: kernels of one name in several namespaces have symbols of their own (skipped without it)',
  { timeout: 60_000 },
  async () => {
    const source = `namespace a { __global__ void k(int* y) { y[0] = 1; } static __global__ void s(int* y) { y[0] = 2; } }
namespace b { namespace { __global__ void k(int* y) { y[0] = 3; } } __global__ void s(int* y) { y[0] = 4; } }
extern "C" __global__ void s(int* y) { y[0] = 5; }`;
    const { build } = readModule(source, {}, { file: 'module.ts', line: 1 });
    const builder = new KernelBuilder({ backend: 'cuda', computeCapability: [9, 0] }, { ...process.env, MILLRACE_CACHE: 'off' });
    const { image, symbolOf } = await builder.build(build);
    const symbols = ['a::k', 'a::s', 'b::k', 'b::s'].map(symbolOf);
    expect(symbols).toEqual(['k', '_ZN1a1sEPi', expect.stringMatching(/^_ZN1b\d+_GLOBAL__N_\w+1kEPi$/), '_ZN1b1sEPi']);
    for (const symbol of symbols) expect(Buffer.from(image).includes(`.text.${symbol}\0`), symbol).toBe(true);
  },
);

test('kernels that a compiler refuses are not checked, and the others in one pass', async () => {
  const passes: string[][] = [];
  const refused = new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'Not here.', []);
  const compiler: KernelCompiler = {
    label: 'refusing',
    identity: 'refusing',
    hasFolders: false,
    compile: () => Promise.reject(new Error('no image')),
    refusal: ({ entry }) => (entry === 'scale' ? refused : undefined),
    check: async (kernels) => void passes.push(kernels.map(({ entry }) => entry)),
  };
  const checks = new KernelChecks();
  const ends = await Promise.allSettled(RIGHT.map((kernel) => checks.check(compiler, 'module', kernel)));
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect((ends[1] as PromiseRejectedResult).reason).toBe(refused);
  expect(passes).toEqual([['far_one', 'shift', 'add']]);
});
