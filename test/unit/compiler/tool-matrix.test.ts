// Every construct of the language under every build tool: the result is the same kernel or an error with a code, never another kernel; and
// errors name the position in the user's file.
//
// Tools that keep the statements give the same IR. Minifiers may produce an equivalent kernel: those are built for the CPU device and run
// beside the original, and all bits of their results are compared.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { KernelTextError } from '../../../src/compiler/diagnostics/diagnostics.js';
import { lowerFunctions } from '../../../src/compiler/definitions/func.js';
import { irHash } from '../../../src/compiler/ir/hash.js';
import type { KernelIr } from '../../../src/compiler/ir/ir.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { lowerKernel } from '../../../src/compiler/lowering/lower.js';
import { parseFunction } from '../../../src/compiler/source/parse.js';
import type { DType } from '../../../src/core/elements/dtype.js';
import type { Param } from '../../../src/core/kernels/kernel.js';
import { IS_LONG } from '../../support/long.js';
import { type ImageArgument, ImageRunner } from '../toolchain/run-image.js';
import type { Definition } from './fixtures/define.js';
import * as kernels from './fixtures/kernels.js';
import { withText } from './support.js';
import { type Asked, through, throughVitest, type Tool, TOOLS } from './tools.js';

const definitions: Readonly<Record<string, Definition>> = kernels;
const ENUMERATED = `
enum Mode { Sum = 2, Product = 5 }
export const enumerated = define({ r: output(i32) }, ({ r }, { i }) => { r[i] = i * (Mode.Product as number); });
`;

/** The texts of the kernels, and the places of errors. */
const ASKED: readonly Asked[] = [
  { module: 'kernels', script: 'texts.mjs', more: ENUMERATED },
  { module: 'mistakes', script: 'places.mjs' },
];
type Answers = readonly [texts: Record<string, string>, errors: Record<string, Found>];

/** The intended kernels: the original source, with the values that a tool may substitute for outer names. */
const meant: Record<string, { readonly definition: Definition; readonly body: unknown }> = {};
for (const [name, definition] of Object.entries(definitions)) meant[name] = { definition, body: definition.body };
const { outer } = kernels;
meant['outer'] = { definition: outer, body: withText(String(outer.body).replace('TILE', '16')) };
meant['enumerated'] = { definition: outer, body: withText(String(outer.body).replace('TILE', '5')) };

function irOf(name: string, { params, options }: Definition, body: unknown): KernelIr {
  return lowerKernel(name, parseFunction(body), params, options.constants ?? {}, lowerFunctions(options.functions ?? {}));
}

/** `same`, `other`, or the code of the error. */
function outcome(name: string, text: string): string {
  const { definition, body } = meant[name]!;
  try {
    return irHash(irOf(name, definition, withText(text))) === irHash(irOf(name, definition, body)) ? 'same' : 'other';
  } catch (error) {
    if (error instanceof KernelTextError) return error.code;
    throw error;
  }
}

/** Kernels that differ, with their outcome. */
function unlike(texts: Readonly<Record<string, string>>): Record<string, string[]> {
  expect(Object.keys(texts).toSorted()).toEqual(Object.keys(meant).toSorted());
  const found: Record<string, string[]> = {};
  for (const name of Object.keys(texts).toSorted()) {
    const what = outcome(name, texts[name]!);
    if (what !== 'same') (found[what] ??= []).push(name);
  }
  return found;
}

/** Outer names are not visible unless the tool has substituted their values. */
const OUTER = { K101: ['outer'] };
const OUTER_AND_ENUM = { K101: ['enumerated', 'outer'] };
const EVERY = Object.keys(meant).toSorted();

