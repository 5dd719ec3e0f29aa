// Random kernels with all that a test needs of one: the kernel to launch, its typed form for the interpreter, the data,
// and what the interpreter says of them.
import { bf16, bool, CompileError, f16, f32, f64, func, i16, i32, i64, i8, inout, input, kernel, u16, u32, u64, u8 } from 'millrace';
import type { DType, Kernel, Param } from 'millrace';
import type { KernelIr } from '../../../src/compiler/ir/ir.js';
import { type RandomNumber, randomFrom } from '../random-text.js';
import { Unspecified, type Value } from './arithmetic.js';
import { type Fault, interpret } from './interpreter.js';
import { MADE, type Memory } from './memory.js';
import { extentOf, gridOf, type Plan } from './plans.js';
import { irOfText, textAsBody } from './typed-form.js';
import { CONSTANTS, HELPERS, LENGTH, MATHS, MEETINGS, OUTPUTS, ROWS, SHARED_BYTES, TypedKernel } from './typed-kernel.js';

const TYPES = { bool, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 } as const;
const FLAT = { a: 'f32', b: 'i32', c0: 'u32', d: 'f64', e: 'i64', h: 'f16' } as const satisfies Record<string, DType>;
const TABLES = { q: ['f32', [ROWS, ROWS]], g: ['i8', [ROWS, 2]] } as const satisfies Record<string, readonly [DType, readonly number[]]>;
const SCALARS = { n: i32, m0: i32, k0: u8, s0: f32, s1: f64, w0: i64, flag: bool } as const;

