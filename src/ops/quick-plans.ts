// The short way of an operation: new results of contiguous arrays of one shape and one device, on its current stream, of types that were
// met before. What is in any way different takes the long way, which also has the errors.
import type { DeviceArray } from '../core/api/array.js';
import { noted } from '../core/api/made-arrays.js';
import { DTYPES, type DType } from '../core/elements/dtype.js';
import type { Kernel } from '../core/kernels/kernel.js';
import { isListingForGpus } from '../core/kernels/definitions.js';
import { flatThreads, isArray } from './fused.js';
import { isSameList } from './layout.js';
import type { Form } from './target.js';

interface Plan {
  readonly kernel: Kernel;
  /** The type of the result. */
  readonly dtype: DType;
}

const COUNT = Object.keys(DTYPES).length;
/** Numbers of the types, for tables instead of strings. */
const NUMBERS = Object.fromEntries(Object.keys(DTYPES).map((dtype, number) => [dtype, number])) as Readonly<Record<DType, number>>;

export class QuickPlans {
  readonly #count: 1 | 2;
  readonly #plans: Readonly<Record<Form, (Plan | undefined)[]>> = { cpu: [], gpu: [] };

  /** `count`: of operands. */
  constructor(count: 1 | 2) {
    this.#count = count;
  }

  /** `kernel`: for contiguous operands of these types. */
  add(form: Form, operands: readonly DeviceArray[], kernel: Kernel, dtype: DType): void {
    const [first, last] = [operands[0] as DeviceArray, operands[this.#count - 1] as DeviceArray];
    this.#plans[form][NUMBERS[first.dtype] * COUNT + NUMBERS[last.dtype]] = { kernel, dtype };
  }

  /** The result; undefined if the arguments need the long way. */
  run(args: readonly unknown[]): DeviceArray | undefined {
    if (args.length !== this.#count) return undefined;
    const a = args[0];
    const b = args[this.#count - 1];
    if (!isArray(a) || !isArray(b) || a.core !== b.core || !a.isContiguous || !b.isContiguous) return undefined;
    if (a.length === 0 || a.isDisposed || b.isDisposed || !isSameList(a.shape, b.shape)) return undefined;
    const form = a.core.channel.backend === 'cpu' ? 'cpu' : 'gpu';
    const plan = this.#plans[form][NUMBERS[a.dtype] * COUNT + NUMBERS[b.dtype]];
    if (plan === undefined || isListingForGpus()) return undefined;
    const { stream } = a.device;
    const result = stream.allocate(a.shape, plan.dtype);
    try {
      const x0 = flat(a);
      const y = flat(result);
      const given: Record<string, unknown> = this.#count === 1 ? { x0, y } : { x0, x1: a === b ? x0 : flat(b), y };
      stream.launch(plan.kernel, flatThreads(form, a.length, given), given as never);
    } catch (error) {
      result[Symbol.dispose]();
      throw error;
    }
    return noted(result);
  }
}

function flat(array: DeviceArray): DeviceArray {
  return array.shape.length === 1 ? array : array.span[0];
}
