// Launches in CUDA C++ source, rewritten as calls for the CPU device; nvcc compiles the same sources.
import { expect, test } from 'vitest';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { rewriteLaunches } from '../../../src/cuda-cpp/lower/kernel-launches.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { specOf } from './run-image.js';

const HEAD = `template <class T> struct pair { T a, b; };
namespace ns { template <class T, int N> __global__ void both(T* x) {} __global__ void plain() {} }
template <class T> __global__ void deduced(T* x) {}
template <int N = 3> __global__ void defaulted(int* x) {}
__global__ void __launch_bounds__(32) bounded(int* x) {}
__global__ void late(int* x);
`;

const CASES: readonly (readonly [launch: string, call: string])[] = [
  ['bounded<<<1, 2>>>(x);', 'mr_launch<bounded, mr_max_threads_bounded>(1, 2)(x);'],
  ['late<<<1, 2>>>(x);', 'mr_launch<late>(1, 2)(x);'],
  ['ns::plain<<<1, 2>>>();', 'mr_launch<ns::plain>(1, 2)();'],
  ['::ns::plain<<<1, 2>>>();', 'mr_launch<::ns::plain>(1, 2)();'],
  ['ns::both<int, 4><<<n >> 1, 2>>>(x);', 'mr_launch<ns::both<int, 4>>(n >> 1, 2)(x);'],
  ['ns::both<int, (3 > 2)><<<1, 2>>>(x);', 'mr_launch<ns::both<int, (3 > 2)>>(1, 2)(x);'],
  ['deduced<<<1, 2>>>(x);', 'mr_launch_body(MR_BODY(deduced), 1, 2)(x);'],
  ['deduced<int><<<1, 2>>>(x);', 'mr_launch<deduced<int>>(1, 2)(x);'],
  ['defaulted<><<<1, 2>>>(x);', 'mr_launch<defaulted<>>(1, 2)(x);'],
  [
    'if (n) late<<<dim3(n, 2), dim3(1), sizeof(pair<int>) * 2, 0>>>(x);',
    'if (n) mr_launch<late>(dim3(n, 2), dim3(1), sizeof(pair<int>) * 2, 0)(x);',
  ],
  ['late<<<1, 2, 0, cudaStreamTailLaunch>>>(&x[n > 3 ? 1 : 0]);', 'mr_launch<late>(1, 2, 0, cudaStreamTailLaunch)(&x[n > 3 ? 1 : 0]);'],
];

function textOf(launch: string): string {
  return `${HEAD}extern "C" __global__ void k(int* x, int n) { ${launch} }\n__global__ void late(int* x) { *x = 1; }\n`;
}

test.each(CASES)('%s', (launch, call) => {
  const text = textOf(launch);
  expect(rewriteLaunches(text, tokenize(text).tokens).text).toBe(textOf(call));
});

test('each of them compiles for the CPU device', { timeout: 120_000 }, async () => {
  const compiler = await CpuCompiler.open();
  const text = textOf(CASES.map(([launch]) => launch).join('\n'));
  expect((await compiler.compile(specOf(text, 'k', { isLaunching: true }))).length).toBeGreaterThan(0);
});

test('messages of the compiler have the columns of the source', async () => {
  const compiler = await CpuCompiler.open();
  const text = textOf('late<<<1, 2>>>(x); late<<<1, 2>>>(x, y);');
  const error = await compiler.compile(specOf(text, 'k', { isLaunching: true })).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CompileError);
  const line = text.split('\n').findIndex((one) => one.includes('void k('));
  expect((error as CompileError).diagnostics[0]).toMatchObject({ line: line + 1, column: text.split('\n')[line]!.indexOf('y);') + 1 });
});

test('comparisons and shifts are not launches', () => {
  const text = 'extern "C" __global__ void k(int* x, int n) { *x = n << 3 < 4; *x = n >> 2 > 1; }';
  expect(rewriteLaunches(text, tokenize(text).tokens).text).toBe(text);
});

test('unsupported device runtime calls are rejected by name', async () => {
  const compiler = await CpuCompiler.open();
  const text = 'extern "C" __global__ void k(int* x) { k<<<1, 1>>>(x); cudaMemsetAsync(x, 0, 4); }';
  const error = await compiler.compile(specOf(text, 'k', { isLaunching: true })).catch((thrown: unknown) => thrown);
  expect((error as CompileError).message).toMatch(/^K703: .*'cudaMemsetAsync'/);
});

test.skipIf(!hasNvcc)('nvcc compiles each of them (skipped where there is no nvcc)', { timeout: 120_000 }, () => {
  checkWithNvcc([textOf(CASES.map(([launch]) => launch).join('\n'))], ['-arch=sm_90', '-w']);
});
