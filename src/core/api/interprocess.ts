// Events and memory of other processes: cuIpc. CUDA only, because the CPU device's memory is this process's.
// Thread: owner.
import { types } from 'node:util';
import { EventKind, IPC_HANDLE_BYTES, MemorySpace, PeerWhat } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import type { DeviceCore } from '../device/device-core.js';
import type { DType } from '../elements/dtype.js';
import { checkBytes } from '../elements/shape.js';
import { EventHandle } from '../events/event-handles.js';
import { checkInterprocess } from '../events/event-options.js';
import { Storage } from '../memory/storage.js';

/** `device.openIpcEvent`. */
export async function openIpcEvent(core: DeviceCore, handle: unknown): Promise<EventHandle> {
  checkInterprocess(core, 'events');
  const bytes = checkHandle(handle);
  const eventHandle = new EventHandle(core, EventKind.INTERPROCESS);
  try {
    await core.channel.ask('openEvent', eventHandle.handle, bytes);
    eventHandle.bind();
    return eventHandle;
  } catch (error) {
    eventHandle.release();
    throw error;
  }
}

/** `device.openIpcArray`: the memory of an array of this shape and dtype. */
export async function openIpcMemory(core: DeviceCore, handle: unknown, shape: readonly number[], dtype: DType): Promise<Storage> {
  checkInterprocess(core, 'memory');
  const ipc = checkHandle(handle);
  const bytes = checkBytes(shape, dtype, core.info.totalMemoryBytes, core.name);
  const memory = core.handles.memory.take();
  try {
    await core.channel.ask('openMemory', memory, ipc, Math.max(bytes, 1));
  } catch (error) {
    core.handles.memory.giveBackNow(memory);
    throw error;
  }
  // No stream of this process has used the memory. Other processes order their accesses themselves.
  const storage = new Storage(MemorySpace.DEVICE, memory, 0, bytes, core);
  storage.grant = PeerWhat.MEMORY;
  return storage;
}

/** A copy of the handle: the caller may change its array before the worker has the bytes. */
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
