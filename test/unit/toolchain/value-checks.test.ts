// Structs, vectors and bytes by value: the layouts that `struct` computes are those of g++, nvcc and NVRTC, and each refuses a type that
// differs. Compilers that are not there are skipped; MILLRACE_NVRTC names the library of NVRTC.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { described } from '../../../src/compiler/definitions/parameter-types.js';
import { vec3f, vec4f } from '../../../src/compiler/language/elements.js';
import { CompileError } from '../../../src/core/base/errors.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { bool, f16, f32, f64, i16, i32, i64, i8, type Scalar, u16, u32, u64, u8 } from '../../../src/core/elements/dtype.js';
import { type CudaParam, inout, input, output } from '../../../src/core/kernels/kernel.js';
import { optional } from '../../../src/core/kernels/params.js';
import { arrayOf, bytes, dim3, type Field, struct, type StructParam, vec } from '../../../src/core/kernels/value-params.js';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { NvccCompiler, NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { hasNvcc } from '../../support/nvcc.js';
import { RTC } from '../../support/rtc.js';

const folder = mkdtempSync(join(tmpdir(), 'millrace-values-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const COMPILERS = [
  ['the CPU device', true, () => CpuCompiler.open()],
  ['nvcc', hasNvcc, () => NvccCompiler.open('sm_80')],
  ['NVRTC', RTC !== undefined, () => Promise.resolve(new NvrtcCompiler(RTC!, 'sm_90'))],
] as const;

const CPP: Readonly<Record<string, string>> = {
  bool: 'bool',
  i8: 'signed char',
  u8: 'unsigned char',
  i16: 'short',
  u16: 'unsigned short',
  i32: 'int',
  u32: 'unsigned',
  i64: 'long long',
  u64: 'unsigned long long',
  f16: 'unsigned short',
  f32: 'float',
  f64: 'double',
};
const SCALARS: readonly Scalar[] = [bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64];
const OF_VECTORS = [i8, u8, i16, u16, i32, u32, i64, u64, f32, f64] as const;

/** A generator of small whole numbers, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

const OFFSET = `#if defined(__CUDACC_RTC__) && !defined(MILLRACE_CPU_DEVICE)
#define OFFSET(type, field) __INTADDR__(&((type*)0)->field)
#else
#define OFFSET(type, field) __builtin_offsetof(type, field)
#endif
`;

interface Written {
  readonly field: Field;
  /** Its declaration in C++ under this name. */
  readonly declare: (name: string) => string;
}

/** Adds the definitions that the field needs to `texts`. */
function randomField(next: (below: number) => number, texts: string[], depth: number): Written {
  const kind = next(depth > 0 ? 7 : 5);
  if (kind < 2) {
    const scalar = SCALARS[next(SCALARS.length)]!;
    return { field: scalar, declare: (name) => `${CPP[scalar.dtype]} ${name};` };
  }
  if (kind === 2) {
    const field = vec(OF_VECTORS[next(OF_VECTORS.length)]!, (1 + next(4)) as 1 | 2 | 3 | 4);
    return { field, declare: (name) => `${described(field)} ${name};` };
  }
  if (kind === 3) {
    const field = [input(f32), inout(f32), output(f32), optional(input(f32))][next(4)]!;
    return { field, declare: (name) => `float* ${name};` };
  }
  if (kind === 4) {
    const size = 1 + next(9);
    return next(2) === 0
      ? { field: dim3, declare: (name) => `dim3 ${name};` }
      : { field: bytes(size), declare: (name) => `char ${name}[${size}];` };
  }
  if (kind === 5) {
    const length = 1 + next(4);
    const inner = randomField(next, texts, depth - 1);
    return { field: arrayOf(inner.field, length), declare: (name) => inner.declare(`${name}[${length}]`) };
  }
  const { name: own, declared } = randomStruct(next, texts, depth - 1);
  return { field: declared, declare: (name) => `${own} ${name};` };
}

function randomStruct(next: (below: number) => number, texts: string[], depth: number): { name: string; declared: StructParam } {
  const fields = Array.from({ length: 1 + next(6) }, () => randomField(next, texts, depth));
  const natural = struct(Object.fromEntries(fields.map(({ field }, at) => [`f${at}`, field])));
  const align = next(4) === 0 ? Math.max(natural.align, 32) : natural.align;
  const declared = struct(natural.fields, { align });
  const name = `S${texts.length}`;
  const aligned = align === natural.align ? '' : `__align__(${align}) `;
  texts.push(`struct ${aligned}${name} { ${fields.map(({ declare }, at) => declare(`f${at}`)).join(' ')} };\n`);
  return { name, declared };
}

const MIXED = 'struct Inner { char a; double b; };\nstruct P { const float* x; float* y; int n; float3 o; Inner in; float m[4]; };\n';
const mixed = {
  x: input(f32),
  y: inout(f32),
  n: i32,
  o: vec3f,
  in: struct({ a: i8, b: f64 }),
  m: arrayOf(f32, 4),
};

function specOf(before: string, type: string, param: CudaParam): BuildSpec {
  return cudaKernel('k', { first: i32, p: param }, `${before}\n__global__ void k(int first, ${type} p) {}`).build as BuildSpec;
}

type Case = readonly [before: string, type: string, param: CudaParam];
/** One kernel with a parameter of each case, whose definitions are in a namespace. */
function specOfAll(cases: readonly Case[]): BuildSpec {
  const before = cases.map(([text], at) => `namespace c${at} {\n${text}\n}\n`);
  const types = cases.map(([, type], at) => `${type.replace(/\b(?:P|U|V|Of|R|A|Four)\b/, `c${at}::$&`)} p${at}`);
  const params = Object.fromEntries(cases.map(([, , param], at) => [`p${at}`, param]));
  return cudaKernel('k', params, `${before.join('')}__global__ void k(${types.join(', ')}) {}`).build as BuildSpec;
}

describe.each(COMPILERS)('%s', (_name, isThere, open) => {
  test.skipIf(!isThere)('lays out 200 random structs alike', { timeout: 120_000 }, async () => {
    const compiler = await open();
    const next = numbers(7);
    const texts: string[] = [];
    const checks: string[] = [];
    for (let at = 0; at < 200; at++) {
      const { name: own, declared } = randomStruct(next, texts, 2);
      checks.push(`static_assert(sizeof(${own}) == ${declared.byteSize} && alignof(${own}) == ${declared.align}, "${own}");`);
      for (const [field, offset] of Object.entries(declared.offsets)) {
        checks.push(`static_assert(OFFSET(${own}, ${field}) == ${offset}, "${own}::${field}");`);
      }
    }
    const source = `${OFFSET}${texts.join('')}${checks.join('\n')}\nextern "C" __global__ void k(int n) {}`;
    expect((await compiler.compile(cudaKernel('k', { n: i32 }, source).build as BuildSpec)).length).toBeGreaterThan(0);
  });

  test.skipIf(!isThere)('accepts values with the same layout', { timeout: 300_000 }, async () => {
    const compiler = await open();
    const header = '#pragma once\nnamespace lib { struct Hidden { int a; double b; Hidden* next; }; }\n';
    mkdirSync(join(folder, 'include'), { recursive: true });
    writeFileSync(join(folder, 'include', 'hidden.h'), header);
    const method = 'struct P { int n; double s; __device__ double get() const { return n * s; } };';
    const spec = specOf(`#define a 3\n${MIXED.replace('char a', 'char aa')}`, 'P', struct({ ...mixed, in: struct({ a: i8, b: f64 }) }));
    await compiler.compile(spec);
    const cases = [
      [MIXED, 'const P', struct(mixed)],
      [MIXED, 'P', bytes(struct(mixed).byteSize)],
      [method, 'P', struct({ n: i32, s: f64 })],
      ['', 'float4', vec4f],
      ['', 'float2', struct({ x: f32, y: f32 }, { align: 8 })],
      ['union U { float f; int i; };', 'U', bytes(4)],
      ['struct __align__(16) V { float a; __device__ V(float x) : a(x) {} };', 'V', struct({ a: f32 }, { align: 16 })],
      ['template <class T> struct Of { T at; int n; };', 'Of<double>', struct({ at: f64, n: i32 })],
      [
        'template <class T> struct R { const T *__restrict__ x; T *const __restrict__ y; };',
        'R<float>',
        struct({ x: input(f32), y: inout(f32) }),
      ],
    ] as const;
    await compiler.compile(specOfAll(cases));
    // CUDA 13 has them.
    if (open === COMPILERS[0][2]) await compiler.compile(specOf('', 'double4_32a', vec(f64, 4, { align: 32 })));
    const source = '#include "hidden.h"\n__global__ void k(lib::Hidden h) {}';
    const options = [`-I${join(folder, 'include')}`];
    await compiler.compile(cudaKernel('k', { h: struct({ a: i32, b: f64, next: input(u8) }) }, source, { options }).build as BuildSpec);
    const wrong = cudaKernel('k', { h: struct({ a: i32, b: i64, next: input(u8) }) }, source, { options }).build as BuildSpec;
    await expect(compiler.compile(wrong)).rejects.toThrow(
      "The parameter 'h' (struct of 24 bytes) is 'lib::Hidden h' in the source, at position 1: its field 'b' (i64) has another type there",
    );
  });

  test.skipIf(!isThere)('refuses a value with another layout, and names the difference', { timeout: 300_000 }, async () => {
    const compiler = await open();
    const unseen = 'struct P { int n; double s; __device__ double get() const { return n * s; } };';
    const cases = [
      [
        unseen,
        'P',
        struct({ n: i32, s: f64, t: f64 }),
        "(struct of 24 bytes) is 'c0::P p0' in the source, at position 1: its size there is not 24 bytes",
      ],
      [unseen, 'P', struct({ s: f64, n: i32 }), "its field 's' (f64) is not at offset 0 there"],
      [unseen, 'P', struct({ n: i32, s: i64 }), "its field 's' (i64) has another type there"],
      [unseen, 'P', struct({ n: i32, s: inout(f64) }), "its field 's' (pointer) has another type there"],
      [unseen, 'P', bytes(12), 'its size there is not 12 bytes'],
      [unseen, 'P', vec(i32, 4), '(int4)'],
      [`${unseen}\n#define GET(x) x`, 'GET(P)', f64, 'a struct passed by value is declared with struct({ ... }) or bytes(n)'],
      ['typedef float4* Four;\n#define GET(x) x', 'GET(Four)', vec4f, 'a value cannot be a pointer'],
      [
        'struct __align__(16) A { int a, b, c, d; };',
        'A',
        struct({ a: i32, b: i32, c: i32, d: i32 }),
        'its alignment there is not 4 bytes',
      ],
    ] as const;
    const error: unknown = await compiler
      .compile(specOfAll(cases.map(([before, type, param]) => [before, type, param])))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CompileError);
    const { message, diagnostics } = error as CompileError;
    expect(message).toContain(cases[0][3]);
    for (const [at, [, , , shown]] of cases.entries())
      expect(diagnostics.find((one) => one.message.includes(`The parameter 'p${at}' `))?.message).toContain(shown);
  });
});
