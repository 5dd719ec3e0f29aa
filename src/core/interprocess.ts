// Events and memory that other processes open: cuIpc.
// Thread: owner.
import type { DeviceArray } from './array.js';
import type { Device } from './device.js';
import type { DType } from './dtype.js';
import { InternalError } from './errors.js';
import type { DeviceEvent } from './event.js';

export function openIpcEvent(_device: Device, _handle: Uint8Array): Promise<DeviceEvent> {
  throw new InternalError('ERR_MILLRACE_INTERNAL', 'openIpcEvent is not built yet.');
}

export function makeIpcArray<D extends DType>(_device: Device, _shape: readonly number[], _dtype: D): DeviceArray<D> {
  throw new InternalError('ERR_MILLRACE_INTERNAL', 'interprocess is not built yet.');
}

export function openIpcArray<D extends DType>(
  _device: Device,
  _handle: Uint8Array,
  _shape: readonly number[],
  _dtype: D,
): Promise<DeviceArray<D>> {
  throw new InternalError('ERR_MILLRACE_INTERNAL', 'openIpcArray is not built yet.');
}
