// Arrays of numbers in a row, identity matrices and random numbers, in plain JavaScript; of random numbers what their definition says of all of them.
import type { DType } from 'millrace';
import * as ops from 'millrace/ops';
import { bitsOf, cast, isFloat, ulpOf, type Value } from '../element-model.js';
import { type Case, countOf, type Maker, NUMBER_TYPES, REAL_TYPES, WHOLE_TYPES } from '../shaped-cases.js';
import { readValues } from '../random-views.js';
import { DTYPES } from '../values.js';

function maybe(one: Case, of: readonly DType[]): { readonly dtype?: DType } {
  return one.pattern(2) === 0 ? { dtype: one.choose(of) } : {};
}

const arange: Maker = (one) => {
  const isWhole = one.flip();
  const number = (size: number): number => (isWhole ? one.random(2 * size) - size : (one.random(16 * size) - 8 * size) / one.pick([8, 10]));
  const start = number(30);
  const step = one.pick(isWhole ? [1, 2, -1, -3, 7] : [0.25, 0.1, -0.3, 1, -2.5]);
  const stop = one.flip(8) ? start : start + step * one.random(one.flip(6) ? 400 : 9) + (one.flip() ? 0 : step / 2);
  const kind = one.random(3);
  const args = kind === 0 ? [stop] : kind === 1 ? [start, stop] : [start, stop, step];
  const [from, by] = [kind === 0 ? 0 : start, kind === 2 ? step : 1];
  const own: DType = args.every((value) => Number.isInteger(value)) ? 'i32' : 'f32';
  const given = maybe(one, DTYPES);
  const dtype = given.dtype ?? own;
  const exact = Array.from({ length: Math.max(0, Math.ceil((stop - from) / by)) }, (_, n) => from + n * by);
  // A device may round the product and the sum once together.
  const slack = exact.map((value, n) => (isFloat(dtype) ? ulpOf('f64', Math.max(Math.abs(value), Math.abs(n * by))) : 0));
  // A rounding more or less would make another whole number; and integers must fit.
  const isClear =
    isFloat(dtype) ||
    exact.every((value) => Number.isInteger(value * 8) && (dtype === 'bool' || cast(value, dtype) === BigInt(Math.trunc(value))));
  one.call('arange', args, isClear ? given : { dtype: 'f64' }, {
    dtype: isClear ? dtype : 'f64',
    own,
    shape: [exact.length],
    exact,
    slack: isClear ? slack : exact.map((value) => ulpOf('f64', Math.max(Math.abs(value), 40))),
  });
};

const linspace: Maker = (one) => {
  const number = (): number => one.pick([0, 1, -1, 0.1, 7, -3.5, 1e6, -1e-3, 255, 100]);
  const [start, stop] = [number(), number()];
  const count = one.flip(6) ? one.random(500) : one.random(9);
  const given = maybe(one, NUMBER_TYPES);
  const dtype = given.dtype ?? 'f32';
  const step = (stop - start) / (count - 1);
  const exact = Array.from({ length: count }, (_, n) => (n === count - 1 && n > 0 ? stop : n === 0 ? start : start + n * step));
  if (isFloat(dtype)) {
    const slack = exact.map((value, n) =>
      n === 0 || n === count - 1 ? 0 : 2 * ulpOf('f64', Math.max(Math.abs(value), Math.abs(start), Math.abs(stop))),
    );
    one.call('linspace', [start, stop, count], given, { dtype, own: 'f32', shape: [count], exact, slack });
    return;
  }
  // Towards minus infinity, as NumPy does since 1.20; beside a whole number a rounding decides.
  const isNear = exact.some(
    (value, n) => n > 0 && n < count - 1 && value !== Math.round(value) && Math.abs(value - Math.round(value)) < 1e-9,
  );
  if (isNear) return;
  one.call('linspace', [start, stop, count], given, { dtype, own: 'f32', shape: [count], exact: exact.map(Math.floor) });
};

const eye: Maker = (one) => {
  const [rows, columns] = [one.extent(), one.flip(3) ? undefined : one.extent()];
  const diagonal = one.flip() ? 0 : one.random(2 * rows + 4) - rows - 2;
  const shape = [rows, columns ?? rows];
  const given = maybe(one, DTYPES);
  const exact = Array.from({ length: countOf(shape) }, (_, n) => ((n % shape[1]!) - Math.trunc(n / shape[1]!) === diagonal ? 1n : 0n));
  const opts = { ...given, ...((diagonal !== 0 || one.flip()) && { diagonal }) };
  const args = columns === undefined && one.flip() ? [rows] : [rows, columns];
  one.call('eye', args, opts, { dtype: given.dtype ?? 'f32', own: 'f32', shape, exact });
};

