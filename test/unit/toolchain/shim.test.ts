// Results of CUDA C++ kernels on the CPU device, through the shim and the system's compiler.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { f32, i32, type ImageArgument, type ImageLaunch } from './run-image.js';
import { TextRunner } from './text-runner.js';

let texts: TextRunner;
beforeAll(() => {
  texts = new TextRunner();
});
afterAll(() => texts.close());

const run: TextRunner['run'] = (...args) => texts.run(...args);

const line = (grid: number, block: number): ImageLaunch => ({ grid: [grid, 1, 1], block: [block, 1, 1] });

test('saxpy over a ragged size', async () => {
  const n = 1000;
  const x = Float32Array.from({ length: n }, (_, i) => i);
  const y = new Float32Array(n).fill(1);
  const source = `
    extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      y[i] = a * x[i] + y[i];
    }`;
  await run(source, 'saxpy', line(4, 256), [i32(n), f32(2), x, y]);
  expect(y).toEqual(Float32Array.from({ length: n }, (_, i) => 2 * i + 1));
});

test('a grid-stride loop over auto indices', async () => {
  const y = new Int32Array(1000);
  const source = `
    extern "C" __global__ void stride(int n, int* y) {
      for (auto i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += (int)i * 3;
    }`;
  await run(source, 'stride', line(2, 64), [i32(1000), y]);
  expect(y).toEqual(Int32Array.from({ length: 1000 }, (_, i) => 3 * i));
});

test('every index of a 3-dimensional launch, x fastest', async () => {
  const seen = new Uint32Array(2 * 3 * 2 * 4 * 2 * 3);
  const source = `
    __device__ unsigned flat() {
      unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      return block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    }
    extern "C" __global__ void number(unsigned* seen) {
      uint3 b = blockIdx;
      dim3 g = gridDim;
      seen[flat()] += 1 + b.x + g.x * (b.y + g.y * b.z) * 10;
    }`;
  await run(source, 'number', { grid: [2, 3, 2], block: [4, 2, 3] }, [seen]);
  expect([...seen]).toEqual(
    Array.from(seen, (_, i) => {
      const block = Math.floor(i / 24);
      return 1 + (block % 2) + 2 * Math.floor(block / 2) * 10;
    }),
  );
});

test('a 2-dimensional transpose', async () => {
  const [w, h] = [37, 19];
  const from = Float32Array.from({ length: w * h }, (_, i) => i);
  const to = new Float32Array(w * h);
  const source = `
    extern "C" __global__ void transpose(int w, int h, const float* from, float* to) {
      const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x < w && y < h) to[x * h + y] = from[y * w + x];
    }`;
  await run(source, 'transpose', { grid: [3, 3, 1], block: [16, 8, 1] }, [i32(w), i32(h), from, to]);
  expect(to[5 * h + 7]).toBe(7 * w + 5);
  expect(new Set(to).size).toBe(w * h);
});

test('a histogram by atomics, from two threads at once', async () => {
  const pixels = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 7919) >> 3);
  const bins = new Uint32Array(256);
  const sum = new Float64Array(1);
  const source = `
    #include <cstdint>
    extern "C" __global__ void histogram(int n, const uint8_t* pixels, unsigned* bins, double* sum) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) { atomicAdd(&bins[pixels[i]], 1); atomicAdd(sum, 0.5); }
    }`;
  await run(source, 'histogram', line(391, 256), [i32(pixels.length), pixels, bins, sum]);
  const expected = new Uint32Array(256);
  for (const pixel of pixels) expected[pixel]!++;
  expect(bins).toEqual(expected);
  expect(sum[0]).toBe(50_000);
});

