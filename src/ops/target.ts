// Where an operation runs, and where its result goes: the options that all operations have.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { DeviceArray } from '../core/api/array.js';
import { getDefaultDevice } from '../core/api/global-functions.js';
import { missingGrant } from '../core/api/launch-elsewhere.js';
import { noted } from '../core/api/made-arrays.js';
import { checkOpenDevice, type DeviceLike } from '../core/api/open-devices.js';
import type { Recorder } from '../core/api/recorder.js';
import { checkDType } from '../core/elements/dtype-names.js';
import type { DType, DTypeLike } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { isListingForGpus } from '../core/kernels/definitions.js';
import { MAX_RANK } from '../protocol/protocol.gen.js';
import { isSameList } from './layout.js';
import { isSameKind } from './promotion.js';

/** What makes arrays and submits operations: a stream, the stream of a capture, or a lane of a pipeline. */
export type On = Recorder | LaneLike;
interface LaneLike {
  readonly stream: Recorder;
  empty<D extends DType>(shape: readonly number[], dtype: D): DeviceArray<D>;
}

/** Options of every operation. */
export interface OpOptions<D extends DType = DType> {
  /**
   * The stream that runs the operation and allocates its result; default the current stream of the device. A lane of a pipeline runs it on
   * its stream, and the result belongs to the lane's item.
   */
  readonly stream?: On;
  /** The device, on whose current stream the operation runs. Default that of the arrays; without arrays, the default device. */
  readonly device?: DeviceLike;
  /** The array that takes the result, of the result's shape; also one of the operands. Default a new array. NumPy's `out`. */
  readonly out?: DeviceArray<D>;
  /** The element type of the result; default NumPy's, as docs/operations.md says. */
  readonly dtype?: DTypeLike<D>;
}

/** Elements that a kernel can index. */
const MOST_ELEMENTS = 2 ** 31 - 1;
const OPTION_NAMES = ['stream', 'device', 'out', 'dtype'];

/** The place of one operation. */
export class Target {
  readonly recorder: Recorder;
  /** The options' element type, or that of `out`. */
  readonly dtype: DType | undefined;
  readonly #name: string;
  readonly #out: DeviceArray | undefined;
  /** Whether the options name the type. */
  readonly #isExplicit: boolean;
  /** A lane, which makes arrays of its item. */
  readonly #maker: LaneLike | undefined;

  constructor(name: string, recorder: Recorder, isExplicit = false, dtype?: DType, out?: DeviceArray, maker?: LaneLike) {
    this.recorder = recorder;
    this.dtype = dtype;
    this.#name = name;
    this.#out = out;
    this.#isExplicit = isExplicit;
    this.#maker = maker;
  }

  /** The type of a result that is of type `own` unless the options say otherwise. Throws ArgumentError if `out` would silently lose its kind. */
  typeOf(own: DType): DType {
    const out = this.#out;
    if (out !== undefined && !this.#isExplicit && !isSameKind(own, out.dtype)) {
      const message = `The result of ${this.#name} (${own}) does not go into the array out (${out.label}): give { dtype: '${out.dtype}' } too if it should.`;
      throw badArgument('out', out, message, own);
    }
    return this.dtype ?? own;
  }

  /** The array for a result of this type and shape. */
  take(shape: readonly number[], dtype: DType): DeviceArray {
    if (shape.length > MAX_RANK) {
      const message = `The result of ${this.#name} has more dimensions (${shape.length}) than an array has (${MAX_RANK}).`;
      throw badArgument('shape', shape, message, MAX_RANK);
    }
    const length = lengthOf(shape);
    if (length > MOST_ELEMENTS) {
      const message = `The result of ${this.#name} (${show([...shape])}) has more elements (${length}) than an operation can index (${MOST_ELEMENTS}).`;
      throw badArgument('shape', shape, message, MOST_ELEMENTS);
    }
    const out = this.#out;
    if (out === undefined) return this.#maker?.empty(shape, dtype) ?? noted(this.temporary(shape, dtype));
    if (!isSameList(shape, out.shape)) {
      const message = `The array out (${out.label}) has not the shape of the result of ${this.#name} (${show([...shape])}).`;
      throw badArgument('out', out, message, shape);
    }
    return out;
  }

  /**
   * The result of `submit`, which writes a contiguous array that shares no memory with the operands: the result itself, or one that is
   * copied to it. Nothing is submitted for a result without elements.
   */
  write(shape: readonly number[], dtype: DType, operands: readonly DeviceArray[], submit: (into: DeviceArray) => void): DeviceArray {
    const result = this.take(shape, dtype);
    try {
      if (result.length === 0) return result;
      if (result.isContiguous && operands.every((one) => one.storage !== result.storage)) submit(result);
      else {
        using between = this.temporary(shape, dtype);
        submit(between);
        this.recorder.copy(result, between);
      }
    } catch (error) {
      this.giveBack(result);
      throw error;
    }
    return result;
  }

