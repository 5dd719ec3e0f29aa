// The checks of arguments and the one wording of their errors: a whole sentence with the value, then the limit.
import { DTYPES, type DType, type DTypeLike, isDType } from '../elements/dtype.js';
import type { Shape } from '../kernels/kernel.js';
import { ArgumentError } from './errors.js';

const MAX_RANK = 8;

export function badArgument(argument: string, value: unknown, message: string, limit?: unknown): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_ARGUMENT', message, limit === undefined ? { argument, value } : { argument, value, limit });
}

/** Something of one device given to another, which cannot take it. */
export function wrongDevice(argument: string, value: unknown, message: string): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_DEVICE_MISMATCH', message, { argument, value });
}

/** A value as a message shows it. */
export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return `[${value.map(show).join(', ')}]`;
  if (typeof value === 'object' && value !== null) return value.constructor?.name ?? 'an object';
  if (typeof value === 'function') return 'a function';
  return String(value);
}

/** A whole number from `low` to `high`. */
export function checkInteger(argument: string, value: unknown, low: number, high: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw badArgument(argument, value, `The ${argument} (${show(value)}) is not a whole number.`);
  if (value < low) throw badArgument(argument, value, `The ${argument} (${value}) is below the least allowed (${low}).`, low);
  if (value > high) throw badArgument(argument, value, `The ${argument} (${value}) exceeds the limit (${high}).`, high);
  return value;
}

/** A shape as a frozen list of dimensions. */
export function checkShape(shape: unknown): readonly number[] {
  const dimensions: unknown[] = Array.isArray(shape) ? shape : [shape];
  if (dimensions.length > MAX_RANK) {
    throw badArgument('shape', shape, `The number of dimensions (${dimensions.length}) exceeds the limit (${MAX_RANK}).`, MAX_RANK);
  }
  return Object.freeze(dimensions.map((dimension) => checkInteger(Array.isArray(shape) ? 'dimension' : 'length', dimension, 0)));
}

export function lengthOf(shape: readonly number[]): number {
  let length = 1;
  for (const dimension of shape) length *= dimension;
  return length;
}

/** The bytes of an array of this shape, which must fit the device. */
export function checkBytes(shape: readonly number[], dtype: DType, limitBytes: number, device: string): number {
  const bytes = lengthOf(shape) * DTYPES[dtype].byteSize;
  if (bytes > limitBytes) {
    throw badArgument(
      'shape',
      shape,
      `The array's size (${bytes} bytes) exceeds the memory of device ${device} (${limitBytes} bytes).`,
      limitBytes,
    );
  }
  return bytes;
}

export function checkDType<D extends DType>(dtype: DTypeLike<D> | undefined, fallback: DType = 'f32'): D {
  if (dtype === undefined) return fallback as D;
  const name = typeof dtype === 'object' && dtype !== null ? dtype.dtype : dtype;
  if (!isDType(name)) {
    throw badArgument('dtype', dtype, `The dtype (${show(dtype)}) is none of ${Object.keys(DTYPES).join(', ')}.`);
  }
  return name;
}

/** A new shape for the same number of elements. */
export function checkReshape(shape: Shape, length: number): readonly number[] {
  const checked = checkShape(shape);
  if (lengthOf(checked) !== length) {
    throw badArgument('shape', shape, `The shape (${show(checked)}) has ${lengthOf(checked)} elements; the data has ${length}.`, length);
  }
  return checked;
}

/** Python's rules for a range of a dimension: negative counts from the end, out of range is cut. */
export function clampRange(start: number, end: number | undefined, length: number): readonly [start: number, end: number] {
  const from = clampIndex(checkInteger('start', start, Number.MIN_SAFE_INTEGER), length);
  const to = end === undefined ? length : clampIndex(checkInteger('end', end, Number.MIN_SAFE_INTEGER), length);
  return [from, Math.max(from, to)];
}

function clampIndex(index: number, length: number): number {
  return index < 0 ? Math.max(0, index + length) : Math.min(index, length);
}
