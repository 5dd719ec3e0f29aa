// Arrays whose elements follow from their numbers: one thread computes one element or a few.
import type { DeviceArray } from '../core/api/array.js';
import { type DType, i32, type Scalar, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { type Kernel, output, type Param } from '../core/kernels/kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { castText } from './fused.js';
import type { Target } from './target.js';

const kernels: Map<string, Kernel> = new Map();

/** Elements that a thread of a generator computes: the texts of their values, all of type `type`, after the statements of `head`. */
export interface Generator {
  readonly name: string;
  readonly type: ScalarType;
  readonly values: readonly string[];
  /** Statements before the values. `i` is the thread's number. */
  readonly head?: string;
  /** The numbers that the texts name: their types and values. */
  readonly numbers: Readonly<Record<string, readonly [type: Scalar, value: number | bigint]>>;
}

/** Submits a kernel that writes each element of a new array, or of `out`. */
export function generate(
  { name, type, values, head = '', numbers }: Generator,
  shape: readonly number[],
  dtype: DType,
  target: Target,
): DeviceArray {
  const result = target.take(shape, dtype);
  try {
    if (result.length === 0) return result;
    if (!result.isContiguous) {
      using between = target.temporary(shape, dtype);
      submit(between);
      target.recorder.copy(result, between);
    } else submit(result);
  } catch (error) {
    target.giveBack(result);
    throw error;
  }
  return result;

  function submit(into: DeviceArray): void {
    const length = lengthOf(shape);
    const params: Record<string, Param> = { y: output(scalarOf(dtype)), length: i32 };
    const args: Record<string, unknown> = { y: into.span[0], length };
    for (const [key, [scalar, value]] of Object.entries(numbers)) {
      params[key] = scalar;
      args[key] = value;
    }
    const types = Object.values(numbers).map(([scalar]) => scalar.dtype);
    const key = [name, dtype, ...types, head, ...values].join('|');
    let kernel = kernels.get(key);
    if (kernel === undefined) {
      const each = values.length;
      const stores = values.map((value, at) => {
        const store = `y[${each === 1 ? 'i' : `i * ${each} + ${at}`}] = ${castText(`(${value})`, type, REGISTER_TYPE[dtype])};`;
        return at === 0 ? store : `if (i * ${each} + ${at} < length) ${store}`;
      });
      const text = `({ ${Object.keys(params).join(', ')} }, { i, idiv, rng, i32, u32, i64, u64, f32, f64 }) => { ${head} ${stores.join(' ')} }`;
      kernel = kernelOfText(name, params, text, new Map(), { file: undefined, line: 0 });
      kernels.set(key, kernel);
    }
    target.recorder.launch(kernel, { threads: Math.ceil(length / values.length), label: name }, args as never);
  }
}
