// Random cases of operations whose results are not element by element: operands of any layout, results in new arrays and in `out`, and what the
// result must be. The operations are in test/support/operations.
import type { Device, DeviceArray, DType } from 'millrace';
import { cast, isFloat, type Range, type Value } from './element-model.js';
import { callOf, type Checked, type Draw, isWithin } from './operation-cases.js';
import type { RandomNumber } from './random-text.js';
import { countOf, type Held, type HeldOptions, places, randomHeld, stridesOf, valuesOf } from './random-views.js';
import type { Target } from './target.js';
import { DTYPES } from './values.js';

/** What an operation gives, without regard to where it goes: an exact value of each element, and how far a float may be from it. */
export interface Wanted {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly exact: readonly Value[];
  /** Of each element; 0 by default. */
  readonly slack?: readonly number[];
  readonly looseZero?: boolean;
  /** The type without `dtype`. */
  readonly own?: DType;
}
type Opts = Readonly<Record<string, unknown>>;

export const REAL_TYPES: readonly DType[] = ['f16', 'bf16', 'f32', 'f64'];
export const WHOLE_TYPES: readonly DType[] = DTYPES.filter((dtype) => !isFloat(dtype) && dtype !== 'bool');
export const NUMBER_TYPES: readonly DType[] = DTYPES.filter((dtype) => dtype !== 'bool');

/** Elements of the memory in which the operands and the result of a case may overlap. */
const POOL = 700;
const typeText = ({ dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] }): string => `${dtype}[${shape.join()}]`;

/** One random case: what it draws, the arrays that it owns, and what it checks. */
export class Case {
  readonly random: RandomNumber;
  /** What makes another kernel. */
  readonly pattern: RandomNumber;
  readonly checks: Checked[] = [];
  readonly owned: Disposable[] = [];
  readonly device: Device;
  readonly target: Target;
  readonly #text: string;
  readonly #pools: Map<string, Held> = new Map();
  /** Whether operands and the result lie in the same memory. */
  readonly #isPooled: boolean;
  #described = '';
  /** What the elements of arrays are like. */
  range: Range = 'any';

  constructor(device: Device, target: Target, draw: Draw, text: string) {
    this.device = device;
    this.target = target;
    this.random = draw.random;
    this.pattern = draw.pattern;
    this.#text = text;
    this.#isPooled = this.random(3) === 0;
  }

  get text(): string {
    return `${this.#text}: ${this.#described}`;
  }

  pick<T>(of: readonly T[]): T {
    return of[this.random(of.length)]!;
  }

  /** An element type, or another choice that makes another kernel. */
  choose<T>(of: readonly T[]): T {
    return of[this.pattern(of.length)]!;
  }

  flip(of = 2): boolean {
    return this.random(of) === 0;
  }

  /** An extent: small, sometimes 0 or 1, seldom long. */
  extent(least = 0): number {
    const kind = this.random(16);
    return Math.max(least, kind === 0 ? 0 : kind <= 2 ? 1 : kind === 3 ? 20 + this.random(60) : 2 + this.random(4));
  }

  shape(least = 0, most = 4): number[] {
    const shape = Array.from({ length: least + this.random(most - least + 1) }, () => this.extent());
    // At most one long axis, so that references stay quick.
    return countOf(shape) > 3000 ? shape.map((extent) => Math.min(extent, 5)) : shape;
  }

  /** An axis, and as the options name it. */
  axis(rank: number, byDefault: number): readonly [axis: number, given: { readonly axis?: number }] {
    if (this.flip(4)) return [byDefault < 0 ? byDefault + rank : byDefault, {}];
    const axis = this.random(rank);
    return [axis, { axis: this.flip() ? axis : axis - rank }];
  }

  /** A random array of this shape in any layout. */
  held(dtype: DType, shape: readonly number[], change?: HeldOptions['change']): Held {
    const pooled = this.#isPooled && !change ? this.#part(dtype, shape) : undefined;
    if (pooled !== undefined) return pooled;
    const opts = { range: this.range, ...(change && { change }) };
    const made = randomHeld(this.device, this.random, dtype, shape, this.flip() ? 'line' : 'view', opts);
    this.owned.push(made.base);
    return made;
  }

  /** A contiguous array of these values. */
  lined(dtype: DType, shape: readonly number[], values: readonly Value[]): Held {
    let next = 0;
    const made = randomHeld(this.device, this.random, dtype, shape, 'line', { change: () => values[next++]! });
    this.owned.push(made.base);
    return made;
  }