interface ArrayOf {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** The arrays of a launch, by name. */
function arraysOf(plan: Plan): Readonly<Record<string, ArrayOf>> {
  const own = (dtype: DType): ArrayOf => ({ dtype, shape: plan.threads });
  return {
    ...Object.fromEntries(Object.entries(FLAT).map(([name, dtype]) => [name, { dtype, shape: [LENGTH] }])),
    ...Object.fromEntries(Object.entries(TABLES).map(([name, [dtype, shape]]) => [name, { dtype, shape }])),
    ...Object.fromEntries(Object.entries(MEETINGS).map(([name, [dtype, length]]) => [name, { dtype, shape: [length] }])),
    ...Object.fromEntries(OUTPUTS.map(([dtype], at) => [`o${at}`, own(dtype)])),
    ...Object.fromEntries(
      MATHS.flatMap(([values, dtype, marks]) => [
        [values, own(dtype)],
        [marks, own('u8')],
      ]),
    ),
  };
}

function paramsFor(plan: Plan): Readonly<Record<string, Param>> {
  const isRead = (name: string): boolean => name in FLAT || name in TABLES;
  const arrays = Object.entries(arraysOf(plan)).map(([name, { dtype, shape }]) => {
    const rank = shape.length as 1 | 2 | 3;
    return [name, isRead(name) ? input(TYPES[dtype], rank) : inout(TYPES[dtype], rank)];
  });
  return { ...Object.fromEntries(arrays), ...SCALARS };
}

const functions = Object.fromEntries(
  Object.entries(HELPERS).map(([name, { params, result, body }]) => [
    name,
    func(
      params.map((type) => TYPES[type]),
      TYPES[result],
      textAsBody(body),
    ),
  ]),
);

export interface Case {
  readonly seed: number;
  readonly text: TypedKernel;
  readonly made: Kernel;
  readonly ir: KernelIr;
}

/** Those that the language takes: barriers at random stand where not all threads come. */
export function* cases(from: number): Generator<Case, never> {
  for (let seed = from; ; seed++) {
    const text = new TypedKernel(seed);
    const params = paramsFor(text.plan);
    const bounds = text.isChecked ? 'checked' : 'unchecked';
    try {
      const options = { functions, constants: CONSTANTS, fmad: false, bounds } as const;
      const made = kernel(`random_${seed}`, params, textAsBody(text.text), options) as Kernel;
      yield { seed, text, made, ir: irOfText(text.text, params, HELPERS, CONSTANTS) };
    } catch (error) {
      if (!(error instanceof CompileError) || error.diagnostics[0]!.code !== 'K401')
        throw new Error(`${String(error)}\n${text.text}`, { cause: error });
    }
  }
}

export interface Given extends ArrayOf {
  readonly data: Memory;
}
export interface Data {
  readonly arrays: Readonly<Record<string, Given>>;
  readonly scalars: Readonly<Record<keyof typeof SCALARS, Value>>;
}

export function dataFor({ seed, text }: Case): Data {
  const random = randomFrom(seed + 7);
  const arrays = Object.entries(arraysOf(text.plan)).map(([name, { dtype, shape }]): [string, Given] => {
    const length = shape.reduce((a, b) => a * b, 1);
    // Sums of what is whole are the same in any order.
    const isWhole = name === 'pf' || name === 'pd';
    const data: Memory = new MADE[dtype](length);
    const values = data as unknown as Value[];
    for (let at = 0; at < length; at++) values[at] = isWhole ? random(100) : anyOf(dtype, random);
    return [name, { dtype, shape, data }];
  });
  const scalars = {
    n: random(20) - 4,
    m0: random(1000),
    k0: random(256),
    s0: Math.fround(random(1000) / 300),
    s1: random(1000) / 70,
    w0: BigInt(random(2 ** 20)) - 500_000n,
    flag: random(2) === 0,
  };
  return { arrays: Object.fromEntries(arrays), scalars };
}

function anyOf(dtype: DType, random: RandomNumber): Value {
  if (dtype === 'bool') return random(2);
  if (dtype === 'u64') return BigInt(random(2 ** 32)) << BigInt(random(33));
  // The last bit decides how it is rounded to f32, and a double has no place for it.
  if (dtype === 'i64' && random(8) === 0) return (1n << 60n) + (1n << 36n) + 1n;
  if (dtype === 'i64') return (BigInt(random(2 ** 32)) << BigInt(random(31))) - 2n ** 40n;
  // The bits of a half of either sign and any size, but finite.
  if (dtype === 'f16') return (random(2) << 15) | random(0x6000);
  if (dtype === 'f32' || dtype === 'f64') return (random(2 ** 20) - 2 ** 19) / 2 ** random(25);
  return random(2 ** 32) >> random(32);
}

export interface Outcome {
  readonly arrays: Readonly<Record<string, Memory>>;
  readonly faults: readonly Fault[];
}

/** What the interpreter leaves in the arrays, and the threads that stopped; undefined where the language leaves it open. */
export function outcomeOf(ir: KernelIr, plan: Plan, { arrays, scalars }: Data): Outcome | undefined {
  const own = Object.fromEntries(Object.entries(arrays).map(([name, one]) => [name, { ...one, data: one.data.slice() }]));
  const guard = 2 ** 31 - 1;
  const launched = {
    arrays: own,
    scalars,
    extent: plan.isByGrid ? ([guard, guard, guard] as const) : extentOf(plan),
    grid: gridOf(plan),
    block: plan.block,
    sharedBytes: SHARED_BYTES,
  };
  try {
    const faults = interpret(ir, launched);
    return { arrays: Object.fromEntries(Object.entries(own).map(([name, { data }]) => [name, data as Memory])), faults };
  } catch (error) {
    if (error instanceof Unspecified) return undefined;
    throw error;
  }
}

export interface Decided {
  readonly one: Case;
  readonly data: Data;
  readonly outcome: Outcome;
}

/** Cases whose outcome the language decides. */
export function* decided(from: number): Generator<Decided, never> {
  const source = cases(from);
  for (;;) {
    const one = source.next().value;
    const data = dataFor(one);
    const outcome = outcomeOf(one.ir, one.text.plan, data);
    if (outcome !== undefined) yield { one, data, outcome };
  }
}

/** Names of the arrays that kernels write. */
export function writtenBy(plan: Plan): readonly string[] {
  return Object.keys(arraysOf(plan)).filter((name) => !(name in FLAT) && !(name in TABLES));
}
