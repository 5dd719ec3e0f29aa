// Products of matrices, convolutions and complex numbers, in plain JavaScript by the rules of NumPy and SciPy.
import type { DType } from 'millrace';
import { bitsOf, cast, epsilonOf, isFloat, numberType, promotedTypes, rounded, ulpOf, type Value } from '../element-model.js';
import { callOf } from '../operation-cases.js';
import { ELEMENT_MODELS, together, ulpsOf } from '../operation-model.js';
import { broadcastShape, broadcastValues } from '../random-views.js';
import { type Case, countOf, type Held, type Maker, NUMBER_TYPES, places, stridesOf, valuesOf } from '../shaped-cases.js';
import { DTYPES } from '../values.js';
import { filled } from './assembly.js';

export const computedIn = (dtype: DType): DType => (isFloat(dtype) && bitsOf(dtype) === 16 ? 'f32' : dtype);

/** Two types, half of the time one, whose products are not of bool. */
function twoTypes(one: Case): readonly [DType, DType] {
  const first = one.choose(DTYPES);
  const second = one.pattern(2) === 0 ? first : one.choose(DTYPES);
  return first === 'bool' && second === 'bool' ? ['f32', 'f32'] : [first, second];
}

/** The type of a result, and in which it is computed: the wider one. */
function typesOf(one: Case, own: DType): { readonly given: { readonly dtype?: DType }; readonly type: DType; readonly computed: DType } {
  if (one.pattern(4) > 0) return { given: {}, type: own, computed: own };
  const type = one.choose(NUMBER_TYPES);
  return { given: { dtype: type }, type, computed: promotedTypes(own, type) };
}

/** A sum of products in a type, and how far from it a result may be. */
export function summed(terms: readonly (readonly [Value, Value])[], type: DType): readonly [exact: Value, slack: number] {
  if (!isFloat(type)) {
    const whole = terms.reduce((sum, [a, b]) => sum + (cast(a, type) as bigint) * (cast(b, type) as bigint), 0n);
    return [cast(whole, type), 0];
  }
  const inner = computedIn(type);
  // One product keeps the sign of its zero.
  let [sum, size] = [terms.length === 1 ? -0 : 0, 0];
  for (const [a, b] of terms) {
    const product = Number(cast(a, inner)) * Number(cast(b, inner));
    sum += product;
    size += Math.abs(product);
  }
  return [sum, (terms.length + 2) * epsilonOf(inner) * size];
}

/** Seldom NaN or an infinity, which are the same in sums of any order. */
function special(one: Case, dtype: DType): ((value: Value) => Value) | undefined {
  if (!isFloat(dtype) || !one.flip(4)) return undefined;
  return (value) => (one.flip(20) ? one.pick([Number.NaN, Infinity, -Infinity, -0]) : value);
}

type Products = (at: readonly number[]) => readonly (readonly [Value, Value])[];

function productCase(one: Case, name: string, a: Held, b: Held, shape: readonly number[], of: Products): void {
  const own = together([a.dtype, b.dtype]);
  const { given, type, computed } = typesOf(one, own);
  const sums: (readonly [Value, number])[] = [];
  filled(shape, (at) => {
    sums.push(summed(of(at), computed));
    return 0;
  });
  const wanted = { dtype: type, own, shape, exact: sums.map(([exact]) => exact), slack: sums.map(([, slack]) => slack), looseZero: true };
  one.call(name, [a.array, b.array], given, wanted, [a, b]);
}

