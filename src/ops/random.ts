// Random numbers on the device. They are counter-based (Philox 4x32-10), so they depend on the seed and on the calls before, not on the device.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, f64, i32, i64, u32 } from '../core/elements/dtype.js';
import { checkShape, lengthOf, type Shape } from '../core/elements/shape.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { generate, type Generator } from './generated.js';
import { checkRange, isFloat } from './promotion.js';
import type { Result } from './ready.js';
import { argsort } from './sorting.js';
import { type OpOptions, targetOf } from './target.js';

/** Philox gives four words at once, so a thread makes four numbers of one word each, or two of two words. */
const WORDS = 4;
const WORD = 2 ** 32;

/** A sequence of random numbers: `numpy.random.Generator`, `cupy.random.Generator`, `torch.Generator`. */
export interface RandomGenerator {
  /** Numbers from `low` (default 0, included) to `high` (default 1, excluded), evenly distributed. f32 unless `dtype` is given. */
  uniform<const O extends UniformOptions = Record<never, never>>(shape: Shape, opts?: O): Result<O, 'f32'>;
  /** Numbers of the normal distribution with `mean` (default 0) and `deviation` (default 1). f32 unless `dtype` is given. */
  normal<const O extends NormalOptions = Record<never, never>>(shape: Shape, opts?: O): Result<O, 'f32'>;
  /** Whole numbers from `low` (included) to `high` (excluded), at most 2^32 of them. i32 unless `dtype` is given; NumPy's are int64. */
  integers<const O extends OpOptions = Record<never, never>>(low: number, high: number, shape: Shape, opts?: O): Result<O, 'i32'>;
  /** The whole numbers from 0 to before `length` in random order, as i32: `numpy.random.Generator.permutation`. */
  permutation(length: number, opts?: Omit<OpOptions<'i32'>, 'dtype'>): DeviceArray<'i32'>;
}
export interface UniformOptions<D extends DType = DType> extends OpOptions<D> {
  /** The smallest number. Default 0. */
  readonly low?: number;
  /** The limit, which rounding can reach. Default 1. */
  readonly high?: number;
}
export interface NormalOptions<D extends DType = DType> extends OpOptions<D> {
  /** The mean. Default 0. */
  readonly mean?: number;
  /** The standard deviation. Default 1. */
  readonly deviation?: number;
}

/**
 * Makes a generator of random numbers. The same seed gives the same numbers in each run and on both devices (f64 normal numbers up to
 * rounding). Each call continues the sequence, whatever stream runs it; a launch of a captured call repeats its numbers. Throws
 * ArgumentError unless `seed` is a whole number from 0 to 2^53 - 1; without one, the seed is random: `numpy.random.default_rng`.
 * @example const x = generator(42).normal([1000, 3]);
 */
export function generator(seed?: number): RandomGenerator {
  if (arguments.length > 1) refuseSurplus('generator', arguments, 1);
  const whole = seed === undefined ? Math.floor(Math.random() * 2 ** 53) : checkInteger('seed', seed, 0);
  return new Sequence(whole);
}

