// Events and memory that other processes open, or have made: cuIpc. CUDA only, because the CPU device's memory is this process's.
// Thread: owner.
import { types } from 'node:util';
import { AllocKind, IPC_HANDLE_BYTES, EventKind, MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import type { DType } from '../elements/dtype.js';
import { checkBytes } from '../elements/shape.js';
import { checkInterprocess } from '../events/event-options.js';
import { EventHandle } from '../events/event-handles.js';
import { noteExportable } from '../memory/interprocess-memory.js';
import { Storage } from '../memory/storage.js';
import { DeviceArray } from './array.js';
import type { Device } from './device.js';
import { DeviceEvent } from './event.js';

/** `device.openIpcEvent`. */
export async function openIpcEvent(device: Device, handle: Uint8Array): Promise<DeviceEvent> {
  const { core } = device;
  checkInterprocess(core, 'events');
  const bytes = checkHandle(handle);
  const eventHandle = new EventHandle(core, EventKind.INTERPROCESS);
  try {
    await core.channel.ask('openEvent', eventHandle.handle, bytes);
    eventHandle.bind();
    return new DeviceEvent(device, core, { interprocess: true }, eventHandle);
  } catch (error) {
    eventHandle.letGo();
    throw error;
  }
}

/** `device.interprocess`. */
export function makeIpcArray<D extends DType>(device: Device, shape: readonly number[], dtype: D): DeviceArray<D> {
  checkInterprocess(device.core, 'memory');
  const { stream } = device;
  const array = stream.allocate(shape, dtype, AllocKind.INTERPROCESS);
  noteExportable(array.storage, { timeline: stream.timeline, ticket: stream.timeline.last });
  return array;
}

/** `device.openIpcArray`. */
export async function openIpcArray<D extends DType>(
  device: Device,
  handle: Uint8Array,
  shape: readonly number[],
  dtype: D,
): Promise<DeviceArray<D>> {
  const { core } = device;
  checkInterprocess(core, 'memory');
  const ipc = checkHandle(handle);
  const bytes = checkBytes(shape, dtype, core.info.totalMemoryBytes, core.name);
  const memory = core.memory.take();
  try {
    await core.channel.ask('openMemory', memory, ipc, Math.max(bytes, 1));
  } catch (error) {
    core.memory.giveBackNow(memory);
    throw error;
  }
  // Nobody has used it here: what other processes do with it is theirs to order.
  return new DeviceArray(device, dtype, shape, new Storage(MemorySpace.DEVICE, memory, 0, bytes, core), 0);
}

/** A copy, since it is on its way to the worker while the caller goes on. */
function checkHandle(handle: unknown): Uint8Array<ArrayBuffer> {
  if (!types.isUint8Array(handle)) {
    throw badArgument('handle', handle, `The handle (${show(handle)}) is not a Uint8Array from ipcHandle().`);
  }
  if (handle.byteLength !== IPC_HANDLE_BYTES) {
    const message = `The handle's length (${handle.byteLength} bytes) is not that of an interprocess handle (${IPC_HANDLE_BYTES} bytes).`;
    throw badArgument('handle', handle, message, IPC_HANDLE_BYTES);
  }
  return new Uint8Array(handle);
}
