// Conversions between the raw bits that arrays of f16 and bf16 have on the host, and floats.
import { badArgument, show } from '../base/arguments.js';
import { checkDType, type DType, type DTypeLike, is16BitFloat, isHostOf } from './dtype.js';
import { numberOf16, scalarBits } from './scalar-bits.js';

type Narrow = DTypeLike<'f16' | 'bf16'>;

/**
 * Converts raw bits of f16 or bf16, as `read` of such an array returns them, to the same numbers as f32, exactly. PyTorch's
 * `tensor.float()`, NumPy's `bits.view(np.float16).astype(np.float32)`. Throws ArgumentError for other dtypes, and for data of another class.
 *
 * @example floatsFromBits(await x.read(), 'bf16')
 */
export function floatsFromBits(bits: Uint16Array, dtype: Narrow): Float32Array<ArrayBuffer> {
  const narrow = checkNarrow(dtype);
  if (!isHostOf(bits, narrow)) throw badArgument('bits', bits, `The bits (${show(bits)}) are not a Uint16Array.`);
  return Float32Array.from(bits, (one) => numberOf16(narrow, one));
}

/**
 * Rounds each number to the nearest f16 or bf16 number, ties to even, and returns the raw bits, one element for each number. `from` and
 * `copy` take them. PyTorch's `tensor.bfloat16()`, NumPy's `values.astype(np.float16).view(np.uint16)`. Throws ArgumentError for other
 * dtypes, and for a value that is not a number.
 *
 * @example device.from(bitsFromFloats(weights, 'bf16'), { dtype: 'bf16' })
 */
export function bitsFromFloats(values: Iterable<number>, dtype: Narrow): Uint16Array<ArrayBuffer> {
  const narrow = checkNarrow(dtype);
  return Uint16Array.from(values, (value) => scalarBits(narrow, value, 'value').low);
}

function checkNarrow(dtype: Narrow): 'f16' | 'bf16' {
  const name = checkDType<DType>(dtype);
  if (is16BitFloat(name)) return name;
  throw badArgument('dtype', dtype, `The dtype (${name}) is none of f16, bf16.`);
}
