// Counts of values. They are sums of whole numbers, so the order of the atomic additions does not matter.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { f64 } from '../core/elements/dtype.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { onlyArrays } from './fused.js';
import { isReal } from './ready.js';
import { copied, moved } from './rows.js';
import { type OpOptions, targetOf, type Target } from './target.js';

/**
 * How often each whole number from 0 to before `length` occurs: `numpy.bincount`, which finds the length itself. i32. Other numbers are not counted.
 * Throws ArgumentError for elements that are no integers, and as every operation does.
 */
export function binCount(a: DeviceArray, length: number, opts?: Omit<OpOptions, 'dtype'>): DeviceArray<'i32'> {
  if (arguments.length > 3) refuseSurplus('binCount', arguments, 3);
  onlyArrays('binCount', [a]);
  const target = targetOf('binCount', opts, [a]);
  checkInteger('length', length, 0);
  if (isReal(REGISTER_TYPE[a.dtype])) throw badArgument('a', a, `The elements of binCount (${a.label}) are no integers.`, 'i32');
  const value = a.dtype === 'bool' ? 'i64(x[i] ? 1 : 0)' : 'i64(x[i])';
  return counted('binCount', a, length, target, {}, `const bin = ${value}; if (bin >= 0n && bin < i64(length)) atomicAdd(y, i32(bin), 1);`);
}

/** Options of `histogram`. */
export interface HistogramOptions extends Omit<OpOptions, 'dtype'> {
  /** The limits of the bins, both included. `[min, max]` of the elements in NumPy, which has to wait for them. */
  readonly range: readonly [low: number, high: number];
}

/**
 * How many elements lie in each of `bins` equal bins of a range: `numpy.histogram(a, bins, range)[0]`. The last bin includes the upper limit. i32.
 * Elements outside the range, and NaN, are not counted. Throws ArgumentError for a range without extent, and as every operation does.
 */
export function histogram(a: DeviceArray, bins: number, opts: HistogramOptions): DeviceArray<'i32'> {
  if (arguments.length > 3) refuseSurplus('histogram', arguments, 3);
  onlyArrays('histogram', [a]);
  const target = targetOf('histogram', opts, [a], ['range']);
  checkInteger('bins', bins, 1);
  const { range } = opts ?? {};
  const [low, high] = range ?? [];
  if (range?.length !== 2 || !(low < high) || !Number.isFinite(high - low))
    throw badArgument(
      'range',
      range,
      `The range of histogram (${show(range)}) is no pair of finite numbers, the smaller one first, with a finite distance.`,
    );
  const value = a.dtype === 'bool' ? 'f64(x[i] ? 1 : 0)' : 'f64(x[i])';
  // The quotient may be off by a rounding, so the bin is the one between whose limits the element lies, as in NumPy.
  const body = `const value = ${value};
    if (value >= low && value <= high) {
      const bin = min(i32((value - low) / step), length - 1);
      if (value < low + f64(bin) * step) atomicAdd(y, max(bin - 1, 0), 1);
      else if (bin < length - 1 && value >= low + f64(bin + 1) * step) atomicAdd(y, bin + 1, 1);
      else atomicAdd(y, bin, 1);
    }`;
  return counted('histogram', a, bins, target, { low, high, step: (high - low) / bins }, body);
}

function counted(
  name: string,
  a: DeviceArray,
  length: number,
  target: Target,
  reals: Readonly<Record<string, number>>,
  body: string,
): DeviceArray<'i32'> {
  return target.write([length], target.typeOf('i32'), [a], (into) => {
    using own = into.dtype === 'i32' ? undefined : target.temporary([length], 'i32');
    const counts = own ?? into;
    using elements = a.isContiguous ? undefined : copied(a, target);
    target.recorder.fill(counts as DeviceArray<'i32'>, 0);
    if (a.length > 0) {
      const args = new Arguments();
      args.array('x', elements ?? a);
      args.array('y', counts, 'inout');
      args.numbers({ length });
      for (const [key, value] of Object.entries(reals)) args.give(key, f64, value);
      // Limits of bins are NumPy's, in two roundings.
      args.rounded();
      args.launch(target.recorder, name, '', { threads: a.length }, 'i, atomicAdd', () => body);
    }
    if (own !== undefined) moved(into, own, target);
  }) as DeviceArray<'i32'>;
}
