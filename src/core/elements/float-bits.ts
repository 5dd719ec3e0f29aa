// Conversions between the raw bits that arrays of f16 and bf16 have on the host, and floats.
import { badArgument, refuseSurplus, show } from '../base/arguments.js';
import { type DType, type DTypeLike, is16BitFloat, isHostOf } from './dtype.js';
import { checkDType } from './dtype-names.js';
import { bfloatBits, bfloatNumber, halfBits, halfNumber } from './half-bits.js';
import { scalarBits } from './scalar-bits.js';

type Narrow = DTypeLike<'f16' | 'bf16'>;

/**
 * Converts raw bits of f16 or bf16, as `read` of such an array returns them, to the same numbers as f32, exactly. PyTorch's
 * `tensor.float()`, NumPy's `bits.view(np.float16).astype(np.float32)`. Throws ArgumentError for other dtypes, and for data of another class.
 *
 * @example floatsFromBits(await x.read(), 'bf16')
 */
export function floatsFromBits(bits: Uint16Array, dtype: Narrow): Float32Array<ArrayBuffer> {
  if (arguments.length > 2) refuseSurplus('floatsFromBits', arguments, 2);
  const narrow = checkNarrow(dtype);
  if (!isHostOf(bits, narrow)) throw badArgument('bits', bits, `The bits (${show(bits)}) are not a Uint16Array.`);
  const number = narrow === 'f16' ? halfNumber : bfloatNumber;
  const floats = new Float32Array(bits.length);
  for (let at = 0; at < floats.length; at++) floats[at] = number(bits[at] as number);
  return floats;
}

/**
 * Rounds each number to the nearest f16 or bf16 number, ties to even, and returns the raw bits, one element for each number. `from` and
 * `copy` take them. PyTorch's `tensor.bfloat16()`, NumPy's `values.astype(np.float16).view(np.uint16)`. Throws ArgumentError for other
 * dtypes, and for a value that is not a number.
 *
 * @example device.from(bitsFromFloats(weights, 'bf16'), { dtype: 'bf16' })
 */
export function bitsFromFloats(values: Iterable<number>, dtype: Narrow): Uint16Array<ArrayBuffer> {
  if (arguments.length > 2) refuseSurplus('bitsFromFloats', arguments, 2);
  const narrow = checkNarrow(dtype);
  const bitsOf = narrow === 'f16' ? halfBits : bfloatBits;
  const list = Array.isArray(values) || ArrayBuffer.isView(values) ? (values as ArrayLike<number>) : [...values];
  const bits = new Uint16Array(list.length);
  for (let at = 0; at < bits.length; at++) {
    const value = list[at];
    // The check with a message takes longer.
    bits[at] = typeof value === 'number' ? bitsOf(value) : scalarBits(narrow, value, 'value').low;
  }
  return bits;
}

function checkNarrow(dtype: Narrow): 'f16' | 'bf16' {
  const name = checkDType<DType>(dtype);
  if (is16BitFloat(name)) return name;
  throw badArgument('dtype', dtype, `The dtype (${name}) is none of f16, bf16.`);
}
