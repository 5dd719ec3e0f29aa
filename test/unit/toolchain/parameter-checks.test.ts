// Parameters whose types only a compiler knows: the results of the CPU device's compiler and of nvcc for each declaration.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { CpuCompiler } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { NvccCompiler, type Nvrtc, NvrtcCompiler } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { CompileError } from '../../../src/core/base/errors.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { bool, f32, f64, i32, i64, i8, u16, u32, u64, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input, type Param } from '../../../src/core/kernels/kernel.js';
import { hasNvcc } from '../../support/nvcc.js';

const folder = mkdtempSync(join(tmpdir(), 'millrace-parameters-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** With macros whose names are common in kernels. */
const TYPES = `#define N 16
#define T float
#define U_ 3
#define R 2
#define types own_types
namespace own_types {
typedef unsigned long long U; typedef float Real; struct P { int a; float b; }; struct Half { unsigned short bits; }; struct Unknown; enum class Small : signed char { a }; typedef bool Flag;
typedef const double* Row; typedef void (*Call)(int); typedef signed char Byte; enum Open { no, yes }; enum Wide { most = 1LL << 40 };
}
using namespace own_types;
`;
type Case = readonly [type: string, right: Param | undefined, wrong: Param, shown: string];
const CASES: readonly Case[] = [
  ['U', u64, i32, 'an unsigned integer of 8 bytes'],
  ['U', u64, i64, 'an unsigned integer of 8 bytes'],
  ['const Real', f32, f64, 'a floating-point number of 4 bytes'],
  ['P', undefined, f32, 'a struct passed by value is declared with struct({ ... }) or bytes(n)'],
  ['Small', i8, i32, 'an enum of 1 byte'],
  ['Open', u32, i64, 'an enum of 4 bytes'],
  ['Wide', i64, u32, 'an enum of 8 bytes'],
  ['Flag', bool, i32, 'bool'],
  ['Byte', i8, u8, 'a signed integer of 1 byte'],
  ['Row', input(f64), inout(f64), 'an inout array cannot be const'],
  ['Row', input(f64), input(f32), 'its elements there are floating-point numbers of 8 bytes'],
  ['Row', input(f64), u64, 'a scalar cannot be a pointer'],
  ['U', u64, input(u64), 'an array needs a pointer'],
  ['U*', inout(u64), inout(u32), 'its elements there are unsigned integers of 8 bytes'],
  ['P*', inout(f32), u64, 'a scalar cannot be a pointer'],
  ['const Half*', input(u16), input(f32), 'its elements there are smaller structs; half is declared as f16, and __nv_bfloat16 as bf16'],
  ['Unknown*', inout(f64), u64, 'a scalar cannot be a pointer'],
  ['Call', undefined, u64, 'a scalar cannot be a pointer'],
];

function specOf(type: string, param: Param, before = TYPES): BuildSpec {
  const source = `${before}extern "C" __global__ void k(int first, ${type} value) {}`;
  return cudaKernel('k', { first: i32, value: param }, source).build as BuildSpec;
}

const COMPILERS = [
  ['the CPU device', true, () => CpuCompiler.open()],
  ['nvcc', hasNvcc, () => NvccCompiler.open('sm_80')],
] as const;

describe.each(COMPILERS)('%s', (_name, isThere, open) => {
  test.skipIf(!isThere)('rejects a different type, and names it', { timeout: 120_000 }, async () => {
    const compiler = await open();
    // Some of it tokens tell.
    const cases = CASES.filter(([type, , wrong]) => !(type.endsWith('*') && wrong.kind === 'scalar'));
    const source = `${TYPES}extern "C" __global__ void k(${cases.map(([type], at) => `${type} p${at}`).join(', ')}) {}`;
    const params = Object.fromEntries(cases.map(([, , wrong], at) => [`p${at}`, wrong]));
    const error: unknown = await compiler.compile(cudaKernel('k', params, source).build as BuildSpec).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CompileError);
    const { message, diagnostics } = error as CompileError;
    expect(diagnostics).toHaveLength(cases.length);
    for (const [at, [type, , wrong, shown]] of cases.entries()) {
      const declared = wrong.kind === 'array' ? `${wrong.dtype}*` : wrong.dtype;
      expect(diagnostics[at]!.message, type).toContain(`The parameter 'p${at}' (${declared}) is '${type} p${at}'`);
      expect(diagnostics[at]!.message, type).toContain(shown);
    }
    expect(message).toContain(diagnostics[0]!.message);
    expect(message).toContain('extern "C" __global__ void k');
  });

  test.skipIf(!isThere)('accepts the same type', { timeout: 120_000 }, async () => {
    const compiler = await open();
    const fitting = CASES.flatMap(([type, right]) => (right === undefined ? [] : [{ type, right }]));
    const source = `${TYPES}extern "C" __global__ void k(${fitting.map(({ type }, at) => `${type} p${at}`).join(', ')}) {}`;
    const params = Object.fromEntries(fitting.map(({ right }, at) => [`p${at}`, right]));
    const spec = cudaKernel('k', params, source).build as BuildSpec;
    expect(spec.parameterChecks?.list.map((one) => one.name)).toEqual(Object.keys(params));
    expect((await compiler.compile(spec)).length).toBeGreaterThan(0);
  });

  test.skipIf(!isThere)('checks kernels in namespaces, and those that the preprocessor selects', { timeout: 120_000 }, async () => {
    const compiler = await open();
    const inside = `namespace a {\n${TYPES} extern "C" __global__ void k(Real x) { x = 1; } }`;
    const chosen = '#ifdef WIDE\nextern "C" __global__ void k(double x) {}\n#else\nextern "C" __global__ void k(float x) {}\n#endif';
    for (const source of [inside, chosen]) {
      await compiler.compile(cudaKernel('k', { x: f32 }, source).build as BuildSpec);
      await expect(compiler.compile(cudaKernel('k', { x: f64 }, source).build as BuildSpec)).rejects.toThrow("The parameter 'x' (f64)");
    }
    await expect(compiler.compile(cudaKernel('k', { x: f32, y: f32 }, chosen).build as BuildSpec)).rejects.toThrow(
      "params has 2 entries, but 'k' has a different number of parameters",
    );
  });
});

test('kernels whose threads wait, and those that assert, are checked too', { timeout: 60_000 }, async () => {
  const compiler = await CpuCompiler.open();
  for (const body of ['__shared__ int s; s = 1; __syncthreads(); y[0] = s;', 'assert(y); y[0] = 1;', '__syncwarp(); y[threadIdx.x] = 1;']) {
    const source = `${TYPES}extern "C" __global__ void k(int* y, U value) { ${body} }`;
    const build = (value: Param): BuildSpec => cudaKernel('k', { y: inout(i32), value }, source).build as BuildSpec;
    await compiler.compile(build(u64));
    await expect(compiler.compile(build(i32))).rejects.toThrow("The parameter 'value' (i32) is 'U value'");
  }
});

test('NVRTC receives the checks after the source', async () => {
  const sources: string[] = [];
  const compile: Nvrtc['compile'] = ({ source }) => {
    sources.push(source);
    return Promise.resolve({ image: new Uint8Array(1), symbols: [], log: '' });
  };
  const compiler = new NvrtcCompiler({ version: [12, 8], path: '/none', compile, link: () => Promise.resolve({ log: '' }) }, 'sm_90');
  const [checked, plain] = [specOf('Unknown', f32), specOf('float', f32)];
  await compiler.compile(checked);
  await compiler.compile(plain);
  expect(sources[0]).toContain(`#line 1 "kernel.cu"\n${checked.source}\n#line 1 "parameters"\n`);
  expect(sources[0]).toContain('static_assert');
  expect(sources[1]!.endsWith(`#line 1 "kernel.cu"\n${plain.source}`)).toBe(true);
});

test('an image of one declaration is not reused for another', { timeout: 60_000 }, async () => {
  const builder = new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: folder });
  expect(await builder.build(specOf('U', u64))).toMatchObject({ fromCache: false });
  expect(await builder.build(specOf('U', u64))).toMatchObject({ fromCache: true });
  await expect(builder.build(specOf('U', i64))).rejects.toThrow(CompileError);
});

test('a type of a header', { timeout: 60_000 }, async () => {
  writeFileSync(join(folder, 'own_types.h'), 'typedef double Real;\n');
  const compiler = await CpuCompiler.open();
  const build = (value: Param, header: string): BuildSpec =>
    cudaKernel('k', { value }, `#include ${header}\nextern "C" __global__ void k(Real value) {}`, { options: [`-I${folder}`] })
      .build as BuildSpec;
  await compiler.compile(build(f64, '"own_types.h"'));
  expect(() => build(f32, '"own_types.h"')).toThrow('the element type there is f64');
  await compiler.compile(build(f64, '<own_types.h>'));
  expect(() => build(f32, '<own_types.h>')).toThrow('the element type there is f64');
});
