// Kernels that differ only in their parameters.
import { expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { withSeparateNames } from '../../../src/cuda-cpp/select/overloads.js';
import { withoutComments } from '../../../src/cuda-cpp/read/tokens.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { f32, f64, i32, u8 } from '../../../src/core/elements/dtype.js';
import { type CudaParams, inout, input } from '../../../src/core/kernels/kernel.js';
import { NvccCompiler, NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { splitSymbols } from '../../../src/toolchain/base/symbols.js';
import { hasNvcc } from '../../support/nvcc.js';
import { RTC } from '../../support/rtc.js';
import { textOf } from '../../cuda-texts/text-case.js';

const TWO = '__global__ void f(float* x) { x[0] = 1; }\n__global__ void f(double* x) { x[0] = 2; }';

/** The names of the kernels afterwards. */
function namesIn(source: string): string[] {
  const { source: made } = withSeparateNames(source, withoutComments(source));
  expect(made.split('\n')).toHaveLength(source.split('\n').length);
  return [...made.matchAll(/\b(f\w*)\s*\(/g)].map(([, name]) => name!);
}
const specOf = (params: CudaParams, source: string): BuildSpec => cudaKernel('f', params, source).build as BuildSpec;

test.each([
  ['two definitions', TWO, ['f', 'f_overload_2']],
  ['a C name is kept', TWO.replace('\n', '\nextern "C" '), ['f_overload_1', 'f']],
  ['prototypes are removed', `__global__ void f(double*);\n${TWO}\n__global__ void f(int*);`, ['f', 'f_overload_2']],
  ['the same in a namespace and outside', TWO.replace(/\n(.*)/, '\nnamespace a { $1 }'), ['f', 'f']],
  ['branches of one #if', `#if A\n${TWO.replace('\n', '\n#else\n')}\n#endif`, ['f', 'f']],
  ['within one branch', `#if A\nint a;\n#else\n${TWO}\n#endif`, ['f', 'f_overload_2']],
  ['behind an include guard', `#ifndef H\n#define H\n${TWO.replace('\n', '\n#endif\n')}`, ['f', 'f_overload_2']],
  ['one definition twice', TWO.replace('double', 'float'), ['f', 'f']],
  ['a template', `template <class T> ${TWO}`, ['f', 'f']],
  ['macros', TWO.replaceAll('__global__', '#define MAKE __global__'), ['f', 'f']],
  ['kernels that kernels launch', `${TWO}\n__global__ void k(float* x) { f<<<1, 1>>>(x); }`, ['f', 'f']],
  ['a name that is taken', `int f_overload_2(int);\n${TWO}`, ['f_overload_2', 'f', 'f']],
])('%s', (_what, source, expected) => expect(namesIn(source)).toEqual(expected));

test('an overload for the element itself is nearer than one for a struct', () => {
  const vectors = '__global__ void f(const float3* x) {}\n__global__ void f(const float* x) {}';
  expect(specOf({ x: input(f32) }, vectors)).toMatchObject({ path: 'f_overload_2' });
  expect(specOf({ x: input(u8) }, vectors)).toMatchObject({ path: 'f' });
});

test('the parameters select the overload', () => {
  expect(specOf({ x: inout(f32) }, TWO)).toMatchObject({ entry: 'f', path: 'f' });
  expect(specOf({ x: inout(f64) }, TWO)).toMatchObject({ entry: 'f', path: 'f_overload_2' });
  const inner = `namespace a {\n${TWO}\n}`;
  expect(specOf({ x: inout(f64) }, inner)).toMatchObject({ entry: 'f', path: 'a::f_overload_2' });
  const counted = TWO.replace('double* x', 'float* x, int n');
  expect(specOf({ x: inout(f32), n: i32 }, counted)).toMatchObject({ path: 'f_overload_2' });
  const unknown = TWO.replace('float*', 'mine*');
  expect(specOf({ x: inout(f64) }, unknown)).toMatchObject({ path: 'f_overload_2' });
  expect(specOf({ x: inout(f32) }, unknown)).toMatchObject({ path: 'f' });
});

test('parameters that fit none or several overloads are an ArgumentError', () => {
  expect(() => specOf({ x: inout(i32) }, TWO)).toThrow(
    "params fits none of the 2 overloads of 'f' in the source: (float* x), (double* x).",
  );
  const both = TWO.replace('double*', 'const float*');
  expect(() => specOf({ x: input(f32) }, both)).toThrow(
    "params fits 2 of the 2 overloads of 'f' in the source: (float* x), (const float* x). Give each kernel a name of its own.",
  );
  expect(specOf({ x: inout(f32) }, both)).toMatchObject({ path: 'f' });
});

test('overloads that kernels launch are refused at their place', () => {
  const launched = `${TWO}\n__global__ void k(float* x) { f<<<1, 1>>>(x); }`;
  expect(() => specOf({ x: inout(f32) }, launched)).toThrow(/K005: Several kernels have the name 'f', and the source launches them\./);
  expect(cudaKernel('k', { x: inout(f32) }, launched).build).toMatchObject({ path: 'k' });
});

const CHOICES = [
  ['scale', { x: inout(f32) }, 'scale'],
  ['scale', { x: inout(f64) }, 'scale_overload_2'],
  ['scale', { x: inout(i32), by: i32 }, 'scale_overload_3'],
  ['units::scale', { x: inout(f32) }, 'units::scale'],
  ['summed', { x: inout(i32) }, 'summed_overload_2'],
] as const;
const chosen = (name: string, params: CudaParams): BuildSpec => cudaKernel(name, params, textOf('kernel-overloads')).build as BuildSpec;

test.skipIf(RTC === undefined)('NVRTC builds each overload by its name', async () => {
  for (const [name, params, path] of CHOICES) {
    const { image, symbols } = splitSymbols(await new NvrtcCompiler(RTC!, 'sm_90').compile(chosen(name, params)));
    const plain = path.split('::').at(-1)!;
    expect(symbols[path]).toContain(`${plain.length}${plain}`);
    expect(Buffer.from(image).includes(symbols[path]!)).toBe(true);
  }
});

test.skipIf(!hasNvcc)('nvcc builds each overload by a C name', { timeout: 60_000 }, async () => {
  const compiler = await NvccCompiler.open('sm_90');
  const [name, params, path] = CHOICES[1];
  expect(Buffer.from(await compiler.compile(chosen(name, params))).includes(`.text.${path}\0`)).toBe(true);
});
