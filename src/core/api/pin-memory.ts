// `device.pin`: page-locks existing memory.
// Thread: owner.
import { types } from 'node:util';
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import { plainView } from '../base/buffers.js';
import { checkHostBytes } from '../base/host-bytes.js';
import { StateError } from '../base/errors.js';
import { refuseApart } from '../base/apart.js';
import type { DeviceCore } from '../device/device-core.js';
import { dtypeOfHost, type HostArray, type HostOf } from '../elements/dtype.js';
import { Storage } from '../memory/storage.js';
import { PinnedArray } from './pinned.js';

/**
 * Page-locks a typed array over a SharedArrayBuffer. Throws StateError if the memory is page-locked already, or was and a copy that uses it
 * has not finished.
 */
export function pinExisting(core: DeviceCore, data: unknown): PinnedArray {
  const dtype = dtypeOfHost(data);
  if (dtype === undefined) throw badArgument('data', data, `The data to pin (${show(data)}) is not a typed array.`);
  const { buffer, byteOffset, byteLength, length } = plainView(data as HostArray);
  if (!types.isSharedArrayBuffer(buffer)) {
    const why = 'JavaScript could detach or resize it while the device uses it';
    throw badArgument('data', data, `The data to pin (${show(data)}) is a view of an ArrayBuffer, not of a SharedArrayBuffer: ${why}.`);
  }
  checkHostBytes('data', 'bytes to pin', byteLength);
  if (byteLength > 0 && core.arena.isLocked(buffer, byteOffset, byteLength)) {
    const message = `The memory to pin is already page-locked for device ${core.name}, or copies that use it have not finished.`;
    throw new StateError('ERR_MILLRACE_STATE', message, { device: core.name });
  }
  refuseApart(core, 'The use of memory that the library did not make');
  // Zero bytes have no page to lock.
  const block = byteLength === 0 ? core.arena.takePinned(0) : core.arena.adopt(buffer, byteOffset, byteLength, true);
  const storage = new Storage(MemorySpace.HOST, block.handle, block.handleOffset, byteLength, core);
  storage.isPinned = true;
  return new PinnedArray(
    core,
    dtype,
    Object.freeze([length]),
    storage,
    block,
    0,
    undefined,
    data as HostOf<SharedArrayBuffer>[typeof dtype],
  );
}
