// Random functions for `elementwise`, with what each of their steps gives in its type. Products are not added to: devices round both at once.
import type { DType } from 'millrace';
import * as ops from 'millrace/ops';
import { cast, isFloat, rounded, type Value } from '../element-model.js';
import { together } from '../operation-model.js';
import { broadcastShape, broadcastValues, narrowedShape } from '../random-views.js';
import type { RandomNumber } from '../random-text.js';
import { type Maker, valuesOf } from '../shaped-cases.js';

type Type = 'bool' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64';
interface Node {
  readonly text: string;
  readonly type: Type;
  readonly isProduct: boolean;
  of(args: readonly Value[]): Value;
}

const REGISTERS: Readonly<Record<DType, Type>> = {
  bool: 'bool',
  i8: 'i32',
  u8: 'i32',
  i16: 'i32',
  u16: 'i32',
  i32: 'i32',
  u32: 'u32',
  i64: 'i64',
  u64: 'u64',
  f16: 'f32',
  bf16: 'f32',
  f32: 'f32',
  f64: 'f64',
};
/** Types that combine with each other. */
const FAMILIES: readonly (readonly DType[])[] = [
  ['f32'],
  ['f64'],
  ['f16', 'bf16', 'f32'],
  ['f32', 'f64', 'i32', 'i16'],
  ['i32', 'i8', 'u8', 'i16', 'u16'],
  ['u32'],
  ['i64'],
  ['u64'],
];

const isWide = (type: Type): boolean => type === 'i64' || type === 'u64';
/** Two types meet in the one that holds more. */
const met = (a: Type, b: Type): Type => (['i32', 'f32', 'f64'].indexOf(a) > ['i32', 'f32', 'f64'].indexOf(b) ? a : b);

/** A step in a type: of floats rounded once, of integers wrapped. */
function stepOf(operator: string, type: Type): (a: Value, b: Value) => Value {
  if (isFloat(type)) {
    const of = REAL[operator]!;
    return (a, b) => rounded(type, of(Number(cast(a, type)), Number(cast(b, type))));
  }
  const of = WHOLE[operator]!;
  return (a, b) => cast(of(a as bigint, b as bigint), type);
}
const REAL: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};
const WHOLE: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '&': (a, b) => a & b,
  '|': (a, b) => a | b,
  '^': (a, b) => a ^ b,
};
const TESTS: Readonly<Record<string, (a: Value, b: Value) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '===': (a, b) => a === b,
  '!==': (a, b) => a !== b,
};

class Expressions {
  readonly #random: RandomNumber;
  readonly #params: readonly Node[];

  constructor(random: RandomNumber, params: readonly Node[]) {
    this.#random = random;
    this.#params = params;
  }

  #pick<T>(of: readonly T[]): T {
    return of[this.#random(of.length)]!;
  }

  node(depth: number): Node {
    if (depth === 0) return this.#pick(this.#params);
    const kind = this.#random(10);
    const a = this.node(depth - 1);
    if (kind === 0) return this.#negated(a);
    if (kind <= 2) return this.#chosen(a, this.node(depth - 1), this.node(depth - 1), this.node(depth - 1));
    if (kind === 3 && isFloat(a.type)) return this.#called(a);
    const b = kind <= 5 ? this.#literal(a.type) : this.node(depth - 1);
    return this.#joined(a, b);
  }