const matmul: Maker = (one) => {
  one.range = 'small';
  const [first, second] = twoTypes(one);
  const inner = one.extent();
  const batch = Array.from({ length: one.random(3) }, () => one.random(4));
  const partly = (): number[] => batch.slice(one.flip() ? one.random(batch.length + 1) : 0).map((extent) => (one.flip(3) ? 1 : extent));
  const left = one.flip(6) ? [inner] : [...partly(), one.extent(), inner];
  const right = one.flip(6) ? [inner] : [...partly(), inner, one.extent()];
  const a = one.held(first, left, special(one, first));
  const b = one.held(second, right, special(one, second));
  const outer = broadcastShape([left.slice(0, -2), right.slice(0, -2)]);
  const [rows, columns] = [left.length === 1 ? [] : [left.at(-2)!], right.length === 1 ? [] : [right.at(-1)!]];
  // Both as matrices of all batches.
  const [m, n] = [rows[0] ?? 1, columns[0] ?? 1];
  const as = broadcastValues(valuesOf(a), left.length === 1 ? [1, inner] : left, [...outer, m, inner]);
  const bs = broadcastValues(valuesOf(b), right.length === 1 ? [inner, 1] : right, [...outer, inner, n]);
  productCase(one, 'matmul', a, b, [...outer, ...rows, ...columns], (at) => {
    const z = outer.reduce((sum, extent, axis) => sum * extent + at[axis]!, 0);
    const row = rows.length === 0 ? 0 : at[outer.length]!;
    const column = columns.length === 0 ? 0 : at.at(-1)!;
    return Array.from({ length: inner }, (_, k) => [as[(z * m + row) * inner + k]!, bs[(z * inner + k) * n + column]!] as const);
  });
};

const dot: Maker = (one) => {
  one.range = 'small';
  const [first, second] = twoTypes(one);
  const inner = one.extent();
  const some = (most: number): number[] => Array.from({ length: one.random(most + 1) }, () => Math.min(6, one.extent()));
  const left = one.flip(8) ? [] : [...some(2), inner];
  const [outer, last] = [some(2), one.flip(3) ? [] : [Math.min(7, one.extent())]];
  const right = one.flip(8) ? [] : last.length === 0 ? [inner] : [...outer, inner, ...last];
  const a = one.held(first, left);
  const b = one.held(second, right);
  const [as, bs] = [valuesOf(a), valuesOf(b)];
  if (left.length === 0 || right.length === 0) {
    const shape = [...left, ...right];
    productCase(one, 'dot', a, b, shape, (at) => {
      const n = at.reduce((sum, place, axis) => sum * shape[axis]! + place, 0);
      return [[as[left.length === 0 ? 0 : n]!, bs[right.length === 0 ? 0 : n]!]];
    });
    return;
  }
  const kept = right.length === 1 ? [] : [...right.slice(0, -2), right.at(-1)!];
  const columns = right.length === 1 ? 1 : right.at(-1)!;
  productCase(one, 'dot', a, b, [...left.slice(0, -1), ...kept], (at) => {
    const row = left.slice(0, -1).reduce((sum, extent, axis) => sum * extent + at[axis]!, 0);
    const own = at.slice(left.length - 1);
    const z = right.slice(0, -2).reduce((sum, extent, axis) => sum * extent + own[axis]!, 0);
    const column = right.length === 1 ? 0 : own.at(-1)!;
    return Array.from({ length: inner }, (_, k) => [as[row * inner + k]!, bs[(z * inner + k) * columns + column]!] as const);
  });
};

