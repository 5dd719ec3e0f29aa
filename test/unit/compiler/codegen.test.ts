// Code generation in the device's worker: sources are emitted from posted data when a compiler needs them.
import { expect, test } from 'vitest';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { written } from '../../../src/compiler/codegen/emit-sources.js';
import { CompileError } from '../../../src/core/base/errors.js';
import type { UnwrittenBuild } from '../../../src/core/channel/build-spec.js';
import { bool, f32, i32, u64 } from '../../../src/core/elements/dtype.js';
import { inout, type InOut, type Kernel } from '../../../src/core/kernels/kernel.js';
import { writtenOf } from '../../support/written.js';
import { withText } from './support.js';

const params = { x: inout(f32), n: i32 } as const;
/** As the worker receives it. */
function posted(made: object): UnwrittenBuild {
  return structuredClone((made as Kernel).build) as UnwrittenBuild;
}

test('a posted kernel emits the same source as in its own thread', () => {
  const made = kernel('all', { ...params, w: inout(u64), b: bool }, ({ x, n, w, b }, { i, shared, syncthreads, assert, local }) => {
    const tile = shared(f32, 64);
    const own = local(i32, 4);
    own[i & 3] = n;
    tile[i & 63] = b ? -0 : Infinity;
    syncthreads();
    assert(n > 0);
    w[i] = w[i]! * 0x9e3779b97f4a7c15n;
    for (let k = 0; k < n; k++) x[i] = x[i]! + tile[k]! + own[k & 3]!;
  });
  for (const lanes of ['off', 'always'] as const) expect(written(posted(made), lanes)).toEqual(writtenOf(made, lanes));
  expect(writtenOf(made, 'off').source).toBe(made.source);
  expect(writtenOf(made, 'off')).not.toHaveProperty('form');
});

test('the SIMD form is emitted only on request', () => {
  const straight = kernel('straight', params, ({ x, n }, { i, blockIdx }) => {
    x[i] = n + blockIdx.x;
  });
  const parting = kernel('parting', params, ({ x, n }, { i }) => {
    if (i < n) x[i] = n;
  });
  const telling = kernel('telling', params, ({ n }, { i, print }) => {
    if (i < n) print(i);
  });
  const has = (made: object): boolean[] =>
    (['off', 'auto', 'always'] as const).map((wanted) => writtenOf(made, wanted).simdSource !== undefined);
  expect(has(straight)).toEqual([false, false, true]);
  expect(has(parting)).toEqual([false, true, true]);
  expect(has(telling)).toEqual([false, false, false]);
});

test('facts that launches need are known before a source is emitted', () => {
  const waiting = kernel('1st', params, ({ x, n }, { i, syncthreads, assert }) => {
    assert(n > 1);
    syncthreads();
    assert(n > 2);
    x[i] = 1;
  });
  expect(waiting.build).toMatchObject({ entry: 'k1st_kernel', isChecked: true, isOfBlocks: true, assertions: ['n > 1', 'n > 2'] });
  expect(waiting.source).toContain('k1st_kernel(');
  const failures = [...waiting.source.matchAll(/MR_FAILED\((\d+)u\)/g)].map(([, number]) => number);
  expect(new Set(failures)).toEqual(new Set(['0', '1']));
  expect(kernel('plain', params, ({ x }, { i }) => void (x[i] = 1), { bounds: 'unchecked' }).build).toMatchObject({
    isChecked: false,
    isOfBlocks: false,
  });
});

test('invalid source is rejected at the definition, although no source is emitted', () => {
  const text = '({ x }, { i, syncthreads }) => { if (i > 3) syncthreads(); }';
  expect(() => kernel('k', params, withText(text))).toThrow(/K401/);
});

test("nesting that overflows the emitter's stack is a CompileError", () => {
  const made = kernel('deep', params, ({ x, n }, { i }) => {
    x[i] = n;
  });
  const build = posted(made);
  const { form } = build as unknown as { readonly form: { readonly ir: { readonly body: readonly { value: object }[] } } };
  let value = form.ir.body[0]!.value;
  for (let depth = 0; depth < 100_000; depth++) value = { kind: 'negate', type: 'f32', operand: value };
  form.ir.body[0]!.value = value;
  expect(() => written(build, 'auto')).toThrow(CompileError);
  expect(() => written(build, 'auto')).toThrow(/K006.*'deep'/);
});

test('only the checked members of a parameter are posted', () => {
  const own = { ...inout(f32), note: () => 0 };
  const made = kernel('noted', { x: own }, ({ x }, { i }) => {
    x[i] = 1;
  });
  const plain = kernel('noted', { x: inout(f32) }, ({ x }, { i }) => {
    x[i] = 1;
  });
  Object.assign(own, { dtype: 'i32' });
  expect(written(posted(made), 'off').source).toBe(plain.source);
  expect(made.params.x).toEqual(inout(f32) satisfies InOut<'f32'>);
});

test('a kernel that can be defined can be posted', () => {
  const sum = (terms: number): object =>
    kernel('sum', params, withText(`({ x, n }, { i }) => { x[i] = ${Array.from({ length: terms }, () => 'n').join(' + ')}; }`));
  expect(written(posted(sum(1000)), 'off').source).toContain('sum_kernel(');
  expect(() => sum(2000)).toThrow(/K006/);
});