test('every other atomic', async () => {
  const a = Int32Array.of(10, 10, 10, 0b1100, 0b1100, 0b1100, 5, 7, 3, 0);
  const old = new Int32Array(10);
  const floats = Float32Array.of(1, 2);
  const source = `
    extern "C" __global__ void all(int* a, int* old, float* f) {
      old[0] = atomicSub(&a[0], 3);
      old[1] = atomicMin(&a[1], -4);
      old[2] = atomicMax(&a[2], 4);
      old[3] = atomicAnd(&a[3], 0b1010);
      old[4] = atomicOr(&a[4], 0b0011);
      old[5] = atomicXor_system(&a[5], 0b1010);
      old[6] = atomicExch(&a[6], 9);
      old[7] = atomicCAS(&a[7], 7, 8);
      old[8] = atomicInc((unsigned*)&a[8], 3u);
      old[9] = atomicDec_block((unsigned*)&a[9], 6u);
      atomicExch(&f[0], atomicAdd(&f[1], 1.5f));
      __threadfence();
    }`;
  await run(source, 'all', line(1, 1), [a, old, floats]);
  expect([...a]).toEqual([7, -4, 10, 0b1000, 0b1111, 0b0110, 9, 8, 0, 6]);
  expect([...old]).toEqual([10, 10, 10, 12, 12, 12, 5, 7, 3, 0]);
  expect([...floats]).toEqual([2, 3.5]);
});

test('templates, device lambdas, structs and constants', async () => {
  const y = new Float32Array(8);
  const source = `
    __constant__ float weights[3] = {1.0f, 10.0f, 100.0f};
    template <typename T, int N> struct Window { T v[N]; __device__ T sum() const { T s = 0; for (int k = 0; k < N; ++k) s += v[k] * weights[k]; return s; } };
    template <typename T> __device__ __forceinline__ T scale(T v, T by) { return v * by; }
    template <typename F> __global__ void apply(float* y, F f) {}
    namespace detail { template <typename T> __device__ T window(T i) { Window<T, 3> w{{i, i, i}}; return w.sum(); } }
    extern "C" __global__ void __launch_bounds__(256, 2) templated(float* y) {
      auto half = [](float v) { return v / 2; };
      y[threadIdx.x] = scale(detail::window<float>(threadIdx.x), half(4.0f));
    }`;
  await run(source, 'templated', line(1, 8), [y]);
  expect([...y]).toEqual([0, 222, 444, 666, 888, 1110, 1332, 1554]);
});

test('dynamic shared memory, inside a kernel and outside', async () => {
  const source = `
    extern __shared__ int outer[];
    __device__ int second() { return outer[1]; }
    extern "C" __global__ void dynamicShared(int* y) {
      extern __shared__ __align__(16) int tile[];
      tile[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
      if (threadIdx.x == blockDim.x - 1) y[blockIdx.x] = tile[0] + second();
    }`;
  const y = new Int32Array(5);
  await run(source, 'dynamicShared', { ...line(5, 4), sharedBytes: 16 }, [y]);
  expect([...y]).toEqual([1, 201, 401, 601, 801]);
});

test('static shared memory belongs to a block', async () => {
  const source = `
    extern "C" __global__ void prefix(int* y) {
      __shared__ int running[1];
      if (threadIdx.x == 0) running[0] = 0;
      running[0] += threadIdx.x;
      y[blockIdx.x * blockDim.x + threadIdx.x] = running[0];
    }`;
  const y = new Int32Array(400);
  await run(source, 'prefix', line(100, 4), [y]);
  expect([...y]).toEqual(Array.from({ length: 100 }, () => [0, 1, 3, 6]).flat());
});

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
  await run(source, 'scopes', line(1, 4), [y]);
  expect([...y]).toEqual([10, 111, 212, 313, 0, 1, 2, 3, 0, 0, 0, 0]);
});

test('several kernels in one source, in an extern "C" block', async () => {
  const source = `
    extern "C" {
    __global__ void first(int* y) { y[threadIdx.x] = 1; }
    __global__ void second(int* y) { y[threadIdx.x] += 2; }
    }`;
  const y = new Int32Array(3);
  await run(source, 'first', line(1, 3), [y]);
  await run(source, 'second', line(1, 3), [y]);
  expect([...y]).toEqual([3, 3, 3]);
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
  await run(source, 'sums', line(1, 2), [y]);
  expect([...y]).toEqual([28, 28]);
  await run(source, 'sums_that_wait', line(1, 2), [y]);
  expect([...y]).toEqual([29, 29]);
});