const convolve2d: Maker = (one) => {
  one.range = 'small';
  const [first, second] = twoTypes(one);
  const own = together([first, second]);
  const side = (): number => (one.flip(8) ? 15 + one.random(25) : 1 + one.random(7));
  const sizes = [side(), side()] as const;
  const batch = Array.from({ length: one.random(3) }, () => one.random(3));
  const mode = one.pick(['full', 'same', 'valid', undefined] as const);
  const kernel = sizes.map((size) => (mode === 'valid' ? 1 + one.random(size) : one.flip(8) ? 18 : 1 + one.random(5)));
  const boundary = one.choose(['fill', 'wrap', 'symm', undefined] as const);
  const fillValue = one.flip() ? undefined : isFloat(own) ? one.pick([0.5, -2]) : 3;
  const image = one.held(first, [...batch, ...sizes], special(one, first));
  const weights = one.held(second, kernel);
  const { given, type, computed } = typesOf(one, own);
  const lead = sizes.map((_, axis) => (mode === 'same' ? Math.trunc((kernel[axis]! - 1) / 2) : mode === 'valid' ? kernel[axis]! - 1 : 0));
  const extents = sizes.map((size, axis) =>
    mode === 'same' ? size : mode === 'valid' ? size - kernel[axis]! + 1 : size + kernel[axis]! - 1,
  );
  const shape = [...batch, ...extents];
  const [pixels, factors] = [valuesOf(image), valuesOf(weights)];
  const around: Value = isFloat(own) ? (fillValue ?? 0) : BigInt(fillValue ?? 0);
  const pixel = (z: number, place: readonly [number, number]): Value => {
    const inside = place.map((at, axis) => {
      const extent = sizes[axis]!;
      if (at >= 0 && at < extent) return at;
      if (boundary === 'wrap') return ((at % extent) + extent) % extent;
      if (boundary !== 'symm') return -1;
      const turn = ((at % (2 * extent)) + 2 * extent) % (2 * extent);
      return turn < extent ? turn : 2 * extent - 1 - turn;
    });
    return inside.includes(-1) ? around : pixels[(z * sizes[0] + inside[0]!) * sizes[1] + inside[1]!]!;
  };
  const sums: (readonly [Value, number])[] = [];
  filled(shape, (at) => {
    const z = batch.reduce((sum, extent, axis) => sum * extent + at[axis]!, 0);
    const [row, column] = [at.at(-2)! + lead[0]!, at.at(-1)! + lead[1]!];
    const terms = places(kernel, stridesOf(kernel)).map((n) => {
      const [p, q] = [Math.trunc(n / kernel[1]!), n % kernel[1]!];
      return [pixel(z, [row - p, column - q]), factors[n]!] as const;
    });
    sums.push(summed(terms, computed));
    return 0;
  });
  const opts = Object.fromEntries(Object.entries({ mode, boundary, fillValue }).filter(([, value]) => value !== undefined));
  const wanted = { dtype: type, own, shape, exact: sums.map(([exact]) => exact), slack: sums.map(([, slack]) => slack), looseZero: true };
  one.call('convolve2d', [image.array, weights.array], { ...opts, ...given }, wanted, [image, weights]);
};

/** Complex numbers of the parts of a result. */
function complexCase(
  one: Case,
  name: string,
  operands: readonly Held[],
  args: readonly unknown[],
  own: DType,
  shape: readonly number[],
  of: (n: number, computed: DType) => readonly [re: readonly (readonly [Value, Value])[], im: readonly (readonly [Value, Value])[]],
): void {
  const { given, type, computed } = typesOf(one, own);
  const sums = Array.from({ length: countOf(shape) }, (_, n) => of(n, computed).map((terms) => summed(terms, computed))).flat();
  // One product is one rounding.
  const slack = sums.map(([exact, size], n) =>
    of(n >> 1, computed)[n % 2]!.length === 1 && isFloat(computed) ? ulpOf(computedIn(computed), Number(exact)) / 2 : size,
  );
  const wanted = {
    dtype: type,
    own,
    shape: [...shape, 2],
    exact: sums.map(([exact]) => exact),
    slack,
    looseZero: name === 'complexMultiply',
  };
  one.call(name, args, given, wanted, operands);
}

/** 1 as a factor of values. */
const unit = (value: Value): Value => (typeof value === 'bigint' ? 1n : 1);

const complex: Maker = (one) => {
  const [first, second] = [one.choose(NUMBER_TYPES), one.choose(NUMBER_TYPES)];
  const shape = one.shape(0, 3);
  const re = one.held(first, shape);
  const kind = one.pattern(3);
  const narrow = shape.slice(one.flip(3) ? one.random(shape.length + 1) : 0).map((extent) => (one.flip(3) ? 1 : extent));
  const im = kind === 0 ? one.held(second, narrow) : undefined;
  const number = kind === 1 ? one.pick(isFloat(first) ? [0.5, -0, 3, Number.NaN] : [1, 7, 0.25]) : 0;
  const own = im ? together([first, second]) : kind === 1 ? promotedTypes(first, numberType(first, number)) : first;
  const res = valuesOf(re);
  const ims = im ? broadcastValues(valuesOf(im), narrow, shape) : res.map(() => number as Value);
  complexCase(
    one,
    'complex',
    im ? [re, im] : [re],
    kind === 2 ? [re.array, undefined] : [re.array, im?.array ?? number],
    own,
    shape,
    (n) => [[[res[n]!, unit(res[n]!)]], [[ims[n]!, unit(ims[n]!)]]],
  );
};

