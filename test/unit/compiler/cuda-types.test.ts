// Parameters whose types CUDA C++ source declares: compared if tokens tell the type, else left to the compiler's check.
import { describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { ArgumentError } from '../../../src/core/base/errors.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { bf16, bool, f16, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8 } from '../../../src/core/elements/dtype.js';
import { type CudaParam, inout, input, output, type Param } from '../../../src/core/kernels/kernel.js';
import { arrayOf, bytes, struct } from '../../../src/core/kernels/value-params.js';
import { vec3f } from '../../../src/compiler/language/elements.js';
import { cudaModule } from '../../../src/cuda-module.js';

function made(before: string, type: string, param: Param): BuildSpec {
  return cudaKernel('k', { n: param }, `${before}\nextern "C" __global__ void k(${type} n) {}`).build as BuildSpec;
}

function refusal(before: string, type: string, param: Param): string {
  try {
    made(before, type, param);
  } catch (error) {
    expect(error).toBeInstanceOf(ArgumentError);
    return (error as Error).message;
  }
  throw new Error(`${before} ${type} is accepted.`);
}

describe('a type name that the source declares resolves to its type', () => {
  test.each<readonly [before: string, type: string, right: Param, wrong: Param, shown: string]>([
    ['typedef unsigned long long U;', 'U', u64, i32, 'u64'],
    ['using U = unsigned long long int;', 'U', u64, i64, 'u64'],
    ['#define U long unsigned int', 'const U', u64, u32, 'u64'],
    ['#define WORD unsigned\ntypedef WORD Base; using U = const Base;', 'U', u32, i32, 'u32'],
    ['extern "C" { typedef double real, *reals; }', 'real', f64, f32, 'f64'],
    ['typedef double real, *reals;', 'reals', inout(f64), inout(f32), 'f64'],
    ['typedef const float* Row;', 'Row', input(f32), output(f32), 'const'],
    ['typedef float* Row;', 'const Row', output(f32), input(f64), 'f32'],
    ['#define Row float*', 'const Row', input(f32), output(f32), 'const'],
    ['typedef float real;', 'real*', output(f32), output(f64), 'f32'],
    ['typedef float real;', 'const real* __restrict__', input(f32), output(f32), 'const'],
    ['enum class E : unsigned char { a };', 'E', u8, i32, 'u8'],
    ['enum class E { a };', 'E', i32, f32, 'i32'],
    ['enum E { a };', 'enum E', u32, f32, 'i32'],
    ['typedef enum { a } E;', 'E', i32, i8, 'i32'],
    ['typedef unsigned short half;', 'half', u16, f32, 'u16'],
    ['', 'size_t', u64, i32, 'u64'],
    ['', 'std::ptrdiff_t', i64, i32, 'i64'],
    ['', 'uintptr_t', u64, u32, 'u64'],
    ['', 'uint', u32, i32, 'u32'],
    ['', 'ushort', u16, i8, 'u16'],
    ['', '__half', f16, f32, 'f16'],
    ['', '__nv_bfloat16', bf16, f16, 'bf16'],
    ['', 'const nv_bfloat16*', input(u16), input(f16), 'bf16'],
    ['', 'const unsigned short*', input(bf16), input(i16), 'element type differs'],
    ['', 'uchar', bool, i8, 'u8'],
  ])('%s %s', (before, type, right, wrong, shown) => {
    expect(() => made(before, type, right)).not.toThrow();
    expect(refusal(before, type, wrong)).toMatch(new RegExp(`'n' .*${shown}`));
  });

  test('the message names both types', () => {
    expect(refusal('typedef unsigned long long U;', 'U', i32)).toMatchInlineSnapshot(
      `"The parameter 'n' (i32) is 'U n' in the source, at position 1: the element type there is u64."`,
    );
    expect(refusal('struct P { int a; float b; };', 'P', f32)).toMatchInlineSnapshot(
      `"The parameter 'n' (f32) is 'P n' in the source, at position 1: a struct passed by value is declared with struct({ ... }) or bytes(n)."`,
    );
    expect(refusal('', 'float4', f32)).toMatchInlineSnapshot(
      `"The parameter 'n' (f32) is 'float4 n' in the source, at position 1: a vector passed by value is declared with vec(f32, 4)."`,
    );
  });
});

test.each([
  ['struct P { int a; float b; };', 'P'],
  ['struct __align__(8) P { int a; float b; };', 'const struct P'],
  ['typedef struct { int a; } P;', 'P'],
  ['union alignas(8) P { int a; float b; };', 'P'],
  ['class P final : Q { int a; }; using A = P;', 'A'],
  ['', 'float4'],
  ['', 'dim3'],
  ['#define V uchar4', 'V'],
])('%s %s: a struct by value is no scalar and no array', (before, type) => {
  for (const param of [f32, u64, u32]) expect(refusal(before, type, param)).toContain('by value');
  expect(refusal(before, type, input(f32))).toContain('an array needs a pointer');
  expect(() => made(before, `${type}*`, inout(f32))).not.toThrow();
});

test.each<readonly [before: string, param: CudaParam, shown: string | undefined]>([
  ['struct P; struct P { int a; };', struct({ a: i32 }), undefined],
  ['struct P; struct P { int a; };', struct({ a: f32 }), "its field 'a' (f32) is 'int a' there: the element type differs"],
  ['typedef struct P P; struct P { int a, *b; };', struct({ a: i32, b: inout(f32) }), "its field 'b' (f32*) is 'int * b' there"],
  [
    'typedef struct { int a; float c[3]; } P;',
    struct({ a: i32, c: arrayOf(f32, 4) }),
    "(f32[4]) is 'float c[3]' there: it has 3 elements there",
  ],
  ['struct P { float m[2][3]; };', struct({ m: arrayOf(arrayOf(f32, 3), 2) }), undefined],
  ['struct I { float x; }; struct P { I i[2]; };', struct({ i: arrayOf(struct({ x: i32 }), 2) }), "its field 'x' (i32) is 'float x' there"],
  ['struct P { std::uint8_t a = 0; };', struct({ a: i8 }), 'the element type there is u8'],
  ['using P = float;', struct({ x: f32 }), 'it is a scalar there: declare it with f32'],
  ['using P = float;', bytes(8), "(bytes(8)) is 'P n' in the source, at position 1: its size there is 4 bytes"],
  ['#define P float4', vec3f, "(float3) is 'P n' in the source, at position 1: it is float4 there"],
  ['#define P float4', bytes(16), undefined],
])('%s: a value is compared with the fields that the source shows', (before, param, shown) => {
  const make = (): BuildSpec => cudaKernel('k', { n: param }, `${before}\n__global__ void k(P n) {}`).build as BuildSpec;
  if (shown === undefined) expect(make().parameterChecks?.list).toHaveLength(1);
  else expect(make).toThrow(shown);
});

test('a scalar cannot be a pointer to any type', () => {
  for (const type of ['void*', 'float**', 'Unknown*', 'float4*']) expect(refusal('', type, u64)).toContain('a scalar cannot be a pointer');
  for (const type of ['void*', 'Unknown*', 'float4*']) expect(() => made('', type, inout(u8))).not.toThrow();
});

describe('the compiler checks a type that tokens do not tell', () => {
  test.each([
    ['', 'Real'],
    ['#include "types.h"', 'Real'],
    ['#ifndef Real\n#define Real float\n#endif', 'Real'],
    ['#ifdef WIDE\ntypedef double Real;\n#else\ntypedef float Real;\n#endif', 'Real'],
    ['#define Real float\n#undef Real\n#define Real double', 'Real'],
    ['#define TYPE(x) x', 'TYPE(float)'],
    ['namespace a { typedef double Real; } using namespace a;', 'Real'],
    ['__device__ void f() { typedef double Real; }', 'Real'],
    ['struct S { typedef double Real; };', 'S::Real'],
    ['template <class T> struct Of { using Real = T; };', 'Of<float>::Real'],
    ['using Real = decltype(1.0f);', 'Real'],
    ['#define Real Real', 'Real'],
    ['#define A B B\n#define B C C\n#define C D D\n#define D A A', 'A'],
  ])('%s %s', (before, type) => {
    for (const param of [f32, f64]) {
      const { parameterChecks } = made(before, type, param);
      expect(parameterChecks?.list).toEqual([expect.objectContaining({ name: 'n', at: 0, dtype: param.dtype, access: undefined })]);
    }
  });

  test('an enum may have 4 or 8 bytes', () => {
    for (const param of [i32, u32, i64, u64]) expect(made('enum E { a };', 'E', param).parameterChecks?.list).toHaveLength(1);
  });

  test('and no other', () => {
    expect(made('typedef float Real;', 'Real', f32).parameterChecks).toBeUndefined();
    expect(made('', 'void*', inout(f32)).parameterChecks).toBeUndefined();
    expect(made('', 'float4*', inout(f32)).parameterChecks).toBeUndefined();
  });

  test('every parameter of a kernel that the preprocessor selects', () => {
    const text = '#ifdef WIDE\nextern "C" __global__ void k(double x) {}\n#else\nextern "C" __global__ void k(float x) {}\n#endif';
    expect((cudaKernel('k', { x: f32 }, text).build as BuildSpec).parameterChecks?.list).toHaveLength(1);
  });

  test('in modules too', () => {
    const module = cudaModule('typedef unsigned long long U; extern "C" __global__ void k(U n, Real x) {}');
    expect(() => module.kernel('k', { n: i32, x: f32 })).toThrow(ArgumentError);
    expect((module.kernel('k', { n: u64, x: f32 }).build as BuildSpec).parameterChecks?.list).toHaveLength(1);
  });
});

test('types are found in linear time in any source', () => {
  for (const piece of ['{', '(', 'typedef ', 'typedef int a;', 'using a =', 'struct ', '#define A A\n', '#if 1\n', 'enum E :', '<', '};']) {
    const start = performance.now();
    try {
      made(piece.repeat(20_000), 'Real', f32);
    } catch {
      // Not every piece leaves the kernel to be found.
    }
    expect(performance.now() - start, piece).toBeLessThan(5000);
  }
});
