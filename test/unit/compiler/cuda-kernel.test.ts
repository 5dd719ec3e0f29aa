import { describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { findEntry as entryOf, readParameter, type SourceEntry } from '../../../src/cuda-cpp/read/signature.js';
import { globalFunctions } from '../../../src/cuda-cpp/read/global-functions.js';
import { withoutComments } from '../../../src/cuda-cpp/read/tokens.js';
import { bool, f16, f32, f64, i32, i64, i8, u16, u32, u64, u8 } from '../../../src/core/elements/dtype.js';
import { ArgumentError } from '../../../src/core/base/errors.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { inout, input, output, type Params } from '../../../src/core/kernels/kernel.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { complaint } from './support.js';

const SCALE = `
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}`;

function refused(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof ArgumentError) return error.message;
    throw error;
  }
  throw new Error('It is accepted.');
}

function findEntry(text: string, name: string): SourceEntry | undefined {
  return entryOf(text, globalFunctions(text), name);
}

test('a kernel from CUDA C++ source', () => {
  const made = cudaKernel('scale', { x: input(f32), y: output(f32), a: f32, n: i32 }, SCALE, { options: ['--use_fast_math'] });
  expect(made).toMatchObject({ name: 'scale', source: SCALE, abi: 'plain', indexRank: 0 });
  expect(made.build).toMatchObject({
    entry: 'scale',
    isBounded: true,
    isChecked: false,
    options: ['--use_fast_math'],
  });
});

test('lines of the source are lines of this file', () => {
  const made = cudaKernel('scale', { x: input(f32), y: output(f32), a: f32, n: i32 }, SCALE);
  const { file, lines } = (made.build as BuildSpec).mapping;
  expect(file).toMatch(/cuda-kernel\.test\.ts$/);
  expect(lines).toHaveLength(5);
  expect(lines[4]! - lines[0]!).toBe(4);
});

test('a macro may paste the name of a kernel', () => {
  const source =
    '#define DEFINE(R) template <class T> __device__ T f##R(T v); __global__ void scale_##R(float* y) {}\nDEFINE(1)\nDEFINE(2)';
  expect((cudaKernel('scale_2', { y: output(f32) }, source).build as BuildSpec).parameterChecks).toMatchObject({ count: 1 });
  expect(() => cudaKernel('other', { y: output(f32) }, source)).toThrow(/^K005: The source has no kernel named 'other'/);
});

test('macros of attributes are no names of kernels', () => {
  const macros = '#define BOUNDS(n) __launch_bounds__(n)\n#define NOTHING(a, b)\n#define QUIET\n';
  for (const head of [
    '__global__ void BOUNDS(128) k',
    '__global__ BOUNDS(128) void k',
    'BOUNDS(128) __global__ void k',
    '__global__ NOTHING((1), 2) void BOUNDS(128) k',
    '__global__ void BOUNDS(128)\n__cluster_dims__(2, 1, 1) NOTHING(1, 2) k',
    '__global__ void QUIET BOUNDS(128) k',
  ]) {
    const source = `${macros}${head}(float* y) { y[0] = 1; }`;
    expect(
      globalFunctions(source).map(({ name }) => name),
      head,
    ).toEqual(['k']);
    expect((cudaKernel('k', { y: output(f32) }, source).build as BuildSpec).entry).toBe('k');
  }
  const template = `${macros}template <class T> __global__ void BOUNDS(128) k(T* y) { y[0] = 1; }`;
  expect(globalFunctions(template)).toMatchObject([{ name: 'k', template: ['class', 'T'] }]);
  // What follows the parameters is no head of another function.
  for (const rest of [' QUIET {}', ' __launch_bounds__(2) {}', ' noexcept {}', ';', ''])
    expect(globalFunctions(`${macros}__global__ void k(float* y)${rest}`)[0]).toMatchObject({ name: 'k' });
});

test('launches in macros of the host are no launches by kernels', () => {
  const isLaunching = (source: string): boolean | undefined => (cudaKernel('k', { y: output(f32) }, source).build as BuildSpec).isLaunching;
  const macros = '#define RUN(n) \\\n  k<<<n, 32>>>(y)\n#define ONCE RUN(1)\n';
  expect(isLaunching(`${macros}__global__ void k(float* y) {}\nvoid run(float* y) { ONCE; cudaDeviceSynchronize(); }`)).toBeUndefined();
  expect(isLaunching(`${macros}__global__ void k(float* y) { if (y[0] > 1) ONCE; }`)).toBe(true);
  expect(isLaunching('__global__ void k(float* y) { if (y[0] > 1) k<<<1, 1>>>(y); }')).toBe(true);
});