test('vector types keep the layout they have on a GPU', async () => {
  const x = Float32Array.from({ length: 16 }, (_, i) => i);
  const bytes = new Uint8Array(8);
  const source = `
    static_assert(sizeof(float3) == 12 && alignof(float4) == 16 && alignof(uchar4) == 4 && sizeof(double2) == 16, "layout");
    extern "C" __global__ void vectors(float4* x, uchar4* b) {
      float4 v = x[threadIdx.x];
      x[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
      if (threadIdx.x < 2) b[threadIdx.x] = make_uchar4(1, 2, 3, threadIdx.x);
    }`;
  await run(source, 'vectors', line(1, 4), [x, bytes]);
  expect([...x].slice(0, 8)).toEqual([3, 2, 1, 0, 7, 6, 5, 4]);
  expect([...bytes]).toEqual([1, 2, 3, 0, 1, 2, 3, 1]);
});

test('mathematics in both precisions', async () => {
  const values: readonly (readonly [expression: string, value: number])[] = [
    ['sqrtf(2.0f)', Math.SQRT2],
    ['rsqrtf(4.0f)', 0.5],
    ['expf(1.0f)', Math.E],
    ['__expf(1.0f)', Math.E],
    ['powf(2.0f, 10.0f)', 1024],
    ['pow(3.0f, 2)', 9],
    ['pow(2, 0.5)', Math.SQRT2],
    ['fabsf(-3.0f)', 3],
    ['fminf(1.0f, NAN)', 1],
    ['fmaxf(NAN, 2.0f)', 2],
    ['floorf(-1.5f)', -2],
    ['ceil(1.2)', 2],
    ['roundf(2.5f)', 3],
    ['truncf(-1.9f)', -1],
    ['sinf(1.0f)', Math.sin(1)],
    ['cos(1.0)', Math.cos(1)],
    ['atan2f(1.0f, 1.0f)', Math.PI / 4],
    ['log2f(8.0f)', 3],
    ['log10(1000.0)', 3],
    ['cbrtf(27.0f)', 3],
    ['hypotf(3.0f, 4.0f)', 5],
    ['fmodf(7.5f, 2.0f)', 1.5],
    ['copysign(3.0, -0.0)', -3],
    ['fma(2.0f, 3.0f, 4.0f)', 10],
    ['sqrt(16)', 4],
    ['abs(-7)', 7],
    ['abs(-7.5f)', 7.5],
    ['min(3, 4u)', 3],
    ['max(-1, 2)', 2],
    ['min(1.5f, 2.5)', 1.5],
    ['isnan(NAN)', 1],
    ['isinf(INFINITY)', 1],
    ['__saturatef(1.5f)', 1],
    ['M_PI', Math.PI],
    ['tanhf(0.0f)', 0],
    ['erff(0.0f)', 0],
  ];
  const out = new Float64Array(values.length);
  const source = `extern "C" __global__ void math(double* out) {\n${values.map(([expression], i) => `out[${i}] = ${expression};`).join('\n')}\n}`;
  await run(source, 'math', line(1, 1), [out]);
  for (const [i, [expression, value]] of values.entries()) expect(out[i], expression).toBeCloseTo(value, 5);
});

test('conversions saturate, and bits keep', async () => {
  const values: readonly (readonly [expression: string, value: number])[] = [
    ['__float2int_rz(-1.9f)', -1],
    ['__float2int_rn(2.5f)', 2],
    ['__float2int_rz(1e20f)', 2147483647],
    ['__float2int_rz(-1e20f)', -2147483648],
    ['__float2int_rz(NAN)', 0],
    ['__float2uint_rz(-5.0f)', 0],
    ['__float2uint_rz(5e9f)', 4294967295],
    ['__double2int_rd(-1.5)', -2],
    ['__float2int_ru(1.5f)', 2],
    ['__int2float_rn(7)', 7],
    ['__float_as_int(1.0f)', 0x3f800000],
    ['__int_as_float(0x40000000)', 2],
    ['__popc(0xff00u)', 8],
    ['__clz(1)', 31],
    ['__clz(0)', 32],
    ['__ffs(8)', 4],
    ['__ffs(0)', 0],
    ['__brev(1u)', 0x80000000],
    ['__umulhi(0x80000000u, 4u)', 2],
    ['__mul24(3, -5)', -15],
    ['__byte_perm(0x33221100u, 0x77665544u, 0x0714u)', 0x00771144],
    ['__funnelshift_l(0x80000000u, 1u, 1u)', 3],
    ['(threadIdx.x + 5) * 2654435761u', (5 * 2654435761) % 2 ** 32],
    ['(int)(threadIdx.x - 1)', -1],
  ];
  const out = new Float64Array(values.length);
  const source = `extern "C" __global__ void bits(double* out) {\n${values.map(([expression], i) => `out[${i}] = ${expression};`).join('\n')}\n}`;
  await run(source, 'bits', line(1, 1), [out]);
  for (const [i, [expression, value]] of values.entries()) expect(out[i], expression).toBe(value);
});