function complexNumbers(one: Case, dtype: DType, shape: readonly number[]): readonly [Held, Value[], Value[]] {
  const z = one.held(dtype, [...shape, 2]);
  const values = valuesOf(z);
  return [z, values.filter((_, n) => n % 2 === 0), values.filter((_, n) => n % 2 === 1)];
}

const conjugate: Maker = (one) => {
  const [z, res, ims] = complexNumbers(one, one.choose(NUMBER_TYPES), one.shape(0, 3));
  complexCase(one, 'conjugate', [z], [z.array], z.dtype, z.shape.slice(0, -1), (n, computed) => {
    // An integer 0 that is computed as a float gives -0.
    const turned = cast(-cast(ims[n]!, computed), computed);
    return [[[res[n]!, unit(res[n]!)]], [[turned, unit(turned)]]];
  });
};

const complexMultiply: Maker = (one) => {
  one.range = 'small';
  const shape = one.shape(0, 3);
  const narrow = shape.slice(one.flip(3) ? one.random(shape.length + 1) : 0).map((extent) => (one.flip(3) ? 1 : extent));
  const [first, second] = [one.choose(NUMBER_TYPES), one.choose(NUMBER_TYPES)];
  const [a, ar, ai] = complexNumbers(one, first, shape);
  const [b, ...own] = complexNumbers(one, second, narrow);
  const [br, bi] = own.map((values) => broadcastValues(values, narrow, shape)) as [Value[], Value[]];
  complexCase(one, 'complexMultiply', [a, b], [a.array, b.array], together([first, second]), shape, (n, computed) => {
    const minus = cast(-cast(ai[n]!, computed), computed);
    return [
      [
        [ar[n]!, br[n]!],
        [minus, bi[n]!],
      ],
      [
        [ar[n]!, bi[n]!],
        [ai[n]!, br[n]!],
      ],
    ];
  });
};

function part(name: 'real' | 'imag', at: 0 | 1): Maker {
  return (one) => {
    const [z, ...parts] = complexNumbers(one, one.choose(DTYPES), one.shape(0, 3));
    one.describe(`${name}(${z.dtype}[${z.shape.join()}])`);
    one.expect(callOf(name)(z.array), { dtype: z.dtype, shape: z.shape.slice(0, -1), exact: parts[at]! });
  };
}

function polar(name: 'magnitude' | 'angle', model: 'hypot' | 'atan2'): Maker {
  const { types, of } = ELEMENT_MODELS[model]!;
  return (one) => {
    const dtype = one.choose(DTYPES);
    const [z, res, ims] = complexNumbers(one, dtype, one.shape(0, 3));
    const [compute, own] = types(dtype)!;
    const exact = res.map((re, n) =>
      of(name === 'angle' ? [cast(ims[n]!, compute), cast(re, compute)] : [cast(re, compute), cast(ims[n]!, compute)], compute),
    );
    const slack = exact.map((value) => ulpsOf(ELEMENT_MODELS[model]!, compute, one.target) * ulpOf(own, rounded(own, Number(value))));
    one.call(name, [z.array], {}, { dtype: own, shape: z.shape.slice(0, -1), exact, slack }, [z]);
  };
}

export const PRODUCTS = {
  matmul,
  dot,
  convolve2d,
  complex,
  conjugate,
  complexMultiply,
  real: part('real', 0),
  imag: part('imag', 1),
  magnitude: polar('magnitude', 'hypot'),
  angle: polar('angle', 'atan2'),
} as const satisfies Readonly<Record<string, Maker>>;
