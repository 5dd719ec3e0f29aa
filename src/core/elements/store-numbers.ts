// Lists of numbers as the elements of a typed array, for lists of millions: without a message for each value, or an object.
import { type DType, type HostArray, is16BitFloat } from './dtype.js';
import { bitsFromFloats } from './float-bits.js';
import { INTEGERS, TWO_32 } from './scalar-bits.js';

/** Stores all values. False, with nothing stored, unless all are numbers that the element type can hold. */
export function storeNumbers(host: HostArray, dtype: DType, values: readonly unknown[]): boolean {
  if (!areNumbersOf(dtype, values)) return false;
  if (is16BitFloat(dtype)) host.set(bitsFromFloats(values, dtype) as never);
  else if (dtype === 'i64' || dtype === 'u64') storeInHalves(new Uint32Array(host.buffer, host.byteOffset, 2 * host.length), values);
  else host.set(values as never);
  return true;
}

function areNumbersOf(dtype: DType, values: readonly unknown[]): values is readonly number[] {
  if (dtype === 'bool') return false;
  const range = INTEGERS[dtype];
  if (range === undefined) {
    for (let at = 0; at < values.length; at++) if (typeof values[at] !== 'number') return false;
    return true;
  }
  const { low, high } = range;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (typeof value !== 'number' || value < low || value > high || value !== Math.trunc(value)) return false;
  }
  return true;
}

function storeInHalves(words: Uint32Array, values: readonly number[]): void {
  for (let at = 0; at < values.length; at++) {
    const value = values[at] as number;
    words[2 * at] = value;
    words[2 * at + 1] = Math.floor(value / TWO_32);
  }
}