test('fmad: false rounds the product', async () => {
  const source = `extern "C" __global__ void fused(float a, float b, float c, float* y) { y[0] = a * b + c; y[1] = __fmul_rn(a, b) + c; }`;
  const a = Math.fround(1 + 2 ** -12);
  const args = (y: Float32Array): ImageArgument[] => [f32(a), f32(a), f32(-Math.fround(a * a)), y];
  const separate = new Float32Array(2);
  await run(source, 'fused', line(1, 1), args(separate), { fmad: false });
  expect([...separate]).toEqual([0, 0]);
  const fused = new Float32Array(2);
  await run(source, 'fused', line(1, 1), args(fused));
  // One rounding where the processor has the instruction; never for the intrinsic.
  expect(Math.abs(fused[0]!)).toBeLessThan(2 ** -22);
  expect(fused[1]).toBe(0);
});

test('clocks advance, __nanosleep sleeps, printf prints whole lines', async () => {
  const y = new BigInt64Array(1);
  const source = `
    extern "C" __global__ void clocks(long long* y) {
      long long t = clock64();
      __nanosleep(1000000);
      y[0] = clock64() - t;
      printf("block %d of %u: %.1f\\n", blockIdx.x, gridDim.x, 1.5f);
    }`;
  const printed = await run(source, 'clocks', line(1, 1), [y]);
  expect(y[0]).toBeGreaterThan(100_000n);
  expect(printed).toBe('block 0 of 1: 1.5\n');
});

test('options define macros', async () => {
  const y = new Int32Array(1);
  await run('extern "C" __global__ void macros(int* y) { y[0] = T(N * M); }', 'macros', line(1, 1), [y], {
    options: ['-DN=6', '-DT=int', '--define-macro=M=7', '--maxrregcount=32'],
  });
  expect(y[0]).toBe(42);
});

test('arguments of every size arrive, structs among them', async () => {
  const y = new Float64Array(4);
  const source = `
    struct Pair { float a; double b; };
    extern "C" __global__ void sizes(bool flag, short s, long long l, Pair p, double* y) { y[0] = flag; y[1] = s; y[2] = l; y[3] = p.a + p.b; }`;
  const pair = new Uint8Array(16);
  new DataView(pair.buffer).setFloat32(0, 1.5, true);
  new DataView(pair.buffer).setFloat64(8, 2.25, true);
  await run(source, 'sizes', line(1, 1), [
    { value: Uint8Array.of(1) },
    { value: Int16Array.of(-3) },
    { value: BigInt64Array.of(-(2n ** 40n)) },
    { value: pair },
    y,
  ]);
  expect([...y]).toEqual([1, -3, -(2 ** 40), 3.75]);
});

test('an argument needs no default constructor, and may need more than 8 bytes of alignment', async () => {
  const y = new Float32Array(3);
  const source = `
    struct Scale { float by; __device__ explicit Scale(float from) : by(from) {} };
    struct alignas(32) Wide { float of[8]; };
    extern "C" __global__ void bare(Scale scale, Wide wide, float4 four, float* y) { y[0] = scale.by; y[1] = wide.of[7]; y[2] = four.w; }`;
  const eight = Float32Array.from({ length: 8 }, (_, at) => at);
  await run(source, 'bare', line(1, 1), [{ value: Float32Array.of(2.5) }, { value: eight }, { value: eight.slice(0, 4) }, y]);
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
  const source = (type: string) => `extern "C" __global__ void compares(int* y) { ${stores(type).join('\n')} }`;
  await run(source('auto'), 'compares', line(1, 5), [y]);
  await run(source('unsigned'), 'compares', line(1, 5), [expected]);
  expect(y).toEqual(expected);
  expect(new Set(expected).size).toBeGreaterThan(5);
});