  #literal(type: Type): Node {
    if (isFloat(type)) {
      const value = this.#pick([0.5, 1.5, 2.25, 3, 100]);
      return { text: String(value), type, isProduct: false, of: () => value };
    }
    const value = this.#random(9);
    return { text: isWide(type) ? `${value}n` : String(value), type, isProduct: false, of: () => BigInt(value) };
  }

  #joined(a: Node, b: Node): Node {
    const type = met(a.type, b.type);
    const all = Object.keys(isFloat(type) ? REAL : WHOLE);
    const operator = this.#pick(all.filter((sign) => (sign !== '+' && sign !== '-') || !(isFloat(type) && (a.isProduct || b.isProduct))));
    // `x | 0` is JavaScript's cast to i32.
    if (operator === '|' && b.text === '0' && type === 'u32') {
      return { text: `(${a.text} | 0)`, type: 'i32', isProduct: false, of: (args) => cast(a.of(args), 'i32') };
    }
    const step = stepOf(operator, type);
    return { text: `(${a.text} ${operator} ${b.text})`, type, isProduct: operator === '*', of: (args) => step(a.of(args), b.of(args)) };
  }

  #negated(a: Node): Node {
    const of = (args: readonly Value[]): Value => (isFloat(a.type) ? -(a.of(args) as number) : cast(-(a.of(args) as bigint), a.type));
    return { ...a, text: `(-${a.text})`, of };
  }

  /** Functions of one rounding. */
  #called(a: Node): Node {
    const name = this.#pick(['abs', 'floor', 'ceil', 'sqrt', 'trunc'] as const);
    return {
      text: `Math.${name}(${a.text})`,
      type: a.type,
      isProduct: a.isProduct,
      of: (args) => rounded(a.type, Math[name](a.of(args) as number)),
    };
  }

  #chosen(a: Node, b: Node, one: Node, other: Node): Node {
    if (one.type !== other.type) return one;
    const test = this.test(a, b);
    const of = (args: readonly Value[]): Value => (test.of(args) === 1n ? one.of(args) : other.of(args));
    return { text: `(${test.text} ? ${one.text} : ${other.text})`, type: one.type, isProduct: one.isProduct || other.isProduct, of };
  }

  test(a: Node, b: Node): Node {
    const type = met(a.type, b.type);
    const sign = this.#pick(Object.keys(TESTS));
    const of = (args: readonly Value[]): Value => (TESTS[sign]!(cast(a.of(args), type), cast(b.of(args), type)) ? 1n : 0n);
    return { text: `${a.text} ${sign} ${b.text}`, type: 'bool', isProduct: false, of };
  }
}

export const elementwise: Maker = (one) => {
  const family = one.choose(FAMILIES);
  const count = 1 + one.pattern(3);
  const dtypes = Array.from({ length: count }, () => one.choose(family));
  const number = count > 1 && one.pattern(3) === 0 ? one.pattern(count) : -1;
  const shape = one.shape();
  const held = dtypes.map((dtype, n) =>
    n === number ? undefined : one.held(dtype, n === 0 || number === 0 ? shape : narrowedShape(one.random, shape)),
  );
  const arrays = held.filter((each) => each !== undefined);
  // A number has the type of the arrays.
  const beside = together(arrays.map((each) => each.dtype));
  const types = dtypes.map((dtype, n) => REGISTERS[n === number ? beside : dtype]);
  const names = ['a', 'b', 'c'].slice(0, count);
  const params = names.map((text, n): Node => ({ text, type: types[n]!, isProduct: false, of: (args) => args[n]! }));
  const make = new Expressions(one.pattern, params);
  const inner = make.node(2);
  const kept: Node = { ...inner, text: 't' };
  const outer = new Expressions(one.pattern, [...params, kept]);
  const whole = one.pattern(5) === 0 ? outer.test(kept, outer.node(1)) : outer.node(2);
  const text =
    one.pattern(2) === 0
      ? `{ const t = ${inner.text}; return ${whole.text}; }`
      : `{ return ${whole.text.replaceAll(/\bt\b/g, inner.text)}; }`;
  const full = broadcastShape(arrays.map((each) => each.shape));
  const scalar = isWide(REGISTERS[beside]) && one.flip() ? 5n : isFloat(beside) ? one.pick([2.5, -0.25]) : 5;
  const columns = held.map((each) => (each ? broadcastValues(valuesOf(each), each.shape, full) : undefined));
  const exact = Array.from({ length: full.reduce((a, b) => a * b, 1) }, (_, n) =>
    whole.of(columns.map((column) => column?.[n] ?? (isFloat(beside) ? Number(scalar) : BigInt(scalar)))),
  );
  const common = together([...arrays.map((each) => each.dtype), beside]);
  const own: DType = REGISTERS[common] === whole.type ? common : whole.type;
  // oxlint-disable-next-line no-new-func
  const fn = new Function(...names, text.slice(1, -1)) as (...args: readonly number[]) => number;
  const args = held.map((each) => each?.array ?? scalar);
  one.callBy(
    (all) => (ops.elementwise(fn) as (...all: readonly unknown[]) => never)(...all),
    `elementwise((${names.join()}) => ${text})`,
    args,
    {},
    { dtype: own, own, shape: full, exact },
    arrays,
  );
};
