// Arrays whose elements follow from their numbers: one thread computes one element or a few.
import type { DeviceArray } from '../core/api/array.js';
import type { DType, Scalar } from '../core/elements/dtype.js';
import type { ScalarType } from '../compiler/ir/ir.js';
import { Arguments } from './body.js';
import { storeText } from './fused.js';
import type { Target } from './target.js';

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
  return target.write(shape, dtype, [], (into) => {
    const { length } = into;
    const each = values.length;
    const args = new Arguments();
    args.array('y', into, 'output');
    args.numbers({ length });
    for (const [key, [scalar, value]] of Object.entries(numbers)) args.give(key, scalar, value);
    const body = (): string => {
      const stores = values.map((value, at) => {
        const store = storeText(`y[${each === 1 ? 'i' : `i * ${each} + ${at}`}]`, `(${value})`, type, dtype);
        return at === 0 ? store : `if (i * ${each} + ${at} < length) ${store}`;
      });
      return `${head} ${stores.join(' ')}`;
    };
    args.launch(target.recorder, name, [head, ...values].join('|'), { threads: Math.ceil(length / each) }, 'i, rng', body);
  });
}
