// The hot path: checks a launch's arguments, writes them into the encoder's record block, orders the launch after the records that it
// conflicts with, and submits it. A launch uses the scratch space of the tracker and of its device, so it allocates only its Operation.
//
// Arguments are checked while they are written, so a launch that throws has written half a record and changed nothing. A getter of the
// shape or of an argument may submit other records: the tracker restores the half-written one, and a launch from a getter has a
// LaunchGeometry of its own.
// Thread: owner.
import { Access } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import { ArgumentError } from '../base/errors.js';
import { didYouMean } from '../base/nearest-name.js';
import type { StreamContext } from '../device/stream-context.js';
import { scalarBits } from '../elements/scalar-bits.js';
import { entryOf, ScalarSlot } from '../graphs/slots.js';
import { Form, type KernelPlan, type PlanParam } from '../kernels/kernel-plan.js';
import type { LaunchShape } from '../kernels/kernel.js';
import { LaunchGeometry } from '../kernels/launch-geometry.js';
import { variablesOf } from '../memory/module-variables.js';
import type { Operation } from '../operations/operation.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import type { SlotUse } from '../timeline/timeline.js';
import { checkArray, recordedAccess } from './launch-arrays.js';
import { otherArrayArgs } from './launch-elsewhere.js';
import { textureArgs } from './launch-textures.js';
import { ValueWriter } from './launch-values.js';

const POINTER_BYTES = 8;
/** A longer name is shortened in messages. */
const MAX_NAME = 80;
// V8 folds constants of this module into a function. It loads and checks an imported object at each use: ten instructions for `Form.ARRAY`.
const { ARRAY, F32, F64, I32, SURFACE, TEXTURE, U32, VALUE } = Form;
const { READ, WRITE } = Access;
/** A launch outside of a capture has no slots. */
const NO_SLOTS: SlotUse[] = [];

/** The stream that a launch is submitted to. */
export interface LaunchContext extends StreamContext {
  /** Makes the Operation of the launch that was submitted. */
  launched(ticket: number, label: string): Operation;
}

export function submitLaunch(
  site: LaunchContext,
  plan: KernelPlan,
  shape: LaunchShape,
  args: Readonly<Record<string, unknown>>,
): Operation {
  const { core, timeline } = site;
  const record = core.tracker.begin(site);
  let ticket: number;
  let label: string;
  try {
    const geometry = record.isNested ? new LaunchGeometry() : plan.geometry;
    geometry.measure(shape, plan, core.info, core.name);
    const slots: SlotUse[] = timeline.recording === undefined ? NO_SLOTS : [];
    const entries = writeArguments(site, record, plan, geometry, args, slots);
    label = geometry.label ?? plan.name;
    if (geometry.isEmpty) {
      ticket = core.submit(timeline, core.encoder.nop(timeline.slot));
      record.abandon();
    } else {
      if (plan.looks > 0 || site.ordering === 'checked') lookForSameBytes(record, plan, label);
      record.order('launch', label);
      const { grid, block } = geometry;
      const bytes = core.encoder.launch(
        timeline.slot,
        plan.handle,
        entries,
        grid[0],
        grid[1],
        grid[2],
        block[0],
        block[1],
        block[2],
        geometry.sharedBytes,
        geometry.flags,
        plan.valueBytes,
      );
      ticket = core.submit(timeline, bytes);
      record.commit(ticket);
      if (slots !== NO_SLOTS) {
        if (slots.length > 0) timeline.recording?.takeSlots(timeline, slots);
        // The slot is the last argument: kernels of modules, which have further ones, are not compiled from TypeScript.
        if (plan.syncsGrid) timeline.recording?.takeBarrier(timeline, entries - 1);
      }
    }
  } catch (error) {
    record.abandon();
    throw misnamed(error, args, plan) ?? error;
  }
  return site.launched(ticket, label);
}

/** Later launches of a kernel are rarely of another kind, and each would pay for the look. */
function lookForSameBytes(record: RecordAccesses, plan: KernelPlan, label: string): void {
  plan.looks--;
  record.checkSameBytes(label);
}

/** Writes the arguments behind the fixed part of the record. Returns the number of entries. */
function writeArguments(
  site: StreamContext,
  record: RecordAccesses,
  plan: KernelPlan,
  geometry: LaunchGeometry,
  args: Readonly<Record<string, unknown>>,
  slots: SlotUse[],
): number {
  const { core } = site;
  const { encoder } = core;
  const { params, isShaped } = plan;
  let at = 0;
  if (typeof args !== 'object' || args === null)
    throw badArgument('args', args, `The arguments of kernel ${plan.name} (${show(args)}) are not an object.`);
  const values = plan.valueBytes > 0 ? new ValueWriter(site, record, plan, geometry, slots) : undefined;
  // Most launches name the arguments in the order of the parameters. `for in` then takes a fifth of the 110 instructions that a read by name
  // takes here, where every launch of every kernel comes by with an object of a shape of its own.
  let next = 0;
  let isInOrder = true;
  for (const name in args) {
    if (next >= params.length || (params[next] as PlanParam).name !== name) {
      isInOrder = false;
      break;
    }
    at = writeArgument(site, record, plan, geometry, params[next++] as PlanParam, args[name], slots, values, at);
  }
  if (!isInOrder || next < params.length) {
    for (; next < params.length; next++) {
      const param = params[next] as PlanParam;
      at = writeArgument(site, record, plan, geometry, param, args[param.name], slots, values, at);
    }
    let given = 0;
    for (const _ in args) given++;
    if (given !== params.length) throw surplusArgument(args, plan);
  }
  if (isShaped) {
    const { extent } = geometry;
    encoder.intArg(at++, 4, extent[0], 0);
    encoder.intArg(at++, 4, extent[1], 0);
    encoder.intArg(at++, 4, extent[2], 0);
    if (plan.syncsGrid) encoder.intArg(at++, 4, site.timeline.slot, 0);
  }
  if (plan.module !== undefined) at = variablesOf(core, plan.module).addTo(record, encoder, at);
  if (values !== undefined) encoder.behindArgs(at, values.bytes);
  return at;
}