  /** Disposes the array that `take` made; `out` belongs to the caller. */
  giveBack(array: DeviceArray): void {
    if (array !== this.#out) array[Symbol.dispose]();
  }

  /** A new array, which the operation disposes. */
  temporary(shape: readonly number[], dtype: DType): DeviceArray {
    return this.recorder.allocate(Object.isFrozen(shape) ? shape : Object.freeze([...shape]), dtype);
  }
}

export function targetOf(name: string, opts: OpOptions | undefined, arrays: readonly DeviceArray[], more: readonly string[] = []): Target {
  if (opts === undefined) {
    const { stream } = arrays[0]?.device ?? getDefaultDevice();
    checkPlaces(name, arrays, stream, false);
    return new Target(name, stream);
  }
  checkOptionNames(opts, [...OPTION_NAMES, ...more]);
  const { stream, device, out } = opts;
  const first = arrays[0] ?? out;
  const named = device === undefined ? undefined : checkOpenDevice('device', device);
  const recorder = stream === undefined ? (named ?? first?.device ?? getDefaultDevice()).stream : recorderOf(stream);
  if (named !== undefined && named.core !== recorder.core)
    throw badArgument(
      'stream',
      stream,
      `Stream ${recorder.label} belongs to device ${recorder.core.name}, not to ${named.info.id}.`,
      named.info.id,
    );
  const isNamed = stream !== undefined || named !== undefined;
  checkPlaces(name, out === undefined ? arrays : [...arrays, checkOut(out)], recorder, isNamed);
  const dtype = opts.dtype === undefined ? out?.dtype : checkDType(opts.dtype);
  if (out !== undefined && dtype !== out.dtype) {
    throw badArgument('dtype', opts.dtype, `The dtype of ${name} (${dtype}) is not that of the array out (${out.dtype}).`, out.dtype);
  }
  return new Target(
    name,
    recorder,
    opts.dtype !== undefined,
    dtype,
    out,
    stream === undefined || 'allocate' in stream ? undefined : stream,
  );
}

/** Which form an algorithm has: long parts for cores, or many blocks. */
export type Form = 'cpu' | 'gpu';

/** The form of an algorithm for the device. While kernels are built ahead of time, on a CPU device, also that for GPUs. */
export function formsOf({ recorder }: Target): readonly Form[] {
  if (recorder.device.info.backend !== 'cpu') return GPU_FORM;
  return isListingForGpus() ? BOTH_FORMS : CPU_FORM;
}
const CPU_FORM = ['cpu'] as const;
const GPU_FORM = ['gpu'] as const;
const BOTH_FORMS = ['cpu', 'gpu'] as const;

/** `isNamed`: the options say where it runs. It may then use arrays of other devices that granted access. */
function checkPlaces(name: string, arrays: readonly DeviceArray[], recorder: Recorder, isNamed: boolean): void {
  for (const array of arrays) {
    if (array.isDisposed) throw array.disposedError();
    if (array.core === recorder.core) continue;
    const remedy = missingGrant(recorder.core, array.storage);
    if (isNamed && remedy === '') continue;
    const named = isNamed ? '' : ', or give the stream or the device that runs the operation';
    const cure = remedy ? remedy : `copy it to one device${remedy === '' ? named : ''}`;
    const message = `Array ${array.label} of ${name} is on device ${array.core.name}, and its stream on ${recorder.core.name}: ${cure}.`;
    throw badArgument('array', array, message, recorder.core.name);
  }
}

function recorderOf(stream: On): Recorder {
  const candidate = stream as Partial<Recorder> & Partial<LaneLike>;
  const found = candidate?.allocate === undefined ? candidate?.stream : (stream as Recorder);
  if (found?.allocate !== undefined && found.core !== undefined && !('info' in candidate)) return found;
  throw badArgument('stream', stream, `The stream (${show(stream)}) is no stream and no lane.`);
}

function checkOut(out: unknown): DeviceArray {
  if (out instanceof DeviceArray) return out as DeviceArray;
  throw badArgument('out', out, `The array out (${show(out)}) is not a device array.`);
}

/** Splits arguments into operands and the options that may follow them. */
export function split<T>(
  name: string,
  args: readonly unknown[],
  count: number,
): readonly [operands: readonly T[], opts: OpOptions | undefined] {
  if (args.length > count + 1) refuseSurplus(name, args, count + 1);
  if (args.length < count)
    throw badArgument('operands', args, `The number of operands of ${name} (${args.length}) is not ${count}.`, count);
  return [args.slice(0, count) as T[], args[count] as OpOptions | undefined];
}
