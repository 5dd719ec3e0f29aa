// The arrays among a launch's arguments: checks them, and writes the entries of slots and null pointers.
// Thread: owner.
import { Access, MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { ArraySlot, entryOf } from '../graphs/slots.js';
import type { KernelPlan, PlanParam } from '../kernels/kernel-plan.js';
import { type LaunchGeometry, MAX_EXTENT } from '../kernels/launch-geometry.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import type { SlotUse } from '../timeline/timeline.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';

/**
 * The array; undefined for a slot, for null where the parameter allows it, and for an array that the device does not own, which is not
 * checked yet.
 */
export function checkArray(value: unknown, param: PlanParam, core: DeviceCore, plan: KernelPlan): StridedArray | undefined {
  const isArray = value instanceof StridedArray;
  if (isArray && value.kind === param.taken && !value.isDisposed) return value;
  if (
    isArray &&
    value.core === core &&
    value.dtype === param.dtype &&
    (!plan.isShaped || value.shape.length === param.rank) &&
    !value.isDisposed &&
    value.kind !== undefined
  ) {
    param.taken = value.kind;
    return value;
  }
  if (value instanceof ArraySlot || (value === null && param.isOptional)) return undefined;
  if (value instanceof PinnedArray || (isArray && value.core !== core)) return undefined;
  throw badArray(value, param, plan);
}

/**
 * The access for the record: what a kernel may read of an output decides on its poison as an input does, and a launch that leaves elements
 * of the memory as they are leaves their poison, too.
 */
export function recordedAccess(
  { shape, byteLength, storage }: StridedArray | PinnedArray,
  { access, output, byteSize }: PlanParam,
  { indexRank }: KernelPlan,
  geometry: LaunchGeometry,
): number {
  if (access !== Access.WRITE) return access;
  if (output === 'read') return Access.READ_WRITE;
  const isSingle = output === 'first' && byteLength === byteSize;
  const isWhole = output === 'whole' || isSingle || (output === 'own' && geometry.covers(shape, indexRank));
  // Pinned memory has no poison of a whole: each byte has its own.
  if (storage.space === MemorySpace.HOST) return isWhole ? access : Access.READ_WRITE;
  return isWhole && byteLength === storage.byteLength ? access : access | Access.PART;
}

/** The same for the node of a slot. What else depends on the array that a launch gives, the launch finds out. */
function recordedSlotAccess(
  { access, output, rank }: PlanParam,
  { indexRank }: KernelPlan,
  slot: ArraySlot,
  geometry: LaunchGeometry,
): number {
  if (access !== Access.WRITE || output === 'whole') return access;
  if (output === 'read') return Access.READ_WRITE;
  if (output === 'part') return access | Access.PART;
  for (let dimension = 0; dimension < rank; dimension++)
    slot.memory.cover(dimension, output === 'first' ? 1 : geometry.threadsAlong(indexRank - 1 - dimension));
  return access;
}

/** Writes the entries of an array parameter that a slot fills in. Returns the number of entries then. */
export function arraySlotArgs(
  { core, timeline }: StreamContext,
  record: RecordAccesses,
  param: PlanParam,
  plan: KernelPlan,
  geometry: LaunchGeometry,
  slot: ArraySlot,
  slots: SlotUse[],
  at: number,
): number {
  const entry = entryOf({ core, timeline }, slot, param, plan.name);
  slots.push({ arg: at, entry });
  core.encoder.memoryArg(at++, recordedSlotAccess(param, plan, slot, geometry), 0, 0);
  const dimensions = plan.isShaped ? param.rank : 0;
  for (let axis = 0; axis < dimensions; axis++) {
    slots.push({ arg: at, entry: entry + 1 + axis });
    core.encoder.intArg(at++, 4, 0, 0);
  }
  const isWrite = (param.access & Access.WRITE) !== 0;
  record.add(slot.memory, 0, 1, isWrite, !isWrite, param.name);
  return at;
}

function badArray(value: unknown, param: PlanParam, plan: KernelPlan): Error {
  const { name } = param;
  const what = `Argument ${name} of kernel ${plan.name}`;
  if (value === undefined) return badArgument(name, value, `${what} is missing.`);
  const hint = value === null && !plan.isShaped ? ' A null pointer needs optional(...) around the parameter.' : '';
  if (!(value instanceof StridedArray)) return badArgument(name, value, `${what} (${show(value)}) is not a device array.${hint}`);
  return value.isDisposed ? value.disposedError() : misfit(value, param, plan);
}

/** Throws ArgumentError if the kernel cannot take an array of this type, shape and layout. */
export function checkFits(array: StridedArray | PinnedArray, param: PlanParam, plan: KernelPlan): void {
  const isOfRank = !plan.isShaped || array.shape.length === param.rank;
  const isContiguous = array instanceof PinnedArray || array.isContiguous;
  if (array.dtype !== param.dtype || !isOfRank || !isContiguous || array.length > MAX_EXTENT) throw misfit(array, param, plan);
}

function misfit(value: StridedArray | PinnedArray, param: PlanParam, plan: KernelPlan): Error {
  const { name } = param;
  const what = `Argument ${name} of kernel ${plan.name}`;
  if (value.dtype !== param.dtype)
    return badArgument(name, value, `${what} has dtype ${value.dtype}; the kernel takes ${param.dtype}.`, param.dtype);
  if (value instanceof StridedArray && !value.isContiguous) {
    const strides = value.strides.join(', ');
    return badArgument(
      name,
      value,
      `${what} (${value.label} with strides [${strides}]) is not contiguous. Kernels take contiguous arrays: clone() it first.`,
    );
  }
  if (value.length > MAX_EXTENT) {
    return badArgument(name, value, `${what} has more elements (${value.length}) than a kernel can index (${MAX_EXTENT}).`, MAX_EXTENT);
  }
  return badArgument(name, value, `${what} has ${value.shape.length} dimensions; the kernel takes ${param.rank}.`, param.rank);
}