describe('the parameter list is compared with the source', () => {
  test('their number', () => {
    expect(refused(() => cudaKernel('scale', { x: input(f32), y: output(f32), a: f32 }, SCALE))).toMatchInlineSnapshot(
      `"params has 3 entries, but 'scale' has 4 parameters in the source: (const float* x, float* y, float a, int n)."`,
    );
  });
  test('their number, with a parameter pack for any number of others', () => {
    const source = 'template <class... T> __global__ void k(int n, float* y, T... rest) {}';
    const made = cudaKernel('k<float, int>', { n: i32, y: output(f32), a: f32, b: i32 }, source).build as BuildSpec;
    expect(made.parameterChecks).toMatchObject({
      count: 4,
      list: [
        { name: 'a', at: 2, text: 'T... rest' },
        { name: 'b', at: 3 },
      ],
    });
    expect((cudaKernel('k<>', { n: i32, y: output(f32) }, source).build as BuildSpec).parameterChecks).toBeUndefined();
    expect(refused(() => cudaKernel('k<>', { n: i32 }, source))).toMatchInlineSnapshot(
      `"params has 1 entries, but 'k<>' has 2 parameters in the source: (int n, float* y)."`,
    );
  });
  test('their types', () => {
    expect(refused(() => cudaKernel('scale', { x: input(f32), y: output(f32), a: f32, n: u32 }, SCALE))).toMatchInlineSnapshot(
      `"The parameter 'n' (u32) is 'int n' in the source, at position 4: the element type differs."`,
    );
    expect(refused(() => cudaKernel('scale', { x: input(f64), y: output(f32), a: f32, n: i32 }, SCALE))).toMatchInlineSnapshot(
      `"The parameter 'x' (f64*) is 'const float* x' in the source, at position 1: the element type differs."`,
    );
  });
  test('their order', () => {
    expect(refused(() => cudaKernel('scale', { a: f32, x: input(f32), y: output(f32), n: i32 }, SCALE))).toMatchInlineSnapshot(
      `"The parameter 'a' (f32) is 'const float* x' in the source, at position 1: a scalar cannot be a pointer."`,
    );
  });
  test('const where the kernel writes', () => {
    expect(refused(() => cudaKernel('scale', { x: inout(f32), y: output(f32), a: f32, n: i32 }, SCALE))).toMatchInlineSnapshot(
      `"The parameter 'x' (f32*) is 'const float* x' in the source, at position 1: an inout array cannot be const."`,
    );
  });
  test('a pointer to a struct takes an array of any type', () => {
    const text = 'struct P { float x; }; typedef float real; extern "C" __global__ void k(real* a, P* b, const real c) {}';
    expect(() => cudaKernel('k', { a: output(f32), b: output(u8), c: f32 }, text)).not.toThrow();
  });
});

test('every element type as C spells it', () => {
  const params = {
    a: input(bool),
    b: input(i8),
    c: input(u8),
    d: input(u16),
    e: input(u64),
    f: input(i64),
    g: input(f16),
    h: f64,
    l: u64,
    m: u8,
  } as const;
  const text = `extern "C" __global__ void k(const bool *__restrict__ a, signed char const *b, const uint8_t b2[], unsigned short* d,
    unsigned long long int *e, long long* f, const __half* g, const double h, size_t l, std::uint8_t m) {}`;
  expect(() => cudaKernel('k', params, text)).not.toThrow();
});

test('readParameter', () => {
  const read = (text: string): unknown => {
    const { dtype, isPointer, isConst } = readParameter(text);
    return [dtype, isPointer, isConst];
  };
  expect(read('float* x')).toEqual(['f32', true, false]);
  expect(read('float const * const x')).toEqual(['f32', true, true]);
  expect(read('float* const x')).toEqual(['f32', true, false]);
  expect(read('unsigned')).toEqual(['u32', false, false]);
  expect(read('unsigned n')).toEqual(['u32', false, false]);
  expect(read('int n = 3')).toEqual(['i32', false, false]);
  expect(read('float** x')).toEqual([undefined, true, false]);
  expect(read('Vec<float> v')).toEqual([undefined, false, false]);
  expect(read('float4 v')).toEqual([undefined, false, false]);
});

test('the source must contain the kernel, with a symbol of its name', () => {
  expect(complaint(() => cudaKernel('other', {}, SCALE))).toMatchInlineSnapshot(`
    "K005: The source has no kernel named 'other'.
      The source has scale. Write: __global__ void other(...)."
  `);
  expect(complaint(() => cudaKernel('SCALE', {}, SCALE))).toMatchInlineSnapshot(`
    "K005: The source has no kernel named 'SCALE'.
      The source has scale. Pass the name 'scale'."
  `);
  expect(complaint(() => cudaKernel('k', {}, '// __global__ void k() {}'))).toMatchInlineSnapshot(`
    "K005: The source has no kernel named 'k'.
      The source has no __global__ function. Write: __global__ void k(...)."
  `);
});

