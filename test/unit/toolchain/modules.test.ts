// Images of modules: their exports, and when they are built.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exportsOf as everyExportOf } from '../../../src/toolchain/compilers/composed-source.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { COUNTERS, WEIGHTS } from '../../support/modules.js';
import { ImageRunner, specOf } from './run-image.js';

let scratch = '';
let runner: ImageRunner;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'millrace-modules-'));
  runner = new ImageRunner();
});
afterAll(() => {
  runner.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** Its variables, by the names that callers pass. */
function exportsOf(source: string): { kernels: readonly string[]; variables: readonly string[] } {
  const { kernels, variables } = everyExportOf(source);
  return { kernels, variables: [...variables!.keys()] };
}
const builder = (): KernelBuilder => new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: scratch });
const moduleOf = (source: string, entry: string): BuildSpec => specOf(source, entry, { isModule: true });

test('an image shows the kernels that are no templates, and the variables that the text defines', () => {
  expect(exportsOf(COUNTERS)).toEqual({ kernels: ['add', 'step'], variables: ['count', 'steps'] });
  expect(exportsOf(WEIGHTS)).toEqual({
    kernels: ['weigh', 'follow'],
    variables: ['physics::inner::gravity', 'weights', 'pairs', 'where', 'fixed'],
  });
  const text = `extern __device__ int elsewhere; __device__ int here;
__global__ void mangled() {} extern "C" { __global__ void plain() {} } template <class T> __global__ void many() {}`;
  expect(exportsOf(text)).toEqual({ kernels: ['mangled', 'plain'], variables: ['here'] });
});

test('all kernels of a module share one image, and a single kernel has its own', async () => {
  const images = builder();
  const module = await images.build(moduleOf(COUNTERS, ''));
  expect(module.fromCache).toBe(false);
  for (const entry of ['add', 'step']) {
    const again = await images.build(moduleOf(COUNTERS, entry));
    expect([again.fromCache, again.image]).toEqual([true, module.image]);
  }
  const alone = await images.build(specOf(COUNTERS, 'add'));
  expect([alone.fromCache, alone.image.length > 0]).toEqual([false, true]);
  expect(alone.image).not.toEqual(module.image);
});

test('kernels and variables behind macros and conditions are found, and absent ones are not exported', async () => {
  const source = `#define KERNEL extern "C" __global__ void
#define VARIABLE(type, name) __device__ type name
VARIABLE(int, made) = 5;
#if 0
__device__ int absent;
extern "C" __global__ void missing(int* x) {}
#endif
KERNEL use(int* x) { x[threadIdx.x] += made; }`;
  const { image } = await builder().build(moduleOf(source, ''));
  const x = Int32Array.of(1, 2);
  runner.run(image, 'use', { grid: [1, 1, 1], block: [2, 1, 1] }, [x]);
  expect([...x]).toEqual([6, 7]);
});

test('the error for source that does not compile calls it a module', async () => {
  const error: unknown = await builder()
    .build({ ...moduleOf('extern "C" __global__ void bad() { undeclared(); }', ''), name: 'bad' })
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CompileError);
  expect((error as CompileError).message).toContain("The module of kernels 'bad' does not compile");
});

/** Names with C linkage are the same in every namespace. */
const OF_C = `namespace far {
extern "C" { __device__ int held[2] = {3, 4}; __global__ void add(int* x) { x[threadIdx.x] += held[threadIdx.x]; } }
extern "C" __constant__ int alone = 5;
extern "C++" { __device__ int mangled = 6; }
__device__ int near_it = 7;
namespace inner { extern "C" __global__ void rows(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] += alone + mangled + near_it;
} }
extern "C" __launch_bounds__(64) __global__ void parts(int* x) {
  __shared__ int s[4]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[3 - threadIdx.x];
}
}
extern "C" { namespace other { __device__ int last = 8; } }`;

test('kernels and variables of C are found in namespaces by their plain names', async () => {
  const found = everyExportOf(OF_C);
  expect(found.kernels).toEqual(['add', 'rows', 'parts']);
  expect([...found.variables!]).toEqual([
    ['held', 'far::held'],
    ['alone', 'far::alone'],
    ['far::mangled', 'far::mangled'],
    ['far::near_it', 'far::near_it'],
    ['last', 'other::last'],
  ]);
  const { image } = await builder().build(moduleOf(OF_C, ''));
  const x = Int32Array.of(1, 2, 3, 4);
  const launch = { grid: [1, 1, 1], block: [2, 1, 1] } as const;
  runner.run(image, 'add', launch, [x]);
  runner.run(image, 'rows', { ...launch, block: [4, 1, 1] }, [x, { value: Int32Array.of(3) }]);
  runner.run(image, 'parts', { ...launch, block: [4, 1, 1] }, [x]);
  expect([...x]).toEqual([4, 21, 24, 22]);
  const alone = await builder().build(specOf(OF_C, 'parts'));
  runner.run(alone.image, 'parts', { ...launch, block: [4, 1, 1] }, [x]);
  expect([...x]).toEqual([22, 24, 21, 4]);
});

const nvcc = process.env['MILLRACE_NVCC'] ?? 'nvcc';
const hasNvcc = spawnSync(nvcc, ['--version']).status === 0;

test.skipIf(!hasNvcc)('nvcc gives the variables the symbols that are looked up (skipped where there is no nvcc)', () => {
  for (const [name, source] of Object.entries({ COUNTERS, WEIGHTS, OF_C })) writeFileSync(join(scratch, `${name}.cu`), source);
  execFileSync(nvcc, ['--ptx', '-w', 'COUNTERS.cu', 'WEIGHTS.cu', 'OF_C.cu'], { cwd: scratch });
  const variables = (name: string): string[] => {
    const ptx = readFileSync(join(scratch, `${name}.ptx`), 'utf8');
    return [...ptx.matchAll(/^\.(?:visible )?\.?(?:global|const) .*?(\w+)(?:\[\d+\])?(?: = .*)?;$/gm)].map((match) => match[1]!);
  };
  expect(variables('COUNTERS')).toEqual(['count', 'steps']);
  expect(variables('OF_C').toSorted()).toEqual(['_ZN3far7mangledE', '_ZN3far7near_itE', 'alone', 'held', 'last']);
  expect(variables('WEIGHTS')).toEqual(expect.arrayContaining(['weights', 'pairs', 'where', '_ZN7physics5inner7gravityE']));
});
