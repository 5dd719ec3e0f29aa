// Arrays of numbers in a row, and identity matrices.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, f64, i32 } from '../core/elements/dtype.js';
import { generate } from './generated.js';
import { checkRange, isFloat } from './promotion.js';
import type { Result } from './ready.js';
import { type OpOptions, type Target, targetOf } from './target.js';

/** Options of `eye`. */
export interface EyeOptions<D extends DType = DType> extends OpOptions<D> {
  /** The diagonal of the ones, positive above. Default 0. NumPy's `k`. */
  readonly diagonal?: number;
}

function checkNumber(argument: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw badArgument(argument, value, `The ${argument} (${show(value)}) is not a finite number.`);
}

/**
 * The numbers from `start` (default 0) to before `stop`, `step` apart: `numpy.arange`. i32 if all three are whole numbers, else f32; NumPy's are
 * int64 and float64. Throws ArgumentError for a step of 0, and as every operation does.
 * @example arange(5) // 0 1 2 3 4
 * @example arange(1, 2, 0.25) // 1 1.25 1.5 1.75
 */
export function arange<const O extends OpOptions = Record<never, never>>(stop: number, opts?: O): Result<O, 'i32' | 'f32'>;
export function arange<const O extends OpOptions = Record<never, never>>(start: number, stop: number, opts?: O): Result<O, 'i32' | 'f32'>;
export function arange<const O extends OpOptions = Record<never, never>>(
  start: number,
  stop: number,
  step: number,
  opts?: O,
): Result<O, 'i32' | 'f32'>;
export function arange(...args: readonly (number | OpOptions | undefined)[]): Result<OpOptions, DType> {
  const last = args.at(-1);
  const opts = typeof last === 'object' ? last : undefined;
  const numbers = opts === undefined ? args : args.slice(0, -1);
  if (numbers.length > 3)
    throw badArgument('step', numbers[3], `The number of numbers of arange (${numbers.length}) exceeds the limit (3).`, 3);
  const [start, stop, step] = (numbers.length < 2 ? [0, numbers[0], 1] : [numbers[0], numbers[1], numbers[2] ?? 1]).map((value, at) =>
    checkNumber(['start', 'stop', 'step'][at] as string, value),
  ) as [number, number, number];
  if (step === 0) throw badArgument('step', step, 'The step of arange (0) must not be 0.');
  const target = targetOf('arange', opts, []);
  const isWhole = [start, stop, step].every((value) => Number.isInteger(value) && Math.abs(value) < 2 ** 31);
  const length = Math.max(0, Math.ceil((stop - start) / step));
  checkInteger('number of elements of arange', length, 0, 2 ** 31 - 1);
  const dtype = target.typeOf(isWhole ? 'i32' : 'f32');
  checkRange('numbers of arange', length === 0 ? [] : [start, start + (length - 1) * step], dtype);
  return row('arange', { start, step, stop: start + (length - 1) * step }, length, dtype, target);
}

/**
 * `count` numbers from `start` to `stop`, both included, evenly spaced: `numpy.linspace`. f32 unless `dtype` is given; NumPy's are float64.
 * Throws ArgumentError for a negative count, and as every operation does.
 */
export function linspace<const O extends OpOptions = Record<never, never>>(
  start: number,
  stop: number,
  count: number,
  opts?: O,
): Result<O, 'f32'> {
  if (arguments.length > 4) refuseSurplus('linspace', arguments, 4);
  checkNumber('start', start);
  checkNumber('stop', stop);
  const length = checkInteger('count', count, 0, 2 ** 31 - 1);
  if (!Number.isFinite(stop - start)) {
    const message = `The distance of linspace from start (${start}) to stop (${stop}) exceeds the largest number (${Number.MAX_VALUE}).`;
    throw badArgument('stop', stop, message, Number.MAX_VALUE);
  }
  const target = targetOf('linspace', opts, []);
  const step = length < 2 ? 0 : (stop - start) / (length - 1);
  return row('linspace', { start, step, stop: length < 2 ? start : stop }, length, target.typeOf('f32'), target) as Result<O, 'f32'>;
}

/** Computed in f64, so that the last of many numbers is as exact as the first. As in NumPy, linspace() rounds towards minus infinity to integers. */
function row(
  name: 'arange' | 'linspace',
  { start, step, stop }: { readonly start: number; readonly step: number; readonly stop: number },
  length: number,
  dtype: DType,
  target: Target,
): DeviceArray {
  const numbers = { start: [f64, start], step: [f64, step], stop: [f64, stop] } as const;
  const value = 'i === length - 1 ? stop : start + f64(i) * step';
  const isFloored = name === 'linspace' && !isFloat(dtype) && dtype !== 'bool';
  return generate({ name, type: 'f64', values: [isFloored ? `Math.floor(${value})` : value], numbers }, [length], dtype, target);
}

/**
 * A matrix of zeros with ones on the diagonal `diagonal` (default 0; positive above): `numpy.eye`. f32 unless `dtype` is given; NumPy's is
 * float64. `columns` defaults to `rows`. Throws as every operation does.
 * @example eye(3, { dtype: 'i32' })
 */
export function eye<const O extends EyeOptions = Record<never, never>>(rows: number, opts?: O): Result<O, 'f32'>;
export function eye<const O extends EyeOptions = Record<never, never>>(rows: number, columns?: number, opts?: O): Result<O, 'f32'>;
export function eye(rows: number, second?: number | EyeOptions, third?: EyeOptions): Result<OpOptions, DType> {
  if (arguments.length > 3) refuseSurplus('eye', arguments, 3);
  const [columns, opts] = typeof second === 'object' && third === undefined ? [rows, second] : [second ?? rows, third];
  const shape = [checkInteger('number of rows', rows, 0), checkInteger('number of columns', columns, 0)] as const;
  const target = targetOf('eye', opts, [], ['diagonal']);
  const diagonal = checkInteger('diagonal', opts?.diagonal ?? 0, -(2 ** 31), 2 ** 31 - 1);
  const numbers = { columns: [i32, shape[1]], diagonal: [i32, diagonal] } as const;
  const values = ['i % columns - idiv(i, columns) === diagonal ? 1 : 0'];
  return generate({ name: 'eye', type: 'i32', values, numbers }, shape, target.typeOf('f32'), target);
}