const NAMED = `
namespace a::b { __global__ void step(float* x) {} }
namespace { __global__ void own(int n) {} }
__global__ void step(int n);
template <typename T, int N = 2> __global__ void fold(const T* x, T* y, int n) {}
extern "C" __global__ void plain() {}`;

test('kernels have the names that the source gives them, with namespaces and template arguments', () => {
  const path = (name: string, params: Params): string | undefined => cudaKernel(name, params, NAMED).build.path;
  expect(path('step', { n: i32 })).toBe('step');
  expect(path('a::b::step', { x: inout(f32) })).toBe('a::b::step');
  expect(path('b::step', { x: inout(f32) })).toBe('a::b::step');
  expect(path('own', { n: i32 })).toBe('own');
  expect(path('plain', {})).toBeUndefined();
  expect(path('fold<double, 4>', { x: input(f64), y: inout(f64), n: i32 })).toBe('fold<double, 4>');
  expect(complaint(() => cudaKernel('fold', { x: input(f32), y: inout(f32), n: i32 }, NAMED))).toMatchInlineSnapshot(`
    "K005: The kernel 'fold' is a template.
      Give the arguments of the template in the name: 'fold<float>'."
  `);
  const ofNumber = 'template <int B, bool isLast, typename T> __global__ void bsum(T* x) {}';
  expect(complaint(() => cudaKernel('bsum', { x: inout(f32) }, ofNumber))).toContain("'bsum<256, true, float>'");
  const host = `template <class T> void run(T* x, int n) { fold<T, 4><<<1, 2>>>(x, x, n); } // fold<char><<<1, 1>>>
int main() { fold <float,
    256> <<<n / 256, 256>>>(x, y, n); a::fold<std::pair<int, float>><<<1, 1>>>(x, y, n); scaffold<int><<<1, 1>>>(); fold<float, 256><<<2, 2>>>(x, y, n); }`;
  expect(complaint(() => cudaKernel('fold', { x: input(f32), y: inout(f32), n: i32 }, NAMED + host))).toMatchInlineSnapshot(`
    "K005: The kernel 'fold' is a template.
      Give the arguments of the template in the name: the source launches 'fold<T, 4>', 'fold<float, 256>', 'fold<std::pair<int, float>>'."
  `);
  expect(complaint(() => cudaKernel('step<3>', { n: i32 }, NAMED))).toMatchInlineSnapshot(`
    "K005: The kernel 'step' is not a template.
      Leave out the arguments: 'step'."
  `);
  expect(() => cudaKernel('fold<int', {}, NAMED)).toThrow('The name (fold<int) must be a C++ name');
  const instance = cudaModule(NAMED).kernel('fold<int>', { x: input(i32), y: inout(i32), n: i32 });
  expect(instance.build.path).toBe('fold<int>');
});

test('extern "C" may stand around', () => {
  expect(() => cudaKernel('k', {}, 'extern "C" { __device__ int f() { return 1; } __global__ void k() {} }')).not.toThrow();
  expect(() => cudaKernel('k', { n: i32 }, 'extern "C" __global__ void __launch_bounds__(256, 2) k(int n) {}')).not.toThrow();
  expect(() => cudaKernel('k', { n: i32 }, 'extern "C" __global__ __launch_bounds__(256) void\nk(int n) {}')).not.toThrow();
});

test('comments and strings are ignored', () => {
  const text = withoutComments('int a; // k(\n"/* k( */" R"x( " )x" \'"\' 1\'000 /* \n */ k(');
  expect(text).toHaveLength(55);
  expect(text.split('\n')).toHaveLength(3);
  expect(text.replace(/\s+/g, ' ')).toBe("int a; 1'000 k(");
  expect(findEntry(withoutComments('extern "C" __global__ void k(/* float* */ int n) {}'), 'k')?.parameters).toMatchObject([
    { dtype: 'i32' },
  ]);
});

test('only the whole name matches', () => {
  const text = 'extern "C" __global__ void blur3(int n) {} extern "C" __global__ void blur(float* x) {}';
  expect(findEntry(text, 'blur')?.parameters).toMatchObject([{ dtype: 'f32', isPointer: true }]);
});

test('bounded only when tokens prove it', () => {
  const bounded = (body: string, before = ''): boolean =>
    cudaKernel('k', {}, `${before}extern "C" __global__ void k() { ${body} }`).build.isBounded;
  expect(bounded('int x = 1; if (x) x++; /* for while */')).toBe(true);
  expect(bounded('for (;;) {}')).toBe(false);
  expect(bounded('while (1) {}')).toBe(false);
  expect(bounded('here: goto here;')).toBe(false);
  expect(bounded('SPIN', '#define SPIN\n')).toBe(false);
  expect(bounded('f();', '__device__ void f() { f(); } ')).toBe(false);
  expect(bounded('__syncthreads();')).toBe(false);
});

