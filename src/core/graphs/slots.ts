// The slots of a graph: placeholders for the values that each launch of the graph gives. A captured function gets one slot for each declared
// parameter and passes it to kernels, copies and fills in place of a scalar or an array.
// Thread: owner.
import { passTheType } from '../elements/dtype-names.js';
import { Access as AccessBits } from '../../protocol/protocol.gen.js';
import { badArgument, show, wrongDevice } from '../base/arguments.js';
import { StateError } from '../base/errors.js';
import { describeAs } from '../base/describe.js';
import { SLOT_STAYS } from '../base/uncloneable.js';
import { type DType, isDType, type Scalar } from '../elements/dtype.js';
import { Form, type PlanParam } from '../kernels/kernel-plan.js';
import type { Access, ArrayParam, Param, Params } from '../kernels/kernel.js';
import type { OrderedDevice } from '../ordering/ordered-stream.js';
import { TrackedMemory } from '../ordering/tracked-memory.js';
import type { Timeline } from '../timeline/timeline.js';

/** A placeholder for a scalar that each launch of the graph gives. Pass it to a kernel, or to a fill, in place of the number. */
export class ScalarSlot<D extends DType = DType> {
  /** @internal */
  readonly uncloneable: symbol = SLOT_STAYS;
  /** Tells a scalar slot from an array slot. */
  readonly slot = 'scalar';
  /** The name under which a launch gives the value. */
  readonly name: string;
  /** The type of the scalar. */
  readonly dtype: D;

  /** @internal Made by `capture`. */
  constructor(name: string, dtype: D) {
    this.name = name;
    this.dtype = dtype;
  }

  /** Throws StateError: a slot has no value that JavaScript could compute with. */
  [Symbol.toPrimitive](): never {
    throw noValue(this.name);
  }
}

/** A placeholder for an array that each launch of the graph gives. Pass it to a kernel, a copy or a fill in place of the array. */
export class ArraySlot<D extends DType = DType, A extends Access = Access> {
  /** @internal */
  readonly uncloneable: symbol = SLOT_STAYS;
  /** Tells an array slot from a scalar slot. */
  readonly slot = 'array';
  /** The name under which a launch gives the array. */
  readonly name: string;
  /** The element type of the array. */
  readonly dtype: D;
  /** The number of dimensions of the array. */
  readonly rank: number;
  /** Whether the graph reads, writes, or reads and writes the array. */
  readonly access: A;
  /** @internal Orders the nodes that use the array, whichever it will be. */
  readonly memory: SlotMemory;

  /** @internal Made by `capture`. */
  constructor(name: string, param: ArrayParam<D, A>, core: OrderedDevice) {
    this.name = name;
    this.memory = new SlotMemory(name, core);
    this.dtype = param.dtype;
    this.rank = param.rank;
    this.access = param.access;
  }

  /** Throws StateError: a slot has no value that JavaScript could compute with. */
  [Symbol.toPrimitive](): never {
    throw noValue(this.name);
  }
}

describeAs(
  ScalarSlot.prototype,
  ({ name, dtype }) => `ScalarSlot ${name} of ${dtype}`,
  ({ name, dtype }) => ({ name, dtype }),
);
describeAs(
  ArraySlot.prototype,
  ({ name, dtype, rank, access }) => `ArraySlot ${name} of ${dtype}, rank ${rank}, ${access}`,
  ({ name, dtype, rank, access }) => ({ name, dtype, rank, access }),
);

function noValue(name: string): StateError {
  const message = `Slot ${name} has no value: each launch of the graph gives one. Pass the slot itself to a kernel, and compute there.`;
  return new StateError('ERR_MILLRACE_STATE', message);
}

/** The slots that the body of a capture gets, one for each declared parameter. */
export type GraphSlots<P extends Params> = {
  readonly [K in keyof P]: P[K] extends Scalar<infer D>
    ? ScalarSlot<D>
    : P[K] extends ArrayParam<infer D, infer A>
      ? ArraySlot<D, A>
      : never;
};

