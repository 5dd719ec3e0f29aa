// Structs, vectors and bytes among a launch's arguments: writes their bytes, and an entry for each pointer in them.
//
// The bytes are collected in memory of their own, because a getter of a value may submit other records.
// Thread: owner.
import { Access } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import { plainView, typedArrayName } from '../base/buffers.js';
import { didYouMean } from '../base/nearest-name.js';
import type { StreamContext } from '../device/stream-context.js';
import { type DType, DTYPES, type HostArray } from '../elements/dtype.js';
import { scalarBits } from '../elements/scalar-bits.js';
import { ArraySlot, entryOf, ScalarSlot } from '../graphs/slots.js';
import { arrayPlanParam, type KernelPlan, type PlanParam } from '../kernels/kernel-plan.js';
import type { LaunchGeometry } from '../kernels/launch-geometry.js';
import type { ArrayParam } from '../kernels/params.js';
import { type Field, spaceOf, type StructParam, type ValueParam } from '../kernels/value-params.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import type { SlotUse } from '../timeline/timeline.js';
import { checkArray, recordedAccess } from './launch-arrays.js';
import { elsewhereArgs } from './launch-elsewhere.js';
import { textureMember } from './launch-textures.js';
import type { PinnedArray } from './pinned.js';
import type { StridedArray } from './strided-array.js';

const AXES = ['x', 'y', 'z', 'w'] as const;
const DIM3_AXES = 3;

/** Writes the values of one launch. */
export class ValueWriter {
  /** The bytes that follow the entries of the record. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  readonly #site: StreamContext;
  readonly #record: RecordAccesses;
  readonly #plan: KernelPlan;
  readonly #geometry: LaunchGeometry;
  readonly #slots: SlotUse[];
  /** The number of the next entry. */
  #next = 0;
  /** Where the present parameter begins in `bytes`. */
  #place = 0;

  constructor(site: StreamContext, record: RecordAccesses, plan: KernelPlan, geometry: LaunchGeometry, slots: SlotUse[]) {
    this.#site = site;
    this.#record = record;
    this.#plan = plan;
    this.#geometry = geometry;
    this.#slots = slots;
    this.bytes = new Uint8Array(plan.valueBytes);
    this.#view = new DataView(this.bytes.buffer);
  }

  /** Writes a parameter, whose first entry has number `at`. Returns the number of the next one. */
  write({ name, value: type, byteSize, place }: PlanParam, value: unknown, at: number): number {
    if (value === undefined) throw badArgument(name, value, `Argument ${name} of kernel ${this.#plan.name} is missing.`);
    this.#next = at;
    this.#place = place;
    this.#site.core.encoder.bytesArg(this.#next++, byteSize, place);
    this.#field(type as ValueParam, value, name, 0);
    return this.#next;
  }

  /** `at` counts from the beginning of the parameter. */
  #field(type: Field, value: unknown, path: string, at: number): void {
    switch (type.kind) {
      case 'scalar':
        if (value instanceof ScalarSlot) throw this.#noSlot(value, path);
        return this.#scalar(type.dtype, value, path, at);
      case 'vector':
        return this.#vector(type.dtype, type.size, value, path, at);
      case 'dim3':
        return this.#dim3(value, path, at);
      case 'bytes':
        return this.#bytes(type.byteSize, value, path, at);
      case 'struct':
        return this.#struct(type, value, path, at);
      case 'fixed': {
        const { element, length } = type;
        const { byteSize } = spaceOf(element);
        const list = this.#list(value, path, length, `${length} elements`);
        if (element.kind === 'scalar' && this.#host(element.dtype, list, at)) return;
        for (let i = 0; i < length; i++) this.#field(element, list[i], `${path}[${i}]`, at + i * byteSize);
        return;
      }
      case 'texture':
      case 'surface': {
        const use = { site: this.#site, record: this.#record, kernel: this.#plan.name };
        this.#next = textureMember(use, type.kind, value, path, at, this.#next);
        return;
      }
      case 'array':
        return this.#pointer(type, false, value, path, at);
      default:
        return this.#pointer(type.array, true, value, path, at);
    }
  }

  #scalar(dtype: DType, value: unknown, path: string, at: number): void {
    const to = this.#place + at;
    if (typeof value === 'number') {
      if (dtype === 'f32') return this.#view.setFloat32(to, value, true);
      if (dtype === 'f64') return this.#view.setFloat64(to, value, true);
      if (dtype === 'i32' && (value | 0) === value) return this.#view.setInt32(to, value, true);
    }
    const { low, high } = scalarBits(dtype, value, path);
    switch (DTYPES[dtype].byteSize) {
      case 1:
        return this.#view.setUint8(to, low);
      case 2:
        return this.#view.setUint16(to, low, true);
      case 8:
        this.#view.setUint32(to + 4, high, true);
    }
    this.#view.setUint32(to, low, true);
  }