const EXPECTED: Readonly<Record<string, Record<string, string[]>>> = {
  'tsx, ES modules': OUTER,
  'tsx, CommonJS': OUTER,
  esbuild: OUTER,
  'esbuild for ES2015': OUTER,
  'esbuild, map beside the bundle': OUTER,
  'esbuild, minified': { K101: ['imports', 'outer'], other: ['loops'] },
  'esbuild, minified, names kept': { K101: ['imports', 'outer'], other: ['loops'] },
  'swc, ES modules': OUTER,
  'swc, CommonJS': OUTER,
  'swc for ES5': { K301: EVERY },
  'swc, minified': {
    K101: ['imports'],
    K201: ['operators'],
    K301: ['loops'],
    other: ['arrows', 'atomics', 'branches', 'drawn', 'enumerated', 'literals', 'numbers', 'outer', 'rows'],
  },
  terser: { K101: ['imports'], other: ['arrows', 'atomics', 'branches', 'enumerated', 'literals', 'loops', 'operators', 'outer', 'rows'] },
  'tsc, ES modules': OUTER_AND_ENUM,
  'tsc, CommonJS': OUTER_AND_ENUM,
  'tsc for ES2015': OUTER_AND_ENUM,
};

interface Found {
  readonly message: string;
  readonly file?: string;
  readonly line: number;
  readonly column: number;
}

const mistakes = readFileSync(new URL('./fixtures/mistakes.ts', import.meta.url), 'utf8').split('\n');

/** By function: the 'line:column' of the text that a line's comment names. */
const places: Record<string, string> = {};
let inside = '';
for (const [at, line] of mistakes.entries()) {
  inside = /^export function (\w+)/.exec(line)?.[1] ?? inside;
  const name = /\/\/ at: (.*)$/.exec(line)?.[1];
  if (name !== undefined) places[inside] = `${at + 1}:${line.indexOf(name) + 1}`;
}

function shown(found: Record<string, Found>): Record<string, string> {
  const all = Object.entries(found).map(([name, { message, file, line, column }]): [string, string] => {
    const [, where = message] = message.split('\n');
    const isExact = file !== undefined && where.endsWith(` at ${file}:${line}:${column}`) && file.endsWith('/mistakes.ts');
    return [name, isExact ? `${line}:${column}` : where.replace(/\S*\//, '')];
  });
  return Object.fromEntries(all);
}

/** Errors about code that only the tool wrote: a `var`, or the temporary of a `??`. */
const NEAR: Readonly<Record<string, readonly string[]>> = {
  'esbuild for ES2015': ['method'],
  'tsc for ES2015': ['method'],
  'swc for ES5': ['method', 'narrow', 'quotient'],
};

function expectPlaces({ name: tool }: Tool, errors: Record<string, Found>): void {
  if (tool === TOOLS[0]!.name || tool === 'esbuild, minified')
    expectFrame(errors['quotient']!.message, tool === TOOLS[0]!.name ? '^^^^^^^^^' : '^^^^^');
  const found = shown(errors);
  const near = NEAR[tool] ?? [];
  expect(Object.entries(found).flatMap(([name, where]) => (/ near \w+\.\w+:\d+$/.test(where) ? [name] : []))).toEqual(near);
  expect(found).toEqual({ ...places, ...Object.fromEntries(near.map((name) => [name, found[name]])) });
}

/** The code frame shows the line of the user's file. Where names were shortened, a word is marked. */
function expectFrame(message: string, marked: string): void {
  const [, , line, marks] = message.split('\n');
  expect(line).toMatch(/^ {2}\d+ \| {5}const half = width \/ 2;/);
  expect(marks).toBe(`     |${' '.repeat(18)}${marked}`);
}

let runner: ImageRunner;
let builder: KernelBuilder;
const cache = mkdtempSync(join(tmpdir(), 'millrace-matrix-cache-'));
beforeAll(() => {
  runner = new ImageRunner();
  builder = new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: cache });
});
afterAll(() => {
  runner.close();
  rmSync(cache, { recursive: true, force: true });
});

const ARRAYS: { readonly [D in DType]?: (values: readonly number[]) => NodeJS.TypedArray } = {
  bool: (values) => Uint8Array.from(values),
  i8: (values) => Int8Array.from(values),
  u8: (values) => Uint8Array.from(values),
  u16: (values) => Uint16Array.from(values),
  i32: (values) => Int32Array.from(values),
  u32: (values) => Uint32Array.from(values),
  f32: (values) => Float32Array.from(values),
  f64: (values) => Float64Array.from(values),
};
const SHAPES: readonly (readonly number[])[] = [[], [64], [64, 8], [64, 8, 4]];

