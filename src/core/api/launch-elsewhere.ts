// The arrays among a launch's arguments that its device does not own: arrays of other devices, which need a grant, and pinned arrays.
// Thread: owner.
import { Access, MemorySpace, PeerWhat } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo } from '../base/arguments.js';
import { refuseJoining } from '../base/apart.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { ArraySlot } from '../graphs/slots.js';
import type { KernelPlan, PlanParam } from '../kernels/kernel-plan.js';
import type { LaunchGeometry } from '../kernels/launch-geometry.js';
import type { Storage } from '../memory/storage.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import type { SlotUse } from '../timeline/timeline.js';
import { arraySlotArgs, checkFits, recordedAccess } from './launch-arrays.js';
import { PinnedArray } from './pinned.js';
import type { StridedArray } from './strided-array.js';

/** What `PeerUsers.revoking` calls the access of a device. */
export function revokingKey({ info }: DeviceCore, what: PeerWhat): string {
  return `${info.ordinal}:${what}`;
}

/** May kernels of this device use the memory of another one? What to call before they may; undefined if nothing helps, '' if they may. */
export function missingGrant(core: DeviceCore, { core: owner, grant: what }: Storage): string | undefined {
  if (owner.name === core.name || owner.channel.backend !== core.channel.backend) return undefined;
  if (what === undefined) return 'kernels of other devices cannot access variables of modules: copy it';
  if (owner.channel.isPeerGranted(core.info.ordinal, what) && !owner.peerUsers.revoking.has(revokingKey(core, what))) return '';
  return `call \`await owner.peers.grant(peer, '${what === PeerWhat.MEMORY ? 'memory' : 'pool'}')\` first, where owner is the Device ${owner.name} and peer the Device ${core.name}, or copy the array`;
}

/** Writes the entries of an array parameter whose value is not an array of the device. Returns the number of entries then. */
export function otherArrayArgs(
  site: StreamContext,
  record: RecordAccesses,
  param: PlanParam,
  plan: KernelPlan,
  geometry: LaunchGeometry,
  value: unknown,
  slots: SlotUse[],
  at: number,
): number {
  if (value instanceof ArraySlot) return arraySlotArgs(site, record, param, plan, geometry, value, slots, at);
  return elsewhereArgs(site, record, param, plan, geometry, value as StridedArray | PinnedArray, at);
}

/**
 * Writes the entries of an array that the stream's device does not own. `place`: of a pointer in a struct, where it is. Returns the number of
 * entries then. Throws ArgumentError for an array that the kernel cannot take, and in a capture CaptureError for one that a graph cannot.
 */
export function elsewhereArgs(
  site: StreamContext,
  record: RecordAccesses,
  param: PlanParam,
  plan: KernelPlan,
  geometry: LaunchGeometry,
  array: StridedArray | PinnedArray,
  at: number,
  place?: number,
): number {
  const { core } = site;
  const { encoder } = core;
  const { name } = param;
  const what = `Argument ${name} of kernel ${plan.name}`;
  if (array.isDisposed) throw array.disposedError();
  const { storage, byteOffset: start, byteLength: bytes } = array;
  const over = storage.core.refuseIfOver();
  if (over !== undefined) throw over;
  refuseJoining(core, storage.core, `A launch with argument ${name} of kernel ${plan.name}`);
  if (array instanceof PinnedArray) checkPinned(core, array, what, name);
  else if (!plan.isOfLibrary) checkGrant(site, array, what, name);
  checkFits(array, param, plan);
  encoder.elsewhereArg(at++, storage.core.channel.id, storage.space, bytes);
  const access = recordedAccess(array, param, plan, geometry);
  if (place === undefined) encoder.memoryArg(at++, access, storage.handle, storage.base + start);
  else encoder.memberArg(at++, access, place, storage.handle, storage.base + start);
  if (place === undefined && plan.isShaped) for (const dimension of array.shape) encoder.intArg(at++, 4, dimension, 0);
  record.add(storage, start, start + bytes, (param.access & Access.WRITE) !== 0, (param.access & Access.READ) !== 0, name);
  return at;
}

function checkPinned(core: DeviceCore, array: PinnedArray, what: string, name: string): void {
  const owner = array.core;
  if (owner.channel.backend === core.channel.backend) return;
  const instead = `A pinned array of ${core.name} is page-locked for it: make it with that device, or copy this one.`;
  throw badArgument(name, array, `${what} is a pinned array that ${belongsTo(owner.name, core.name)}. ${instead}`, core.name);
}

function checkGrant({ core, timeline }: StreamContext, array: StridedArray, what: string, name: string): void {
  const { storage } = array;
  const remedy = missingGrant(core, storage);
  if (remedy !== '') {
    const isOther = storage.core.channel.backend !== core.channel.backend;
    const instead = remedy === undefined ? (isOther ? `: copy it to ${core.name}` : '') : `: ${remedy}`;
    throw badArgument(name, array, `${what} ${belongsTo(storage.core.name, core.name)}${instead}.`, core.name);
  }
  if (timeline.recording === undefined || storage.grant === PeerWhat.POOL || storage.space !== MemorySpace.DEVICE) return;
  const why = `argument ${name} is memory of device ${storage.core.name} outside of its pool, which a graph cannot keep open; copy it in the capture`;
  throw timeline.recording.refusal(timeline, 'unsupported-node', why);
}