  /** Writes a typed array of the element type as it is: f16 as raw bits. Returns false for another list. */
  #host(dtype: DType, list: ArrayLike<unknown>, at: number): boolean {
    if (typedArrayName(list) !== DTYPES[dtype].make.name) return false;
    const { buffer, byteOffset, byteLength } = plainView(list as HostArray);
    const given = new Uint8Array(buffer, byteOffset, byteLength);
    this.bytes.set(dtype === 'bool' ? given.map((byte) => (byte === 0 ? 0 : 1)) : given, this.#place + at);
    return true;
  }

  #vector(dtype: DType, size: number, value: unknown, path: string, at: number): void {
    const { byteSize } = DTYPES[dtype];
    const what = `[${AXES.slice(0, size).join(', ')}] or an object with ${AXES.slice(0, size).join(', ')}`;
    const components = isList(value) ? this.#list(value, path, size, what) : this.#members(value, AXES.slice(0, size), path, what);
    if (this.#host(dtype, components, at)) return;
    for (let i = 0; i < size; i++) {
      const component = `${path}.${AXES[i]}`;
      if (components[i] instanceof ScalarSlot) throw this.#noSlot(components[i] as ScalarSlot, component);
      this.#scalar(dtype, components[i], component, at + i * byteSize);
    }
  }