  /** A part of the memory that is kept for a type, turned as may be. */
  #part(dtype: DType, shape: readonly number[]): Held | undefined {
    const count = countOf(shape);
    if (count > POOL || count === 0) return undefined;
    let pool = this.#pools.get(dtype);
    if (pool === undefined) {
      pool = randomHeld(this.device, this.random, dtype, [POOL], 'line', { range: this.range });
      this.#pools.set(dtype, pool);
      this.owned.push(pool.base);
    }
    // Half of them near the beginning, so that they overlap.
    const start = this.random((this.flip() ? Math.min(8, POOL - count) : POOL - count) + 1);
    const order = shape.map((_, axis) => axis);
    if (this.flip()) order.reverse();
    const laid = order.map((axis) => shape[axis]!);
    const turned = order.map(() => this.flip(4));
    const array = pool.base
      .view([start, start + count])
      .reshape(laid)
      .view(...turned.map((isTurned) => (isTurned ? ([undefined, undefined, -1] as const) : undefined)))
      .transpose(order);
    const steps = stridesOf(laid);
    const offset = turned.reduce((sum, isTurned, axis) => sum + (isTurned ? (laid[axis]! - 1) * steps[axis]! : 0), start);
    const strides = order.map((axis) => steps[axis]! * (turned[axis]! ? -1 : 1));
    return { ...pool, array, shape, at: places(shape, strides, offset) };
  }

  /** Calls an operation, with or without `out`, and notes what its result must be. */
  call(name: string, args: readonly unknown[], opts: Opts, wanted: Wanted, operands: readonly Held[] = []): void {
    this.callBy((all) => callOf(name)(...all), name, args, opts, wanted, operands);
  }

  callBy(
    run: (args: readonly unknown[]) => DeviceArray,
    name: string,
    args: readonly unknown[],
    opts: Opts,
    wanted: Wanted,
    operands: readonly Held[] = [],
  ): void {
    const out = this.#out(wanted, operands);
    const shown = args.map((arg) => this.#shown(arg, operands)).join(', ');
    const where = out
      ? `, out ${out.array.isContiguous ? '' : 'strided '}${operands.some((one) => one.base === out.base) ? 'overlapping' : ''}`
      : '';
    this.#described = `${name}(${shown}, ${JSON.stringify(opts)}${where})`;
    const { dtype, ...others } = opts;
    const isNamed = out ? !isSameKind(wanted.own ?? wanted.dtype, wanted.dtype) || this.flip() : dtype !== undefined;
    const given = { ...others, ...(isNamed && { dtype: wanted.dtype }), ...(out ? { out: out.array } : this.#placed(operands)) };
    this.expect(run([...args, given]), wanted, out);
    for (const one of operands) {
      if (one.base === out?.base || !this.flip(4)) continue;
      const isNear = (_n: number, own: Value, value: Value): boolean => Object.is(own, value);
      this.checks.push({ text: `${this.text}: its operand afterwards`, array: one.base, wanted: one.whole, isNear });
    }
  }

  describe(text: string): void {
    this.#described = text;
  }

  #placed(operands: readonly Held[]): Opts {
    return operands.length === 0 || this.flip(8) ? { device: this.device } : {};
  }

  #shown(arg: unknown, operands: readonly Held[]): string {
    if (Array.isArray(arg)) return `[${arg.map((one) => this.#shown(one, operands)).join(', ')}]`;
    const held = operands.find((one) => one.array === arg);
    return held ? `${typeText(held)}${held.array.isContiguous ? '' : ` strides ${held.array.strides.join()}`}` : String(arg);
  }

  /** Where the result goes: a new array, or an array of any layout, also one that is an operand or overlaps with one. */
  #out({ dtype, shape }: Wanted, operands: readonly Held[]): Held | undefined {
    if (this.flip()) return undefined;
    const same = operands.filter((one) => one.dtype === dtype);
    const itself = same.find((one) => String(one.shape) === String(shape));
    if (itself !== undefined && this.flip()) return itself;
    const part = this.#pools.has(dtype) ? this.#part(dtype, shape) : undefined;
    if (part !== undefined) return part;
    const made = randomHeld(this.device, this.random, dtype, shape, this.flip() ? 'line' : 'view');
    this.owned.push(made.base);
    return made;
  }

  /** Notes what an array must hold: `done` itself, or the memory around `out`. */
  expect(done: DeviceArray, { dtype, shape, exact, slack, looseZero = false }: Wanted, out?: Held): void {
    if (!out) this.owned.push(done);
    if (done.dtype !== dtype || String(done.shape) !== String(shape) || (out && done !== out.array))
      throw new Error(`${this.text}: gives ${typeText(done)}, not ${dtype}[${shape.join()}]`);
    if (exact.length !== countOf(shape)) throw new Error(`${this.text}: the model gives ${exact.length} elements`);
    const values = exact.map((value) => cast(value, dtype));
    const near = (n: number, own: Value): boolean =>
      Object.is(own, values[n]) ||
      (looseZero && own === 0 && values[n] === 0) ||
      ((slack?.[n] ?? 0) > 0 && isWithin(dtype, own, exact[n]!, slack![n]!));
    if (!out) {
      this.checks.push({ text: this.text, array: done, wanted: values, isNear: near });
      return;
    }
    const whole = [...out.whole];
    const from = new Map(out.at.map((place, n) => [place, n]));
    for (const [n, place] of out.at.entries()) whole[place] = values[n]!;
    const isNear = (place: number, own: Value, value: Value): boolean =>
      from.has(place) ? near(from.get(place)!, own) : Object.is(own, value);
    this.checks.push({ text: this.text, array: out.base, wanted: whole, isNear });
  }
}

const KINDS = ['b', 'u', 'i', 'f'];
/** Whether results of a type go into an array of another one without saying so. */
function isSameKind(from: DType, to: DType): boolean {
  return KINDS.indexOf(isFloat(from) ? 'f' : from[0]!) <= KINDS.indexOf(isFloat(to) ? 'f' : to[0]!);
}

/** An operation's random cases. What it gives in the end is awaited. */
export type Maker = (one: Case) => Promise<void> | void;

export { countOf, places, stridesOf, valuesOf };
export type { Held };
