// Discrete Fourier transforms, named as NumPy names them. Complex numbers are a last axis of two: complex.ts.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, is16BitFloat } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { checkComplex } from './complex.js';
import { onlyArrays } from './fused.js';
import { submitTransform } from './fourier.js';
import type { RealType } from './fourier-passes.js';
import { checkAxis } from './layout.js';
import { isFloat, promoted } from './promotion.js';
import type { Result, TypeOf } from './ready.js';
import { copied, zeroed } from './rows.js';
import { type OpOptions, targetOf, type Target } from './target.js';
import { halfOf, type Transform } from './transform.js';

/** Options of Fourier transforms. */
export interface FourierOptions<D extends DType = DType> extends OpOptions<D> {
  /** The axis, or a list of axes of one transform in several dimensions, without the axis of the parts; negative from the end. Default -1, the last one. */
  readonly axis?: number | readonly number[];
  /** The length of the transform, or one for each axis: the operand is padded with zeros or cropped. Default the operand's. NumPy's `n`, `s`. */
  readonly length?: number | readonly number[];
  /** What divides by the length: the inverse transform, both by its square root, or the forward transform. Default 'backward'. NumPy's `norm`. */
  readonly norm?: 'backward' | 'ortho' | 'forward';
}

/** The type of the parts of a spectrum: floats of 64 bits and integers give f64, others f32. */
export type FourierOf<D extends DType> = D extends 'f16' | 'bf16' | 'f32' ? 'f32' : 'f64';

const FOURIER_OPTIONS = ['axis', 'length', 'norm'];
const NORMS = ['backward', 'ortho', 'forward'];

/**
 * The discrete Fourier transform of complex numbers, `[..., n, 2]`, along an axis or along several: `numpy.fft.fft`, `fft2`, `fftn`,
 * `cupy.fft.fft`, `torch.fft.fft`. Any length; of integers f64, of f16 and bf16 f32. `rfft` takes real numbers. Throws ArgumentError for an operand
 * without a last axis of 2, for a length below 1, and as every operation does.
 * @example const spectrum = fft(complex(signal)); // of real numbers, [n] gives [n, 2]
 * @example const image = fft(z, { axis: [-2, -1] });
 */
export function fft<A extends DeviceArray, const O extends FourierOptions = Record<never, never>>(
  z: A,
  opts?: O,
): Result<O, FourierOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('fft', arguments, 2);
  return transformed('fft', 'complex', false, z, opts) as Result<O, FourierOf<TypeOf<A>>>;
}

/** The inverse of `fft`: `numpy.fft.ifft`, `ifft2`, `ifftn`, `cupy.fft.ifft`, `torch.fft.ifft`. Throws as `fft` does. */
export function ifft<A extends DeviceArray, const O extends FourierOptions = Record<never, never>>(
  z: A,
  opts?: O,
): Result<O, FourierOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('ifft', arguments, 2);
  return transformed('ifft', 'complex', true, z, opts) as Result<O, FourierOf<TypeOf<A>>>;
}

/**
 * The first half of the spectrum of real numbers: `[..., n]` gives `[..., floor(n / 2) + 1, 2]`, since the other half is its mirror image:
 * `numpy.fft.rfft`, `rfft2`, `rfftn`, `cupy.fft.rfft`, `torch.fft.rfft`. Of several axes, the last one of the list is halved. Throws as `fft` does.
 * @example const loudness = magnitude(rfft(signal));
 */
export function rfft<A extends DeviceArray, const O extends FourierOptions = Record<never, never>>(
  a: A,
  opts?: O,
): Result<O, FourierOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('rfft', arguments, 2);
  return transformed('rfft', 'real', false, a, opts) as Result<O, FourierOf<TypeOf<A>>>;
}

/**
 * The inverse of `rfft`: `numpy.fft.irfft`, `irfft2`, `irfftn`, `cupy.fft.irfft`, `torch.fft.irfft`. The result has `length` elements along the last
 * axis of the list, by default an even number, `2 * (m - 1)` of `m`. Imaginary parts of the first number, and of the middle one of an even length,
 * count as 0. Throws as `fft` does.
 */
export function irfft<A extends DeviceArray, const O extends FourierOptions = Record<never, never>>(
  z: A,
  opts?: O,
): Result<O, FourierOf<TypeOf<A>>> {
  if (arguments.length > 2) refuseSurplus('irfft', arguments, 2);
  return transformed('irfft', 'hermitian', true, z, opts) as Result<O, FourierOf<TypeOf<A>>>;
}

/** The type in which a transform of elements of a type is computed. */
function typeFor(dtype: DType): RealType {
  return dtype === 'f32' || is16BitFloat(dtype) ? 'f32' : 'f64';
}

function axesOf(rank: number, axis: unknown): readonly number[] {
  const list = (Array.isArray(axis) ? axis : [axis]).map((one) => checkAxis(one, rank));
  if (list.length === 0) throw badArgument('axis', axis, 'The list of axes is empty.');
  if (new Set(list).size !== list.length) throw badArgument('axis', axis, `The axes (${show(axis)}) name a dimension twice.`);
  return list;
}