/** Throws ArgumentError for parameters that a graph cannot have. */
export function checkParams(params: unknown): Params {
  if (typeof params !== 'object' || params === null)
    throw badArgument(
      'params',
      params,
      `The first argument of the capture (${show(params)}) is neither a function nor an object of parameters.`,
    );
  for (const [name, param] of Object.entries(params as Readonly<Record<string, unknown>>)) {
    const { kind, dtype } = (param ?? {}) as Partial<Param>;
    if ((kind !== 'scalar' && kind !== 'array') || !isDType(dtype)) {
      const example = '{ dt: f32, x: inout(f32) }';
      const order = OPTIONS.has(name) ? ' Options come after the function.' : '';
      const what = `Parameter ${name} of the graph (${show(param)}) is not a type: declare types as in ${example}${passTheType(param)}.`;
      throw badArgument(name, param, `${what}${order}`);
    }
  }
  return params as Params;
}

/** Options of `capture`, which some callers pass in front. */
const OPTIONS: ReadonlySet<string> = new Set(['label', 'strict', 'timing']);

/** The slots of these parameters, for a graph of this device. */
export function slotsOf<P extends Params>(params: P, core: OrderedDevice): GraphSlots<P> {
  const entries = Object.entries(params).map(([name, param]: [string, Param]) => [
    name,
    param.kind === 'array' ? new ArraySlot(name, param, core) : new ScalarSlot(name, param.dtype),
  ]);
  return Object.freeze(Object.fromEntries(entries)) as GraphSlots<P>;
}

/** The entries of a launch that the slot takes: a scalar one, an array one and one for each dimension. */
export function entriesOf(slot: ScalarSlot | ArraySlot): number {
  return slot instanceof ArraySlot ? 1 + slot.rank : 1;
}

/** Stands in a capture for the array that a launch gives. */
export class SlotMemory extends TrackedMemory {
  readonly core: OrderedDevice;
  readonly #name: string;
  /** Along each dimension, how many elements the nodes write that write each element of the array. */
  readonly #covered: number[] = [];

  constructor(name: string, core: OrderedDevice) {
    super(1);
    this.core = core;
    this.#name = name;
  }

  /** A node writes an element for each of `threads` indices of the dimension. */
  cover(dimension: number, threads: number): void {
    this.#covered[dimension] = Math.min(this.#covered[dimension] ?? threads, threads);
  }

  /** Do these nodes write all of an array of this shape? */
  isCovered(shape: readonly number[]): boolean {
    return this.#covered.every((threads, dimension) => (shape[dimension] as number) <= threads);
  }

  get label(): string {
    return `of slot ${this.#name}`;
  }
}

/** The number of the slot's first entry, for a launch of this kernel. Throws ArgumentError if the slot does not fit the parameter. */
export function entryOf(
  { core, timeline }: { readonly core: OrderedDevice; readonly timeline: Timeline },
  slot: ScalarSlot | ArraySlot,
  param: PlanParam,
  kernel: string,
): number {
  const what = `Argument ${param.name} of kernel ${kernel} is slot ${slot.name}`;
  const entry = timeline.recording?.entryOf(slot);
  if (entry === undefined) {
    const where = timeline.recording === undefined ? 'outside of a capture' : 'of another capture';
    throw badArgument(param.name, slot, `${what} ${where}: use a slot only in the capture that it belongs to.`);
  }
  if (slot.dtype !== param.dtype)
    throw badArgument(param.name, slot, `${what} of dtype ${slot.dtype}; the kernel takes ${param.dtype}.`, param.dtype);
  if (slot instanceof ScalarSlot) {
    if (param.form === Form.ARRAY) throw badArgument(param.name, slot, `${what}, which is a scalar; the kernel takes an array.`);
    return entry;
  }
  if (slot.memory.core !== core) {
    const message = `${what} for arrays of device ${slot.memory.core.name}, which launches the graph; the kernel runs on ${core.name}.`;
    throw wrongDevice(param.name, slot, message);
  }
  if (slot.rank !== param.rank) {
    throw badArgument(param.name, slot, `${what} with ${slot.rank} dimensions; the kernel takes ${param.rank}.`, param.rank);
  }
  const allowed = slot.access === 'in' ? AccessBits.READ : slot.access === 'out' ? AccessBits.WRITE : AccessBits.READ_WRITE;
  if ((param.access & ~allowed) !== 0) {
    const declared = `declared by ${slot.access === 'inout' ? 'inout' : `${slot.access}put`}`;
    throw badArgument(
      param.name,
      slot,
      `${what}, ${declared}; the kernel ${(param.access & AccessBits.WRITE) !== 0 ? 'writes' : 'reads'} it.`,
    );
  }
  return entry;
}