/** Makes the same numbers twice, in a new array and in any other, and checks what all of them have in common. */
function drawn(
  draw: (
    one: Case,
    make: ops.RandomGenerator,
  ) => readonly [
    name: keyof ops.RandomGenerator,
    args: readonly unknown[],
    opts: Readonly<Record<string, unknown>>,
    dtype: DType,
    shape: readonly number[],
    check: (values: readonly Value[]) => string | undefined,
  ],
): Maker {
  return async (one) => {
    const seed = one.pick([0, 1, 42, 2 ** 32 + 7, 2 ** 53 - 1, one.random(1 << 30)]);
    const [first, second] = [ops.generator(seed), ops.generator(seed)];
    const [name, args, opts, dtype, shape, check] = draw(one, first);
    // Both continue after as many numbers.
    for (let calls = one.random(3); calls > 0; calls--) {
      for (const make of [first, second]) one.owned.push(make.uniform(calls, { device: one.device }));
    }
    const call = (make: ops.RandomGenerator, all: readonly unknown[]) => (make[name] as (...all: readonly unknown[]) => never)(...all);
    one.describe(`generator(${seed}).${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')}, ${JSON.stringify(opts)})`);
    const made = call(first, [...args, { ...opts, device: one.device }]);
    const values = await readValues(made);
    one.owned.push(made);
    const wrong = check(values);
    if (wrong !== undefined) throw new Error(`${one.text}: ${wrong}`);
    const own = name === 'integers' || name === 'permutation' ? 'i32' : 'f32';
    one.callBy((all) => call(second, all), `generator.${name}`, args, opts, { dtype, own, shape, exact: values });
    // Equal numbers say nothing.
    if (new Set(values).size < 40 || dtype === 'bool' || bitsOf(dtype) < 32 || name === 'integers' || name === 'permutation') return;
    const next = call(first, [...args, { ...opts, device: one.device }]);
    one.owned.push(next);
    const later = await readValues(next);
    // Few of them meet by chance.
    if (later.filter((value) => values.includes(value)).length > 2 + values.length / 10)
      throw new Error(`${one.text}: the next call repeats numbers`);
  };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const uniform = drawn((one) => {
  const given = maybe(one, REAL_TYPES);
  const dtype = given.dtype ?? 'f32';
  const shape = one.flip() ? [1000 + one.random(1000)] : one.shape();
  const [low, high] = one.pick([
    [0, 1],
    [-1, 1],
    [5, 5],
    [2, 1000],
    [3, -3],
  ] as const);
  const isDefault = low === 0 && high === 1;
  const [least, most] = [low, high].toSorted((a, b) => a - b).map((limit) => cast(limit, dtype) as number) as [number, number];
  const check = (values: readonly Value[]): string | undefined => {
    const numbers = values as readonly number[];
    const outside = numbers.find((value) => !(value >= least && value <= most));
    if (outside !== undefined) return `${outside} is outside ${low} to ${high}`;
    // Six deviations of the mean.
    const far = (6 * Math.abs(high - low)) / Math.sqrt(12 * numbers.length) + Math.abs(high - low) / 100;
    return numbers.length >= 1000 && Math.abs(mean(numbers) - (low + high) / 2) > far ? `the mean is ${mean(numbers)}` : undefined;
  };
  return ['uniform', [shape], { ...(!isDefault && { low, high }), ...given }, dtype, shape, check];
});

const normal = drawn((one) => {
  const given = maybe(one, REAL_TYPES);
  const dtype = given.dtype ?? 'f32';
  const shape = one.flip() ? [1000 + one.random(1000)] : one.shape();
  const [centre, deviation] = one.pick([
    [0, 1],
    [-3, 0.5],
    [10, 0],
  ] as const);
  const check = (values: readonly Value[]): string | undefined => {
    const numbers = values as readonly number[];
    const wild = numbers.find((value) => !(Math.abs(value - centre) <= 7 * deviation + 0.1));
    if (wild !== undefined) return `${wild} is far from ${centre}`;
    if (numbers.length < 1000) return undefined;
    const own = mean(numbers);
    const spread = Math.sqrt(mean(numbers.map((value) => (value - own) ** 2)));
    if (Math.abs(own - centre) > (6 * deviation) / Math.sqrt(numbers.length) + 0.02) return `the mean is ${own}`;
    return Math.abs(spread - deviation) > (6 * deviation) / Math.sqrt(2 * numbers.length) + 0.02 ? `the deviation is ${spread}` : undefined;
  };
  const isDefault = centre === 0 && deviation === 1;
  return ['normal', [shape], { ...(!isDefault && { mean: centre, deviation }), ...given }, dtype, shape, check];
});

const integers = drawn((one) => {
  const given = maybe(one, [...WHOLE_TYPES, 'f32', 'f64']);
  const dtype = given.dtype ?? 'i32';
  const shape = one.flip() ? [1000 + one.random(1000)] : one.shape();
  const least = dtype.startsWith('u') ? 0 : -100;
  const low = least + one.random(120);
  const high = one.flip(8) && bitsOf(dtype) >= 32 ? low + 2 ** 31 - 200 : low + 1 + one.random(8);
  const check = (values: readonly Value[]): string | undefined => {
    const numbers = values.map(Number);
    const outside = numbers.find(
      (value) => !(value >= low && value < high && Number.isInteger(value)) && !(dtype === 'f32' && value <= high),
    );
    if (outside !== undefined) return `${outside} is outside ${low} to ${high}`;
    const missing = Array.from({ length: Math.min(9, high - low) }, (_, n) => low + n).find((value) => !numbers.includes(value));
    return numbers.length >= 1000 && high - low < 9 && missing !== undefined ? `${missing} does not occur` : undefined;
  };
  return ['integers', [low, high, shape], given, dtype, shape, check];
});

const permutation = drawn((one) => {
  const length = one.flip() ? one.extent() : one.random(2000);
  const check = (values: readonly Value[]): string | undefined => {
    const numbers = values.map(Number).toSorted((a, b) => a - b);
    if (numbers.some((value, n) => value !== n)) return 'it is no permutation';
    return length > 20 && values.every((value, n) => value === BigInt(n)) ? 'nothing is permuted' : undefined;
  };
  return ['permutation', [length], {}, 'i32', [length], check];
});

export const CREATION = {
  arange,
  linspace,
  eye,
  'random.uniform': uniform,
  'random.normal': normal,
  'random.integers': integers,
  'random.permutation': permutation,
} as const;
