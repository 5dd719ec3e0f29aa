// Fourier transforms in plain JavaScript, term by term, as NumPy defines them.
import type { DType } from 'millrace';
import { bitsOf, cast, isFloat, type Value } from '../element-model.js';
import { IS_LONG } from '../long.js';
import { type Case, countOf, type Maker, REAL_TYPES, stridesOf, valuesOf } from '../shaped-cases.js';
import { DTYPES } from '../values.js';
import { filled } from './assembly.js';

/** Complex numbers of a shape. */
interface Spectrum {
  readonly shape: readonly number[];
  readonly re: Float64Array;
  readonly im: Float64Array;
}

/** The relative error that docs/operations.md gives, with a reserve for the model's own in f64. */
const ERROR: Readonly<Record<'f32' | 'f64', number>> = { f32: 1e-6, f64: 1e-14 };

/** Calls `of` with each row along an axis, cropped or padded with zeros, and puts together what it gives. */
function along(
  { shape, re, im }: Spectrum,
  axis: number,
  given: number,
  length: number,
  of: (re: number[], im: number[]) => readonly [number[], number[]],
): Spectrum {
  const own = shape[axis]!;
  const inner = countOf(shape.slice(axis + 1));
  const outer = countOf(shape.slice(0, axis));
  const to = {
    shape: shape.with(axis, length),
    re: new Float64Array(outer * length * inner),
    im: new Float64Array(outer * length * inner),
  };
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const at = (n: number): number => (o * own + n) * inner + i;
      const row = [re, im].map((part) => Array.from({ length: given }, (_, n) => (n < own ? part[at(n)]! : 0))) as [number[], number[]];
      const [a, b] = of(...row);
      for (let n = 0; n < length; n++) {
        to.re[(o * length + n) * inner + i] = a[n]!;
        to.im[(o * length + n) * inner + i] = b[n]!;
      }
    }
  }
  return to;
}

function transform(sign: 1 | -1): (re: number[], im: number[]) => readonly [number[], number[]] {
  return (re, im) => {
    const n = re.length;
    const roots = Array.from({ length: n }, (_, k) => [Math.cos((2 * Math.PI * k) / n), sign * Math.sin((2 * Math.PI * k) / n)] as const);
    const result: [number[], number[]] = [[], []];
    for (let k = 0; k < n; k++) {
      let [a, b] = [0, 0];
      for (let j = 0; j < n; j++) {
        const [c, s] = roots[(j * k) % n]!;
        a += re[j]! * c - im[j]! * s;
        b += re[j]! * s + im[j]! * c;
      }
      result[0].push(a);
      result[1].push(b);
    }
    return result;
  };
}

/** The other half of a spectrum of real numbers is its mirror image. */
function mirrored(length: number): (re: number[], im: number[]) => readonly [number[], number[]] {
  return (re, im) => {
    const whole: [number[], number[]] = [[], []];
    for (let k = 0; k < length; k++) {
      const own = Math.min(k, length - k);
      whole[0].push(re[own]!);
      whole[1].push(own === 0 || 2 * own === length ? 0 : own === k ? im[own]! : -im[own]!);
    }
    return transform(1)(...whole);
  };
}

const NORMS = ['backward', 'ortho', 'forward', undefined] as const;
type Name = 'fft' | 'ifft' | 'rfft' | 'irfft';

/** What an operation gives for the numbers `of`, and what each of them must be multiplied with. */
export function transformOf(
  name: Name,
  of: Spectrum,
  axes: readonly number[],
  sizes: readonly number[],
  norm: (typeof NORMS)[number],
): readonly [Spectrum, scale: number] {
  const isInverse = name.startsWith('i');
  const last = axes.at(-1)!;
  let now = of;
  for (const [at, axis] of axes.entries()) {
    const size = sizes[at]!;
    if (name === 'irfft' && axis === last) now = along(now, axis, Math.trunc(size / 2) + 1, size, mirrored(size));
    else now = along(now, axis, size, name === 'rfft' && axis === last ? Math.trunc(size / 2) + 1 : size, transform(isInverse ? 1 : -1));
  }
  const count = countOf(sizes);
  return [now, norm === 'ortho' ? 1 / Math.sqrt(count) : ((norm ?? 'backward') === 'backward') === isInverse ? 1 / count : 1];
}