function lengthsOf(length: unknown, axes: readonly number[], own: readonly number[]): readonly number[] {
  if (length === undefined) return own;
  const list = Array.isArray(length) ? length : [length];
  if (list.length !== axes.length)
    throw badArgument('length', length, `The number of lengths (${list.length}) is not that of the axes (${axes.length}).`, axes.length);
  return list.map((one) => checkInteger('length', one, 1, 2 ** 31 - 1));
}

function scaleFor(norm: unknown, isInverse: boolean, count: number): number {
  if (typeof norm !== 'string' || !NORMS.includes(norm))
    throw badArgument('norm', norm, `The norm (${show(norm)}) is neither 'backward' nor 'ortho' nor 'forward'.`);
  if (norm === 'ortho') return 1 / Math.sqrt(count);
  return (norm === 'backward') === isInverse ? 1 / count : 1;
}

function transformed(
  name: string,
  kind: Transform['kind'],
  isInverse: boolean,
  operand: DeviceArray,
  opts: FourierOptions | undefined,
): DeviceArray {
  if (kind === 'real') onlyArrays(name, [operand]);
  else checkComplex(name, operand);
  const target = targetOf(name, opts, [operand], FOURIER_OPTIONS);
  const extents = kind === 'real' ? operand.shape : operand.shape.slice(0, -1);
  const axes = axesOf(extents.length, opts?.axis ?? -1);
  const halved = axes.at(-1) as number;
  const own = axes.map((axis) =>
    kind === 'hermitian' && axis === halved ? 2 * ((extents[axis] as number) - 1) : (extents[axis] as number),
  );
  const lengths = lengthsOf(opts?.length, axes, own);
  const short = lengths.findIndex((length) => length < 1);
  if (short >= 0) {
    const message = `The operand of ${name} (${operand.label}) gives no transform along axis ${axes[short]}: its length is ${lengths[short]}.`;
    throw badArgument('length', lengths[short], message, 1);
  }
  const scale = scaleFor(opts?.norm ?? 'backward', isInverse, lengthOf(lengths));
  const shape: number[] = [...extents];
  for (const [at, axis] of axes.entries()) shape[axis] = kind === 'real' && axis === halved ? halfOf(lengths[at]!) : lengths[at]!;
  const computed = typeFor(operand.dtype);
  const dtype = target.typeOf(computed);
  const type = typeFor(promoted(computed, isFloat(dtype) ? dtype : computed));
  return target.write(kind === 'hermitian' ? shape : [...shape, 2], dtype, [operand], (into) => {
    // Nothing, padded with zeros.
    if (operand.length === 0) return zeroed(into, target);
    using own0 = operand.isContiguous ? undefined : copied(operand, target);
    submitSteps(own0 ?? operand, into, { kind, isInverse, axes, lengths, extents, scale, type }, target);
  });
}

interface Plan extends Pick<Transform, 'kind' | 'isInverse' | 'scale' | 'type'> {
  readonly axes: readonly number[];
  readonly lengths: readonly number[];
  readonly extents: readonly number[];
}

/** One transform if the axes lie beside each other in their order, else one for each axis. */
function submitSteps(x: DeviceArray, y: DeviceArray, { kind, isInverse, axes, lengths, extents, scale, type }: Plan, target: Target): void {
  const sorted = axes.toSorted((a, b) => a - b);
  const [first, halved] = [sorted[0] as number, axes.at(-1) as number];
  const adjoin = sorted.every((axis, at) => axis === first + at) && (kind === 'complex' || sorted.at(-1) === halved);
  const groups = adjoin ? [sorted] : kind === 'hermitian' ? axes.map((axis) => [axis]) : axes.map((axis) => [axis]).toReversed();
  const now = [...extents];
  const owned: Disposable[] = [];
  let from = x;
  try {
    for (const [turn, group] of groups.entries()) {
      const isEnd = turn === groups.length - 1;
      const own = group.includes(halved) ? kind : 'complex';
      const [start, end] = [group[0] as number, (group.at(-1) as number) + 1];
      const size = (axis: number): number => lengths[axes.indexOf(axis)]!;
      const wanted = { lengths: group.map(size), given: group.map((axis) => now[axis]!) };
      for (const axis of group) now[axis] = own === 'real' && axis === halved ? halfOf(size(axis)) : size(axis);
      const [outer, inner] = [lengthOf(now.slice(0, start)), lengthOf(now.slice(end))];
      const to = isEnd ? y : target.temporary([lengthOf(now), 2], type);
      if (!isEnd) owned.push(to);
      submitTransform(from, to, { kind: own, isInverse, ...wanted, outer, inner, scale: isEnd ? scale : 1, type }, target);
      from = to;
    }
  } finally {
    for (const one of owned) one[Symbol.dispose]();
  }
}