/** Writes the entries of one argument, the first one at `at`. Returns the number of entries then. */
function writeArgument(
  site: StreamContext,
  record: RecordAccesses,
  plan: KernelPlan,
  geometry: LaunchGeometry,
  param: PlanParam,
  value: unknown,
  slots: SlotUse[],
  values: ValueWriter | undefined,
  at: number,
): number {
  const { core } = site;
  const { encoder } = core;
  switch (param.form) {
    case ARRAY: {
      const array = checkArray(value, param, core, plan);
      if (array === undefined) {
        if (value !== null) return otherArrayArgs(site, record, param, plan, geometry, value, slots, at);
        encoder.intArg(at, POINTER_BYTES, 0, 0);
        return at + 1;
      }
      const { storage, byteOffset: start, byteLength: bytes } = array;
      const { access } = param;
      // A call costs 20 instructions.
      const recorded = access === WRITE ? recordedAccess(array, param, plan, geometry) : access;
      encoder.memoryArg(at++, recorded, storage.handle, storage.base + start);
      if (plan.isShaped) for (const dimension of array.shape) encoder.intArg(at++, 4, dimension, 0);
      record.add(storage, start, start + bytes, (access & WRITE) !== 0, (access & READ) !== 0, param.name);
      return at;
    }
    case F32:
      if (typeof value === 'number') encoder.f32Arg(at, value);
      else scalarSlotArg(site, param, plan, value, slots, at);
      return at + 1;
    case F64:
      if (typeof value === 'number') encoder.f64Arg(at, value);
      else scalarSlotArg(site, param, plan, value, slots, at);
      return at + 1;
    case I32:
      if (typeof value === 'number' && (value | 0) === value) encoder.intArg(at, 4, value, 0);
      else scalarSlotArg(site, param, plan, value, slots, at);
      return at + 1;
    case U32:
      if (typeof value === 'number' && value >>> 0 === value) encoder.intArg(at, 4, value, 0);
      else scalarSlotArg(site, param, plan, value, slots, at);
      return at + 1;
    case TEXTURE:
    case SURFACE:
      return textureArgs({ site, record, kernel: plan.name }, param.form === SURFACE ? 'surface' : 'texture', value, param.name, at);
    case VALUE:
      return (values as ValueWriter).write(param, value, at);
    default: {
      if (value === undefined || value instanceof ScalarSlot) {
        scalarSlotArg(site, param, plan, value, slots, at);
      } else {
        const { low, high } = scalarBits(param.dtype, value, param.name);
        encoder.intArg(at, param.byteSize, low, high);
      }
      return at + 1;
    }
  }
}

/** The argument that is no parameter, with the parameter that it may stand for: one that is missing, if there is one. */
function surplusArgument(args: object, { name: kernel, parameters }: KernelPlan): Error {
  if (Array.isArray(args)) return badArgument('args', args, `Kernel ${kernel} takes its arguments by name: { ${parameters.join(', ')} }.`);
  const given = Object.keys(args);
  const name = given.find((key) => !parameters.includes(key)) ?? 'args';
  const missing = parameters.filter((parameter) => !given.includes(parameter));
  const shown = name.length > MAX_NAME ? show(name) : name;
  const hint = name.length > MAX_NAME ? '' : didYouMean(name, missing);
  return badArgument(name, args, `Argument ${shown}${hint} is not a parameter of kernel ${kernel} (${parameters.join(', ')}).`);
}

/** The better error for a parameter that is missing because its argument has another name. */
function misnamed(error: unknown, args: object, plan: KernelPlan): Error | undefined {
  if (!(error instanceof ArgumentError) || error.value !== undefined || typeof args !== 'object' || args === null) return undefined;
  const given = Object.keys(args);
  if (given.includes(error.argument) || given.every((key) => plan.parameters.includes(key))) return undefined;
  return plan.parameters.includes(error.argument) ? surplusArgument(args, plan) : undefined;
}

/** Slow path: the value is a slot, or wrong. */
function scalarSlotArg(
  { core, timeline }: StreamContext,
  param: PlanParam,
  plan: KernelPlan,
  value: unknown,
  slots: SlotUse[],
  at: number,
): void {
  if (!(value instanceof ScalarSlot)) throw badScalar(param, value, plan);
  slots.push({ arg: at, entry: entryOf({ core, timeline }, value, param, plan.name) });
  core.encoder.intArg(at, param.byteSize, 0, 0);
}

/** Slow path: builds the error. */
function badScalar(param: PlanParam, value: unknown, plan: KernelPlan): Error {
  if (value === undefined) return badArgument(param.name, value, `Argument ${param.name} of kernel ${plan.name} is missing.`);
  scalarBits(param.dtype, value, param.name);
  return badArgument(param.name, value, `Argument ${param.name} of kernel ${plan.name} (${show(value)}) is not a ${param.dtype}.`);
}