  #dim3(value: unknown, path: string, at: number): void {
    const axes = AXES.slice(0, DIM3_AXES);
    let given: ArrayLike<unknown> = [value];
    if (isList(value)) {
      given = plain(value);
      if (given.length > DIM3_AXES) this.#list(value, path, DIM3_AXES, '');
    } else if (typeof value === 'object' && value !== null && !isSlot(value)) {
      this.#refuseOthers(value, axes, path);
      given = axes.map((axis) => (value as Readonly<Record<string, unknown>>)[axis]);
    }
    for (let i = 0; i < DIM3_AXES; i++) {
      if (given[i] instanceof ScalarSlot) throw this.#noSlot(given[i] as ScalarSlot, path);
      this.#scalar('u32', given[i] === undefined ? 1 : given[i], `${path}.${AXES[i]}`, at + i * 4);
    }
  }

  #bytes(byteSize: number, value: unknown, path: string, at: number): void {
    const name = typedArrayName(value);
    if (name !== 'Uint8Array' && name !== 'Uint8ClampedArray') throw this.#wrong(value, path, `a Uint8Array of ${byteSize} bytes`);
    const given = plainView(value as Uint8Array);
    if (given.length !== byteSize) {
      const message = `Argument ${path} of kernel ${this.#plan.name} has ${given.length} bytes; the kernel takes ${byteSize}.`;
      throw badArgument(path, given.length, message, byteSize);
    }
    this.bytes.set(given, this.#place + at);
  }

  #struct({ fields, offsets }: StructParam, value: unknown, path: string, at: number): void {
    const names = Object.keys(fields);
    if (isList(value)) throw this.#wrong(value, path, `an object with ${names.join(', ')}`);
    const members = this.#members(value, names, path, `an object with ${names.join(', ')}`);
    for (const [i, name] of names.entries())
      this.#field(fields[name] as Field, members[i], `${path}.${name}`, at + (offsets[name] as number));
  }

  #pointer(type: ArrayParam, isOptional: boolean, value: unknown, path: string, at: number): void {
    const { core, timeline } = this.#site;
    const param = arrayPlanParam(path, type, isOptional);
    const array = checkArray(value, param, core, this.#plan);
    if (array !== undefined) {
      const { storage, byteOffset, byteLength } = array;
      const access = recordedAccess(array, param, this.#plan, this.#geometry);
      core.encoder.memberArg(this.#next++, access, at, storage.handle, storage.base + byteOffset);
      const [isWrite, isRead] = [(param.access & Access.WRITE) !== 0, (param.access & Access.READ) !== 0];
      this.#record.add(storage, byteOffset, byteOffset + byteLength, isWrite, isRead, path);
    } else if (value instanceof ArraySlot) {
      this.#slots.push({ arg: this.#next, entry: entryOf({ core, timeline }, value, param, this.#plan.name) });
      core.encoder.memberArg(this.#next++, param.access, at, 0, 0);
      const isWrite = (param.access & Access.WRITE) !== 0;
      this.#record.add(value.memory, 0, 1, isWrite, !isWrite, path);
    } else if (value !== null) {
      const given = value as StridedArray | PinnedArray;
      this.#next = elsewhereArgs(this.#site, this.#record, param, this.#plan, this.#geometry, given, this.#next, at);
    }
  }

  /** A list of exactly this length. */
  #list(value: unknown, path: string, length: number, what: string): ArrayLike<unknown> {
    if (!isList(value)) throw this.#wrong(value, path, `a list of ${what}`);
    const list = plain(value);
    if (list.length === length) return list;
    const message = `Argument ${path} of kernel ${this.#plan.name} has ${list.length} elements; the kernel takes ${length}.`;
    throw badArgument(path, list.length, message, length);
  }

  /** The members with these names, which are all that the object has. */
  #members(value: unknown, names: readonly string[], path: string, what: string): readonly unknown[] {
    if (typeof value !== 'object' || value === null || isSlot(value)) throw this.#wrong(value, path, what);
    const members = names.map((name) => {
      const member = (value as Readonly<Record<string, unknown>>)[name];
      if (member !== undefined) return member;
      this.#refuseOthers(value, names, path);
      throw badArgument(`${path}.${name}`, member, `Argument ${path}.${name} of kernel ${this.#plan.name} is missing.`);
    });
    let given = 0;
    for (const _ in value) given++;
    if (given !== names.length) this.#refuseOthers(value, names, path);
    return members;
  }

  #refuseOthers(value: object, names: readonly string[], path: string): void {
    const given = Object.keys(value);
    const other = given.find((key) => !names.includes(key));
    if (other === undefined) return;
    const hint = didYouMean(
      other.slice(0, 80),
      names.filter((name) => !given.includes(name)),
    );
    const has = `${path} of kernel ${this.#plan.name} has ${names.join(', ')}`;
    throw badArgument(`${path}.${show(other)}`, value, `Argument ${path} has no field ${show(other)}${hint}: ${has}.`);
  }

  #wrong(value: unknown, path: string, what: string): Error {
    if (value instanceof ScalarSlot) return this.#noSlot(value, path);
    if (value === undefined) return badArgument(path, value, `Argument ${path} of kernel ${this.#plan.name} is missing.`);
    return badArgument(path, value, `Argument ${path} of kernel ${this.#plan.name} (${show(value)}) is not ${what}.`);
  }

  #noSlot(slot: ScalarSlot, path: string): Error {
    const { timeline } = this.#site;
    const what = `slot ${slot.name} is argument ${path} of kernel ${this.#plan.name}, and a scalar in a struct or vector is fixed at the capture`;
    if (timeline.recording !== undefined) return timeline.recording.refusal(timeline, 'unsupported-node', what);
    return badArgument(path, slot, `Argument ${path} of kernel ${this.#plan.name} is slot ${slot.name} outside of a capture.`);
  }
}

function isSlot(value: unknown): boolean {
  return value instanceof ScalarSlot || value instanceof ArraySlot;
}

function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || typedArrayName(value) !== undefined;
}

function plain(list: ArrayLike<unknown>): ArrayLike<unknown> {
  return typedArrayName(list) === undefined ? list : (plainView(list as HostArray) as ArrayLike<unknown>);
}
