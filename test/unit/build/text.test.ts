// Reading CUDA texts by their tokens: kernels, what the CPU device refuses and what it rewrites; compilers' messages.
import { expect, test } from 'vitest';
import { parseLog } from '../../../src/build/diagnostics.js';
import { kernelNames, rewriteForCpu } from '../../../src/build/rewrite.js';
import { refuseOnCpu } from '../../../src/build/surface.js';
import { tokenize } from '../../../src/build/text.js';
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

const refusal = (source: string): CompileError => caught(() => refuseOnCpu(specOf(source, 'k'), tokenize(source).tokens));

test('comments, strings and directives are no tokens', () => {
  const { tokens, hasMacros } = tokenize('a /* b\n c */ "d // e" // f\n#define g h \\\n i\n  j R"x(k)" )x" 1.5e-3f l\'m');
  expect(tokens.filter(({ kind }) => kind === 'name').map(({ text, line, column }) => [text, line, column])).toEqual([
    ['a', 1, 1],
    ['j', 5, 3],
    ['l', 5, 25],
    ['m', 5, 27],
  ]);
  expect(tokens.filter(({ kind }) => kind === 'string').map(({ text }) => text)).toEqual(['"d // e"', 'R"x(k)" )x"']);
  expect(hasMacros).toBe(true);
});

test('line markers set the line', () => {
  const { tokens } = tokenize('# 7 "kernel.cu"\na\n#line 20\n\nb');
  expect(tokens.map(({ text, line }) => [text, line])).toEqual([
    ['a', 7],
    ['b', 21],
  ]);
});

test('kernels are found, templates and comments are none', () => {
  const names = kernelNames(`
    // extern "C" __global__ void commented(int x);
    extern "C" { static int helper(int a); namespace inner { __global__ void inBlock(Pair<int, float> p, const float* __restrict__ x) {} } }
    template <typename T> __global__ void generic(T* x) { }
    extern "C" __global__ void twice(int*);
    extern "C" __global__ void twice(int*) { if (true) { } }
    extern "C" __global__ __launch_bounds__(256) void bounded(void (*f)(int, int), int n = 3) {}`);
  expect(names).toEqual(['inBlock', 'twice', 'bounded']);
});

test('indices become parameters, unless the body has scopes that would not see them', () => {
  const indices = '\nmr_index3 threadIdx, mr_index3 blockIdx, mr_index3 blockDim, mr_index3 gridDim';
  const a = '__global__ void a(';
  const pad = ' '.repeat(a.length);
  expect(rewriteForCpu(`\n${a}int n) { }`)).toBe(`\n${a}${indices},\n#line 2 "kernel.cu"\n${pad}int n) { }`);
  expect(rewriteForCpu(`${a}void);\n${a}) { }`)).toBe(
    `${a}${indices}\n#line 1 "kernel.cu"\n${pad}    );\n${a}${indices}\n#line 2 "kernel.cu"\n${pad}) { }`,
  );
  for (const body of ['auto f = [](int v) { return v + threadIdx.x; };', 'struct S { int v = threadIdx.x; };']) {
    const text = `__global__ void a(int n);\n__global__ void a(int n) { ${body} }`;
    expect(rewriteForCpu(text)).toBe(text);
  }
});

test.each([
  '__syncthreads',
  '__syncthreads_or',
  '__syncwarp',
  '__shfl_down_sync',
  '__ballot_sync',
  '__match_any_sync',
  'cooperative_groups',
])('%s is refused', (name) => {
  const error = refusal(`extern "C" __global__ void k() {\n  ${name}(1);\n}`);
  expect(error.diagnostics).toMatchObject([{ code: 'K402', file: 'user.ts', line: 2, column: 3 }]);
  expect(error.message).toContain(
    `Kernel 'k' uses ${name}, and the CPU device has no barriers and no warp primitives. It runs on a CUDA device`,
  );
  expect(error.message).toContain(`2 |   ${name}(1);\n    |   ^`);
});

test.each([
  ['asm volatile("mov.u32 %0, %clock;" : "=r"(t));', 'inline PTX'],
  ['child<<<1, 1>>>(x);', 'launches from kernels'],
  ['tex2D<float>(t, 0, 0);', 'textures'],
  ['thrust::sort(a, b);', 'libraries'],
  ['__half h;', 'half-precision'],
])('%s is refused', (statement, what) => {
  const error = refusal(`__global__ void k() { ${statement} }`);
  expect(error.message).toContain(what);
  expect(error.diagnostics[0]?.code).toBe('K703');
});

test('what only looks like it passes', () => {
  const source = 'int half = n / 2; // __syncthreads()\nint thrust = 1 << (2 << 3); const char* s = "__syncwarp"; float my__syncthreads;';
  expect(() => refuseOnCpu(specOf(source, 'k'), tokenize(source).tokens)).not.toThrow();
});

test('dynamic shared arrays keep the lines of the text', () => {
  expect(rewriteForCpu('int a;\nvoid f() {\n  extern __shared__\n    unsigned char s[]; s[0] = 1; }')).toBe(
    'int a;\nvoid f() {\n  unsigned char* const s = reinterpret_cast<unsigned char*>(mr_dynamic_shared);\n s[0] = 1; }',
  );
  expect(rewriteForCpu('extern "C" { extern __shared__ __align__(8) float s[]; }')).toBe(
    'extern "C" { static const mr_dynamic_array<float> s{}; }',
  );
  const unrelated = 'extern "C" __device__ void k() { __shared__ int s[4]; }';
  expect(rewriteForCpu(unrelated)).toBe(unrelated);
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