class Sequence implements RandomGenerator {
  readonly #seed: number;
  /** Threads that drew so far: each has its own sequence of Philox. */
  #threads = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  uniform<const O extends UniformOptions = Record<never, never>>(shape: Shape, opts?: O): Result<O, 'f32'> {
    const { low = 0, high = 1 } = opts ?? {};
    checkFinite('low', low);
    checkFinite('high', high);
    checkFinite('distance from low to high', high - low);
    const numbers = { low: [f64, low], span: [f64, high - low] } as const;
    const single = (at: number): string => `low + span * f64(u${at})`;
    return this.#draw('random.uniform', shape, opts, ['low', 'high'], numbers, 'uniform', single) as Result<O, 'f32'>;
  }

  normal<const O extends NormalOptions = Record<never, never>>(shape: Shape, opts?: O): Result<O, 'f32'> {
    const { mean = 0, deviation = 1 } = opts ?? {};
    checkFinite('mean', mean);
    checkFinite('deviation', deviation);
    if (deviation < 0) throw badArgument('deviation', deviation, `The deviation (${deviation}) is below the minimum (0).`, 0);
    const numbers = { mean: [f64, mean], deviation: [f64, deviation] } as const;
    return this.#draw(
      'random.normal',
      shape,
      opts,
      ['mean', 'deviation'],
      numbers,
      'normal',
      (at) => `mean + deviation * f64(u${at})`,
    ) as Result<O, 'f32'>;
  }

  integers<const O extends OpOptions = Record<never, never>>(low: number, high: number, shape: Shape, opts?: O): Result<O, 'i32'> {
    const first = checkInteger('low', low, Number.MIN_SAFE_INTEGER);
    const count = checkInteger('high', high, first + 1) - first;
    if (count > WORD) throw badArgument('high', high, `The range of random.integers (${count}) exceeds the limit (${WORD}).`, WORD);
    const target = targetOf('random.integers', opts, []);
    const dtype = target.typeOf('i32');
    checkRange('numbers of random.integers', [first, first + count - 1], dtype);
    // The upper word of a product of 64 bits: the numbers are even up to 2^-32 of the range.
    const values = Array.from({ length: WORDS }, (_, at) => `i64((u64(u${at}) * u64(count)) >> 32n) + first`);
    const head = this.#words(WORDS, 'u32');
    const numbers = { ...this.#numbers(shape, WORDS), first: [i64, BigInt(first)], count: [i64, BigInt(count)] } as const;
    return generate({ name: 'random.integers', type: 'i64', values, head, numbers }, checkShape(shape), dtype, target) as Result<O, 'i32'>;
  }

  permutation(length: number, opts?: Omit<OpOptions<'i32'>, 'dtype'>): DeviceArray<'i32'> {
    const target = targetOf('random.permutation', opts, []);
    using keys = this.integers(0, WORD, checkInteger('length', length, 0), { stream: target.recorder, dtype: 'u32' });
    return argsort<typeof keys, OpOptions<'i32'>>(keys, opts);
  }

  #draw(
    name: string,
    shape: Shape,
    opts: OpOptions | undefined,
    more: readonly string[],
    own: Generator['numbers'],
    draw: 'uniform' | 'normal',
    value: (at: number) => string,
  ): DeviceArray {
    const target = targetOf(name, opts, [], more);
    const dtype = target.typeOf('f32');
    if (!isFloat(dtype))
      throw badArgument('dtype', dtype, `The numbers of ${name} are floats, and not ${dtype}: see random.integers.`, 'f32');
    const isDouble = REGISTER_TYPE[dtype] === 'f64';
    const each = isDouble || draw === 'normal' ? WORDS / 2 : WORDS;
    const head = isDouble ? doubles(this.#words(WORDS, 'u32', 'w'), draw) : this.#words(each, draw);
    const values = Array.from({ length: each }, (_, at) => value(at));
    const dimensions = checkShape(shape);
    return generate(
      { name, type: 'f64', values, head, numbers: { ...this.#numbers(dimensions, each), ...own } },
      dimensions,
      dtype,
      target,
    );
  }

  /** Declares the numbers that a thread draws. */
  #words(count: number, draw: string, name: string = 'u'): string {
    const draws = Array.from({ length: count }, (_, at) => `const ${name}${at} = r.${draw}();`);
    return `const r = rng(seed, first0 + i); ${draws.join(' ')}`;
  }

  /** The seed of the call, and the number of its first thread. */
  #numbers(shape: Shape, each: number): { readonly seed: readonly [typeof u32, number]; readonly first0: readonly [typeof i32, number] } {
    const threads = Math.ceil(lengthOf(checkShape(shape)) / each);
    // The low word counts threads; what overflows changes the seed.
    const from = this.#threads;
    this.#threads += threads;
    const [high, turns] = [Math.floor(this.#seed / WORD), Math.floor(from / 2 ** 31)];
    const seed = (this.#seed ^ Math.imul(high, 0x9e3779b1) ^ Math.imul(turns, 0x85ebca6b)) >>> 0;
    return { seed: [u32, seed], first0: [i32, from % 2 ** 31] };
  }
}

/** Two doubles of four words: 53 bits each. */
function doubles(words: string, draw: 'uniform' | 'normal'): string {
  const both = [0, 1]
    .map((at) => `const d${at} = (f64(w${2 * at} >>> 5) * 67108864 + f64(w${2 * at + 1} >>> 6)) / 9007199254740992;`)
    .join(' ');
  if (draw === 'uniform') return `${words} ${both} const u0 = d0; const u1 = d1;`;
  return `${words} ${both} const radius = Math.sqrt(-2 * Math.log(1 - d0)); const angle = 6.283185307179586 * d1; const u0 = radius * Math.cos(angle); const u1 = radius * Math.sin(angle);`;
}

function checkFinite(argument: string, value: unknown): void {
  if (typeof value === 'number' && Number.isFinite(value)) return;
  throw badArgument(argument, value, `The ${argument} (${show(value)}) is not a finite number.`);
}

/** Random numbers with a random seed, for this thread: `numpy.random`. For numbers that repeat, use `generator(seed)`. */
export const random: RandomGenerator = /* @__PURE__ */ generator();
