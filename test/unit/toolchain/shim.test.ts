// What CUDA C++ kernels compute on the CPU device, through the shim and the system's compiler, where no text of the conformance suite shows it.
import { expect, test } from 'vitest';
import { imagesOfFile } from './images.js';
import { f32, type ImageArgument, type ImageLaunch, specOf } from './run-image.js';

const images = imagesOfFile();

const line = (grid: number, block: number): ImageLaunch => ({ grid: [grid, 1, 1], block: [block, 1, 1] });

test('indices in a lambda without captures, in a local class and in a device function that is not inlined', async () => {
  const source = `
    __device__ __noinline__ int far(int* y) { y[4 * 2 + threadIdx.x] = blockIdx.x; return threadIdx.x; }
    extern "C" __global__ void scopes(int* y) {
      auto f = [](int v) { return v + (int)threadIdx.x; };
      struct Local { __device__ static int get() { return threadIdx.x * 100; } };
      y[threadIdx.x] = f(10) + Local::get();
      y[4 + threadIdx.x] = far(y);
    }`;
  const y = new Int32Array(12);
  images.run(await images.built(specOf(source, 'scopes'), ['scopes']), 'scopes', line(1, 4), [y]);
  expect([...y]).toEqual([10, 111, 212, 313, 0, 1, 2, 3, 0, 0, 0, 0]);
});

test('lists in braces and a limit of registers, without an include', async () => {
  const source = `
    extern "C" __global__ void __maxnreg__(64) sums(int* y) {
      auto list = {1, 2};
      for (int d : {16, 8, 4}) y[threadIdx.x] += d * *list.begin();
    }
    extern "C" __global__ void __maxnreg__(32) sums_that_wait(int* y) {
      for (int d : {2, 1}) y[threadIdx.x] += __shfl_xor_sync(3, (int)threadIdx.x, d & 1);
    }`;
  const y = new Int32Array(2);
  const image = await images.built(specOf(source, 'sums'), ['sums', 'sums_that_wait']);
  images.run(image, 'sums', line(1, 2), [y]);
  expect([...y]).toEqual([28, 28]);
  images.run(image, 'sums_that_wait', line(1, 2), [y]);
  expect([...y]).toEqual([29, 29]);
});

test('fmad: false rounds the product, and options define macros', async () => {
  const source = `extern "C" __global__ void fused(float a, float b, float c, float* y) { y[0] = a * b + c; y[1] = __fmul_rn(a, b) + c; MORE }`;
  const a = Math.fround(1 + 2 ** -12);
  const args = (y: Float32Array): ImageArgument[] => [f32(a), f32(a), f32(-Math.fround(a * a)), y];
  const separate = new Float32Array(3);
  const options = ['-DN=6', '-DMORE=y[2] = N * M;', '--define-macro=M=7', '--maxrregcount=32'];
  images.run(await images.built(specOf(source, 'fused', { fmad: false, options }), ['fused']), 'fused', line(1, 1), args(separate));
  expect([...separate]).toEqual([0, 0, 42]);
  const fused = new Float32Array(2);
  images.run(await images.built(specOf(source, 'fused', { options: ['-DMORE='] }), ['fused']), 'fused', line(1, 1), args(fused));
  // One rounding where the processor has the instruction; never for the intrinsic.
  expect(Math.abs(fused[0]!)).toBeLessThan(2 ** -22);
  expect(fused[1]).toBe(0);
});

test('an argument needs no default constructor, and may need more than 8 bytes of alignment', async () => {
  const y = new Float32Array(3);
  const source = `
    struct Scale { float by; __device__ explicit Scale(float from) : by(from) {} };
    struct alignas(32) Wide { float of[8]; };
    extern "C" __global__ void bare(Scale scale, Wide wide, float4 four, float* y) { y[0] = scale.by; y[1] = wide.of[7]; y[2] = four.w; }`;
  const eight = Float32Array.from({ length: 8 }, (_, at) => at);
  const image = await images.built(specOf(source, 'bare'), ['bare']);
  images.run(image, 'bare', line(1, 1), [{ value: Float32Array.of(2.5) }, { value: eight }, { value: eight.slice(0, 4) }, y]);
  expect([...y]).toEqual([2.5, 7, 3]);
});

test('an index compares with int as unsigned does, below zero and after it has wrapped', async () => {
  const operators = ['<', '<=', '>', '>='];
  const values = ['0', '1', '3', '2147483647', '(-2147483647 - 1)', '-4', '-1'];
  const sides = operators.flatMap((op) => values.flatMap((n) => [`index ${op} int(${n})`, `int(${n}) ${op} index`]));
  const stores = (type: string) =>
    sides.map((side, at) => `{ ${type} index = threadIdx.x; index -= 2; y[${at}] |= (${side}) << threadIdx.x; }`);
  const y = new Int32Array(sides.length);
  const expected = new Int32Array(sides.length);
  const kernels = { inferred: 'auto', given: 'unsigned' };
  const source = Object.entries(kernels).map(([name, type]) => `extern "C" __global__ void ${name}(int* y) { ${stores(type).join('\n')} }`);
  const image = await images.built(specOf(source.join('\n'), 'inferred'), Object.keys(kernels));
  images.run(image, 'inferred', line(1, 5), [y]);
  images.run(image, 'given', line(1, 5), [expected]);
  expect(y).toEqual(expected);
  expect(new Set(expected).size).toBeGreaterThan(5);
});
