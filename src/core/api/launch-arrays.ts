// The arrays among a launch's arguments: checks them, and writes the entries of slots and null pointers.
// Thread: owner.
import { Access } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show } from '../base/arguments.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { ArraySlot, entryOf } from '../graphs/slots.js';
import type { KernelPlan, PlanParam } from '../kernels/kernel-plan.js';
import { MAX_EXTENT } from '../kernels/launch-geometry.js';
import type { Field } from '../kernels/value-params.js';
import type { GivenBytes, RecordAccesses } from '../ordering/access-tracker.js';
import type { SlotUse } from '../timeline/timeline.js';
import { StridedArray } from './strided-array.js';
import { Surface, Texture } from './texture.js';

/** The array; undefined for a slot, and for null where the parameter allows it. */
export function checkArray(value: unknown, param: PlanParam, core: DeviceCore, plan: KernelPlan): StridedArray | undefined {
  const isArray = value instanceof StridedArray;
  if (isArray && value.kind === param.taken && value.kind !== undefined && !value.isDisposed) return value;
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
  throw badArray(value, param, core, plan);
}

/** The access for the record: a kernel that writes a part of a memory leaves the rest as it is. */
export function recordedAccess({ byteLength, storage }: StridedArray, access: number): number {
  return access === Access.WRITE && byteLength !== storage.byteLength ? access | Access.PART : access;
}

/** Writes the entries of an array parameter that a slot fills in. Returns the number of entries then. */
export function arraySlotArgs(
  { core, timeline }: StreamContext,
  record: RecordAccesses,
  param: PlanParam,
  { name, isShaped }: KernelPlan,
  value: unknown,
  slots: SlotUse[],
  at: number,
): number {
  const slot = value as ArraySlot;
  const entry = entryOf({ core, timeline }, slot, param, name);
  slots.push({ arg: at, entry });
  core.encoder.memoryArg(at++, param.access, 0, 0);
  const dimensions = isShaped ? param.rank : 0;
  for (let axis = 0; axis < dimensions; axis++) {
    slots.push({ arg: at, entry: entry + 1 + axis });
    core.encoder.intArg(at++, 4, 0, 0);
  }
  record.add(slot.memory, 0, 1, (param.access & Access.WRITE) !== 0);
  return at;
}

/** The bytes that a launch gets for its parameters, by their names in messages. Reads the arguments again, for a message only. */
export function givenBytes(plan: KernelPlan, args: Readonly<Record<string, unknown>>): GivenBytes[] {
  const given: GivenBytes[] = [];
  const see = (name: string, field: Field | undefined, value: unknown, access: number): void => {
    const isWrite = (access & Access.WRITE) !== 0;
    if (value instanceof StridedArray) {
      const { storage: memory, byteOffset: start, byteLength } = value;
      given.push({ name, memory, start, end: start + byteLength, isWrite });
    } else if (value instanceof ArraySlot) given.push({ name, memory: value.memory, start: 0, end: 1, isWrite });
    else if (value instanceof Texture || value instanceof Surface) {
      const { storage: memory, byteOffset: start, byteLength } = value instanceof Surface ? value.texture : value;
      given.push({ name, memory, start, end: start + byteLength, isWrite: value instanceof Surface });
    } else if (typeof value === 'object' && value !== null) {
      const fields = field?.kind === 'struct' ? Object.entries(field.fields) : [];
      for (const [key, inner] of fields) see(`${name}.${key}`, inner, (value as Readonly<Record<string, unknown>>)[key], accessOf(inner));
      if (field?.kind !== 'fixed') return;
      for (let i = 0; i < field.length; i++) see(`${name}[${i}]`, field.element, (value as ArrayLike<unknown>)[i], accessOf(field.element));
    }
  };
  for (const { name, value, access } of plan.params) see(name, value, args[name], access);
  return given;
}

function accessOf(field: Field): number {
  const array = field.kind === 'optional' ? field.array : field;
  return array.kind === 'array' && array.access !== 'in' ? Access.READ_WRITE : Access.READ;
}

function badArray(value: unknown, param: PlanParam, core: DeviceCore, plan: KernelPlan): Error {
  const { name } = param;
  const what = `Argument ${name} of kernel ${plan.name}`;
  if (value === undefined) return badArgument(name, value, `${what} is missing.`);
  const hint = value === null && !plan.isShaped ? ' A null pointer needs optional(...) around the parameter.' : '';
  if (!(value instanceof StridedArray)) return badArgument(name, value, `${what} (${show(value)}) is not a device array.${hint}`);
  if (value.isDisposed) return value.disposedError();
  if (value.core !== core) {
    return badArgument(name, value, `${what} ${belongsTo(value.core.name, core.name)}.`, core.name);
  }
  if (value.dtype !== param.dtype)
    return badArgument(name, value, `${what} has dtype ${value.dtype}; the kernel takes ${param.dtype}.`, param.dtype);
  if (!value.isContiguous) {
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