/** Distinct values that are integers where needed, and valid as indices. */
function valuesFor(dtype: DType, count: number, seed: number): NodeJS.TypedArray {
  const isFloat = dtype === 'f32' || dtype === 'f64';
  const numbers = Array.from({ length: count }, (_unused, at) => {
    const value = ((at + seed) * 2654435761) % 4294967296;
    return isFloat ? value / 1e9 - 1 : value % 61;
  });
  return ARRAYS[dtype]!(numbers);
}

interface Argument {
  readonly array: Uint8Array;
  readonly given: readonly ImageArgument[];
}

function argumentFor(param: Param, seed: number): Argument {
  if (param.kind === 'scalar') {
    const { buffer } = ARRAYS[param.dtype]!([param.dtype === 'bool' ? 1 : param.dtype === 'f32' ? 1.7 : 5]);
    return { array: new Uint8Array(), given: [{ value: new Uint8Array(buffer) }] };
  }
  const shape = SHAPES[param.rank]!;
  const { buffer } = valuesFor(
    param.dtype,
    shape.reduce((product, extent) => product * extent, 1),
    seed,
  );
  const array = new Uint8Array(buffer);
  return { array, given: [array, ...shape.map((extent) => ({ value: Int32Array.of(extent) }))] };
}

/** The contents of the kernel's arrays after the launch, as bytes. */
async function computed(name: string, definition: Definition, body: unknown): Promise<string[]> {
  const { params, options } = definition;
  const made = kernel(name, params, body as never, { ...options, bounds: 'unchecked', fmad: false } as never);
  const { image } = await builder.build(made.build);
  const threads = made.indexRank === 2 ? [8, 8, 1] : [64, 1, 1];
  const [x, y, z] = threads as [number, number, number];
  const given = Object.values(params).map((param, at) => argumentFor(param, at));
  const extents = threads.map((extent) => ({ value: Int32Array.of(extent) }));
  const args = [...given.flatMap((argument) => argument.given), ...extents];
  runner.run(image, made.build.entry, { grid: [1, 1, 1], block: [x, y, z], threads: 1 }, args);
  return given.map(({ array }) => Buffer.from(array).toString('hex'));
}

/** Every kernel with different IR must compute the original's results. */
async function expectMeaning(texts: Readonly<Record<string, string>>, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const { definition, body } = meant[name]!;
    const [own, wanted] = [await computed(name, definition, withText(texts[name]!)), await computed(name, definition, body)];
    expect({ name, own }).toEqual({ name, own: wanted });
  }
}

describe('through each tool', () => {
  test.each(TOOLS)('$name', { timeout: 120_000 }, async (tool) => {
    const [texts, errors] = await through<Answers>(tool, ASKED);
    const found = unlike(texts);
    expect(found).toEqual(EXPECTED[tool.name]);
    await expectMeaning(texts, found['other'] ?? []);
    expectPlaces(tool, errors);
  });

  // Coverage by V8 changes no text, so every day runs without it.
  test.each([undefined, ...(IS_LONG ? (['v8'] as const) : [])])('vitest, coverage by %s', { timeout: 120_000 }, async (coverage) => {
    const [texts, errors] = await throughVitest<Answers>(coverage, ASKED);
    expect(unlike(texts)).toEqual(OUTER_AND_ENUM);
    expect(shown(errors)).toEqual(places);
  });

  test('vitest, coverage by istanbul: counters move what follows them, so only the line is told', { timeout: 120_000 }, async () => {
    const [texts, errors] = await throughVitest<Answers>('istanbul', ASKED);
    expect(unlike(texts)).toEqual(OUTER_AND_ENUM);
    const lines = Object.entries(shown(errors)).map(([name, where]) => [name, / near mistakes\.ts:(\d+)$/.exec(where)?.[1]]);
    expect(lines).toEqual(Object.entries(places).map(([name, place]) => [name, place.split(':')[0]]));
  });
});