function fourier(name: Name): Maker {
  const isReal = name === 'rfft';
  return (one) => {
    one.range = 'small';
    const dtype = one.choose(DTYPES);
    const own: DType = isFloat(dtype) && bitsOf(dtype) < 64 ? 'f32' : 'f64';
    const given = one.pattern(4) === 0 ? { dtype: one.choose(REAL_TYPES) } : {};
    const type = given.dtype ?? own;
    const computed = own === 'f64' || type === 'f64' ? 'f64' : 'f32';
    // Each length is a kernel.
    const extents = shapeFor(one);
    const draw = IS_LONG ? one.random : one.pattern;
    const axes = axesFor(one, extents.length);
    const last = axes.at(-1)!;
    const lengths = axes.map(() => (draw(3) === 0 ? LENGTHS[draw(LENGTHS.length)] : undefined));
    // No length below 1.
    const byDefault = (axis: number): number => (name === 'irfft' && axis === last ? 2 * (extents[axis]! - 1) : extents[axis]!);
    const isNamed = lengths.some((length, at) => length !== undefined || byDefault(axes[at]!) < 1);
    const sizes = axes.map((axis, at) => lengths[at] ?? Math.max(1, byDefault(axis)));
    const norm = one.pick(NORMS);
    const z = one.held(dtype, isReal ? extents : [...extents, 2]);
    const values = valuesOf(z).map((value) => Number(cast(value, computed)));
    const parts = isReal ? [values, values.map(() => 0)] : [0, 1].map((part) => values.filter((_, n) => n % 2 === part));
    const whole = { shape: extents, re: Float64Array.from(parts[0]!), im: Float64Array.from(parts[1]!) };
    const [now, scale] = transformOf(name, whole, axes, sizes, norm);
    const slack = errors(now, axes).map((size) => size * scale * ERROR[computed]);
    const isPair = name !== 'irfft';
    const exact: Value[] = [...now.re].flatMap((value, n) => (isPair ? [value * scale, now.im[n]! * scale] : [value * scale]));
    const opts = {
      ...axesOption(one, axes, extents.length),
      ...(isNamed && { length: axes.length === 1 && one.flip() ? sizes[0] : sizes }),
      ...(norm && { norm }),
    };
    const allowed = slack.flatMap((size) => (isPair ? [size, size] : [size]));
    const wanted = { dtype: type, own, shape: isPair ? [...now.shape, 2] : now.shape, exact, slack: allowed, looseZero: true };
    one.call(name, [z.array], { ...opts, ...given }, wanted, [z]);
  };
}

/** Of every kind: 1, small factors, primes and others. */
const LENGTHS = IS_LONG ? [1, 2, 3, 5, 6, 8, 11, 26, 49, 211] : [1, 4, 7];

function shapeFor(one: Case): number[] {
  const draw = IS_LONG ? one.random : one.pattern;
  const shape = Array.from({ length: 1 + draw(3) }, () => (one.flip(16) ? 0 : LENGTHS[draw(LENGTHS.length)]!));
  return countOf(shape) > 3000 ? shape.map((extent) => Math.min(extent, 5)) : shape;
}

function axesFor(one: Case, rank: number): readonly number[] {
  if (!one.flip(3)) return [one.flip() ? rank - 1 : one.random(rank)];
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  for (let n = rank - 1; n > 0; n--) if (one.flip()) axes.reverse();
  return axes.slice(0, 1 + one.random(rank));
}

function axesOption(one: Case, axes: readonly number[], rank: number): { readonly axis?: number | readonly number[] } {
  if (axes.length === 1 && axes[0] === rank - 1 && one.flip()) return {};
  const named = axes.map((axis) => (one.flip() ? axis : axis - rank));
  return { axis: named.length === 1 && one.flip() ? named[0]! : named };
}

/** For each element, the root of the sum of squares of the transform that it belongs to. */
function errors({ shape, re, im }: Spectrum, axes: readonly number[]): number[] {
  const strides = stridesOf(shape);
  const keys = filled(shape, (at) =>
    at.reduce((sum, place, axis) => sum + (axes.includes(axis) ? 0 : place * strides[axis]!), 0),
  ) as number[];
  const sums = new Map<number, number>();
  for (const [n, key] of keys.entries()) sums.set(key, (sums.get(key) ?? 0) + re[n]! ** 2 + im[n]! ** 2);
  return keys.map((key) => Math.sqrt(sums.get(key)!));
}

export const TRANSFORMS = { fft: fourier('fft'), ifft: fourier('ifft'), rfft: fourier('rfft'), irfft: fourier('irfft') } as const;
