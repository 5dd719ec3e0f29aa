// Tokenising CUDA C++ source: kernels, unsupported features and the rewriting for the CPU device; compilers' messages.
import { expect, test } from 'vitest';
import { parseLog } from '../../../src/toolchain/base/diagnostics.js';
import { kernelNames, rewriteForCpu } from '../../../src/cuda-cpp/lower/rewrite.js';
import { refuseOnCpu } from '../../../src/cuda-cpp/select/unsupported-features.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { findWaiting, hasWaits } from '../../../src/cuda-cpp/lower/waiting-functions.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { specOf } from './run-image.js';

function caught(run: () => void): CompileError {
  try {
    run();
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

const refusal = (source: string): CompileError => caught(() => refuseOnCpu(specOf(source, 'k'), tokenize(source)));

test('comments, strings and directives yield no tokens', () => {
  const { tokens, directives } = tokenize('a /* b\n c */ "d // e" // f\n#define g h \\\n i\n  j R"x(k)" )x" 1.5e-3f l\'m');
  expect(tokens.filter(({ kind }) => kind === 'name').map(({ text, line, column }) => [text, line, column])).toEqual([
    ['a', 1, 1],
    ['j', 5, 3],
    ['l', 5, 25],
    ['m', 5, 27],
  ]);
  expect(tokens.filter(({ kind }) => kind === 'string').map(({ text }) => text)).toEqual(['"d // e"', 'R"x(k)" )x"']);
  expect(directives).toEqual([{ text: '#define g h \\\n i', line: 3, column: 1 }]);
});

test('line markers set the line', () => {
  const { tokens } = tokenize('# 7 "kernel.cu"\na\n#line 20\n\nb');
  expect(tokens.map(({ text, line }) => [text, line])).toEqual([
    ['a', 7],
    ['b', 21],
  ]);
});

test('kernels are found, but not in templates and comments', () => {
  const names = kernelNames(`
    // extern "C" __global__ void commented(int x);
    extern "C" { static int helper(int a); namespace inner { __global__ void inBlock(Pair<int, float> p, const float* __restrict__ x) {} } }
    template <typename T> __global__ void generic(T* x) { }
    extern "C" __global__ void twice(int*);
    extern "C" __global__ void twice(int*) { if (true) { } }
    extern "C" __global__ __launch_bounds__(256) void bounded(void (*f)(int, int), int n = 3) {}`);
  expect(names).toEqual(['inBlock', 'twice', 'bounded']);
});

const rewritten = (source: string): string => rewriteForCpu(source).text;

test('indices become parameters, unless the body has scopes that cannot see them', () => {
  const indices = 'mr_index3 threadIdx, mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';
  expect(rewritten('\n__global__ void a(int n) { }')).toBe(`\n__global__ void a(${indices}, int n) { }`);
  expect(rewritten('__global__ void a(void);\n__global__ void a() { }')).toBe(
    `__global__ void a(${indices});\n__global__ void a(${indices}) { }`,
  );
  for (const body of ['auto f = [](int v) { return v + threadIdx.x; };', 'struct S { int v = threadIdx.x; };']) {
    const text = `__global__ void a(int n);\n__global__ void a(int n) { ${body} }`;
    expect(rewritten(text)).toBe(text);
  }
});

test('the launch bounds of a kernel are exported before it, once, on its line', () => {
  const text = `extern "C" {\nstatic const int W = 8;\n__global__ void __launch_bounds__(max(W, 4), 2)\nk(int n); }
extern "C" __global__ __launch_bounds__(W) void k(int n) { }`;
  const [, , declared, , defined] = rewritten(text).split('\n');
  expect(declared).toBe('MR_MAX_THREADS(k, max ( W , 4 )) __global__ void __launch_bounds__(max(W, 4), 2)');
  expect(defined).toMatch(/^extern "C" __global__ __launch_bounds__\(W\) void k\(/);
});

test.each([
  ['__global__ void k(int* y) { __syncthreads(); } __global__ void other() {}', ['k']],
  // What mentions what waits, before and behind its definition.
  ['__device__ void f(); __global__ void k() { f(); } __device__ void f() { g(); } __device__ void g() { __syncwarp(); }', ['k']],
  ['struct S { __device__ S() { __syncthreads(); } }; __global__ void k() { S s; } __global__ void other() {}', ['k']],
  [
    'struct S { __device__ int operator()(int v) { return __any_sync(1, v); } }; __global__ void k() { each(S()); } __global__ void o() {}',
    ['k'],
  ],
  ['__global__ void k() { auto f = [&](int v) { return __any_sync(~0u, v); }; g(f); } __global__ void other() {}', ['k']],
  // No token tells which kernels call these.
  ['struct S { __device__ int operator+(int v) { return __any_sync(~0u, v); } }; __global__ void k() {}', ['k']],
  ['struct S { __device__ ~S() { __syncthreads(); } }; __global__ void k() {}', ['k']],
  [
    '__device__ int f(int v) { return __any_sync(1, v); } __device__ int (*table[])(int) = {f}; __global__ void k() { table[0](1); }',
    ['k'],
  ],
  // Templates wait by their arguments, too.
  ['__device__ int f(int v) { return __any_sync(1, v); } template <auto F> __global__ void k() { F(1); }', ['k<f>']],
])('kernels whose threads wait: %s', (source, expected) => {
  const { isWaiting } = findWaiting(tokenize(source).tokens);
  expect(['k', 'k<f>', 'other', 'o'].filter((name) => source.includes(` ${name.replace(/<.*/, '')}(`) && isWaiting(name))).toEqual(
    expect.arrayContaining(expected),
  );
  expect(['other', 'o'].filter((name) => isWaiting(name) && source.includes(`void ${name}()`))).toEqual([]);
});

test('columns behind insertions map back', () => {
  const source = 'int a;\n__global__ void k(int* y) { foo; __syncthreads(); bar; }\n  baz;';
  const { tokens } = tokenize(source);
  const { text, restore } = rewriteForCpu(source, tokens);
  const lines = text.split('\n');
  for (const name of ['foo', 'bar', 'baz', 'k(']) {
    const line = lines.findIndex((one) => one.includes(name));
    const message = (row: string): string => `kernel.cu:${line + 1}:${row.indexOf(name) + 1}: error: '${name}' was not declared`;
    expect(restore(message(lines[line]!))).toBe(message(source.split('\n')[line]!));
  }
});

test.each([
  ['asm volatile("mov.u32 %0, %clock;" : "=r"(t));', 'inline PTX'],
  ['tex2DLayered<float>(t, 0, 0, 1);', 'texture functions other than'],
  ['tex2DLod<float>(t, 0, 0, 1);', 'texture functions other than'],
  ['surf2DLayeredwrite(1, s, 0, 0, 1);', 'surface functions other than'],
  ['thrust::sort(a, b);', 'the library Thrust'],
  ['nvcuda::wmma::fill_fragment(f, 0.0f);', "tensor-core intrinsics ('nvcuda')"],
  ['__nv_fp8_e4m3 v;', 'numbers of 8, 6 and 4 bits'],
  ['curandStateSobol32_t s;', 'generators of cuRAND'],
  ['using R = cub::BlockRunLengthDecode<int, 32, 1, 1>;', 'the CUB class'],
  ['cg::this_cluster().sync();', 'barriers of clusters'],
])('%s is refused', (statement, what) => {
  const error = refusal(`__global__ void k() { ${statement} }`);
  expect(error.message).toContain(what);
  expect(error.diagnostics[0]?.code).toBe('K703');
});

test('warp primitives without a mask are refused, and the message names the ones with a mask', () => {
  const error = refusal('__global__ void k(int v) { v = __shfl_down(v, 1); }');
  expect(error.message).toContain('calls __shfl_down, which GPUs since Volta do not have: call __shfl_down_sync.');
  expect(error.diagnostics[0]?.code).toBe('K706');
});

test.each(['cute/tensor.hpp', 'cuda/ptx', 'thrust/sort.h', 'mma.h', 'cuda_fp8.h', 'cuda_fp4.h', 'cuda_awbarrier.h'])(
  'the header %s is refused',
  (header) => {
    const error = refusal(`#include <stdint.h>\n#include <${header}>\n__global__ void k() {}`);
    expect(error.diagnostics).toMatchObject([{ code: 'K703', line: 2 }]);
    expect(error.message).toContain(`uses the header <${header}>, which the CPU device does not support`);
  },
);

test('code that only looks unsupported compiles', () => {
  const source =
    'int half = n / 2; // cub::\nint thrust = 1 << (2 << 3); const char* s = "__half __syncthreads"; float my__half; float any; int __syncthreadsx;';
  expect(() => refuseOnCpu(specOf(source, 'k'), tokenize(source))).not.toThrow();
  expect(hasWaits(tokenize(source).tokens)).toBe(false);
});

test('dynamic shared arrays keep the lines of the source', () => {
  expect(rewritten('int a;\nvoid f() {\n  extern __shared__\n    unsigned char s[]; s[0] = 1; }')).toBe(
    'int a;\nvoid f() {\n  unsigned char* const s = reinterpret_cast<unsigned char*>(mr_dynamic_shared);\n s[0] = 1; }',
  );
  expect(rewritten('extern "C" { extern __shared__ __align__(8) float s[]; }')).toBe(
    'extern "C" { static const mr_dynamic_array<float> s{}; }',
  );
  const unrelated = 'extern "C" __device__ void k() { __shared__ int s[4]; }';
  expect(rewritten(unrelated)).toBe(unrelated);
});

test('messages of g++, nvcc and the linker', () => {
  expect(parseLog("kernel.cu:3:7: error: 'foo' was not declared in this scope\n    3 | foo\n")).toEqual([
    { code: 'K702', line: 3, column: 7, message: "'foo' was not declared in this scope" },
  ]);
  expect(
    parseLog('/tmp/a/kernel.cu(3): error: identifier "foo" is undefined\n        y[i] = foo + 1;\n               ^\n\n1 error detected'),
  ).toEqual([{ code: 'K702', line: 3, column: 14, message: 'identifier "foo" is undefined' }]);
  const deep =
    'In file included from x:\nkernel.cu:9:4:   required from here\n/shim/atomics.h:50:17: error: static assertion failed: atomicAdd needs it\n';
  expect(parseLog(deep)).toEqual([{ code: 'K702', line: 9, column: 4, message: 'static assertion failed: atomicAdd needs it' }]);
  expect(parseLog("/usr/bin/ld: /tmp/x.o: in function `k':\nkernel.cu:(.text+0x1): undefined reference to `g()'\n")).toMatchObject([
    { message: "undefined reference to `g()'" },
  ]);
});

test('a comment and a directive continue after a backslash with trailing spaces', () => {
  const texts = (source: string): string[] => tokenize(source).tokens.map(({ text }) => text);
  expect(texts('a // one \\ \t\nasm("")\nb')).toEqual(['a', 'b']);
  expect(texts('a // one \\ two\nb')).toEqual(['a', 'b']);
  expect(texts('#define M \\  \r\n asm("")\nb')).toEqual(['b']);
});