test('words for cooperation between threads mark a kernel as cooperating, except in comments', () => {
  const isOfBlocks = (body: string, before = ''): boolean | undefined =>
    cudaKernel('k', {}, `${before}extern "C" __global__ void k() { ${body} }`).build.isOfBlocks;
  for (const body of ['__shared__ int n;', '__syncthreads();', '__ballot_sync(~0u, 1);']) expect(isOfBlocks(body), body).toBe(true);
  expect(isOfBlocks('', '#include <cooperative_groups.h>\n')).toBe(true);
  expect(isOfBlocks('int x = 1; // __shared__')).toBe(false);
});

describe('barriers of the grid', () => {
  const body = 'extern "C" __global__ void k(int* x)';
  const waits = (text: string): boolean => {
    const { syncsGrid, isAsserting } = cudaKernel('k', { x: inout(i32) }, `#include <cooperative_groups.h>\n${text}`).build;
    if (syncsGrid) expect(isAsserting).toBe(true);
    return syncsGrid ?? false;
  };

  test.each([
    `${body} { cooperative_groups::this_grid().sync(); }`,
    `${body} { auto g = cooperative_groups::this_grid(); x[0] = 1; g.sync(); }`,
    `namespace cg = cooperative_groups; ${body} { const cg::grid_group grid = cg::this_grid(); if (x[0]) { for (;;) cg::sync(grid); } }`,
    `using namespace cooperative_groups; ${body} { grid_group g(this_grid()); sync(g); }`,
    `namespace cg = cooperative_groups; ${body} { auto g{cg::this_grid()}; auto t = g.barrier_arrive(); g.barrier_wait(std::move(t)); }`,
    `namespace cg = cooperative_groups; ${body} { cg::sync(cg::this_grid()); }`,
    `namespace cg = cooperative_groups; __device__ void meet(const cg::grid_group& g) { g.sync(); } ${body} { meet(cg::this_grid()); }`,
    `namespace cg = cooperative_groups; template <int N> __device__ void meet() { cg::this_grid().sync(); }
     __device__ void go() { meet<3>(); } ${body} { go(); }`,
    `namespace cg = cooperative_groups; __launch_bounds__(64) extern "C" __global__ void k(int* x) { auto f = [&] { cg::this_grid().sync(); }; f(); }`,
  ])('%s', (text) => expect(waits(text)).toBe(true));

  test.each([
    `${body} { x[cooperative_groups::this_grid().thread_rank()] = 1; }`,
    `namespace cg = cooperative_groups; ${body} { auto g = cg::this_grid(); auto b = cg::this_thread_block(); x[g.size()] = 1; b.sync(); cg::sync(b); }`,
    `namespace cg = cooperative_groups; ${body} { x[0] = 1; /* cg::this_grid().sync(); */ }`,
    `namespace cg = cooperative_groups; ${body} { x[cg::this_grid().size()] = 1; }
     extern "C" __global__ void other(int* x) { cg::this_grid().sync(); }`,
    // Only the run shows.
    `namespace cg = cooperative_groups; template <class G> __device__ void meet(G g) { g.sync(); } ${body} { meet(cg::this_grid()); }`,
  ])('none that is seen: %s', (text) => expect(waits(text)).toBe(false));

  test('are found in linear time in any source', () => {
    for (const piece of ['{', '(', 'f(', 'this_grid(', 'auto g = this_grid(); g.sync(', ':::', 'grid_group & ', 'a<']) {
      const start = performance.now();
      const source = `using namespace cooperative_groups; ${body} {} ${piece.repeat(20_000)}`;
      if (/[{(]$/.test(piece)) expect(() => waits(source)).toThrow('nested too deeply');
      else waits(source);
      expect(performance.now() - start).toBeLessThan(5000);
    }
  });
});

test('arguments', () => {
  expect(refused(() => cudaKernel('a b', {}, SCALE))).toMatchInlineSnapshot(
    `"The name (a b) must be a C++ name: it is the name of the function in the source, with the arguments of its template."`,
  );
  expect(refused(() => cudaKernel('k', { n: 3 as never }, SCALE))).toMatchInlineSnapshot(
    `"The parameter 'n' (3) is not a type such as f32, vec3f, struct({ n: i32 }), arrayOf(f32, 4), bytes(16) or input(f32)."`,
  );
  expect(refused(() => cudaKernel('k', {}, 3 as never))).toMatchInlineSnapshot(
    `"The source (number) must be a string, or the URL of a file: new URL('./kernels.cu', import.meta.url)."`,
  );
  expect(refused(() => cudaKernel('k', {}, SCALE, { options: 'x' as never }))).toMatchInlineSnapshot(
    `"options (x) must be an array of strings."`,
  );
});
