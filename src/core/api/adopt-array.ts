// An array of another thread, by the token of its `share`: this thread gets a handle of its own for the memory, and the current stream
// waits on the device for that thread's uses. Each thread frees its handle, and the last free gives the memory back, after the uses of
// all.
//
// The handle is made on a stream that does nothing else, so that no work of this thread delays it: once the call has returned, the other
// thread may dispose its array.
// Thread: owner.
import { badArgument } from '../base/arguments.js';
import { checkArrayToken } from '../base/device-token.js';
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { checkDType, type DType, DTYPES } from '../elements/dtype.js';
import { checkShape } from '../elements/shape.js';
import { contiguousStrides, reachOf } from '../elements/strides.js';
import { Storage } from '../memory/storage.js';
import { DeviceArray } from './array.js';
import type { Device } from './device.js';
import type { Recorder } from './recorder.js';

/** `device.adopt`, on its current stream. Refused, it throws and nothing is left but waits. */
export function adoptArray(device: Device, stream: Recorder, given: unknown): DeviceArray {
  const token = checkArrayToken(given);
  const { core, timeline } = stream;
  if (token.key !== core.channel.address.key) {
    throw badArgument('token', given, `The token is of an array on another device than ${core.name} as it is open here.`);
  }
  const dtype = checkDType(token.dtype as DType);
  const shape = checkShape(token.shape);
  const [low, high] = reachOf({ shape, strides: token.strides ?? contiguousStrides(shape) });
  const { byteSize } = DTYPES[dtype];
  if (token.byteOffset + low * byteSize < 0 || token.byteOffset + high * byteSize > token.storageBytes) {
    throw badArgument('token', given, `The token names elements outside of its memory (${token.storageBytes} bytes).`);
  }
  core.checkRoom(timeline, token.uses.length + 2);
  const { encoder } = core;
  const adopting = core.adoptions.take();
  const handle = core.memory.take();
  try {
    core.submit(adopting, encoder.adopt(adopting.slot, handle, token.handle, Math.max(token.storageBytes, 1)));
  } catch (error) {
    core.memory.giveBackNow(handle);
    throw error;
  }
  const storage = new Storage(MemorySpace.DEVICE, handle, 0, token.storageBytes, core);
  let last: number;
  try {
    for (const { channel, stream: slot, ticket } of token.uses) {
      // What the stream itself has used it comes after.
      if (channel !== core.channel.id || slot !== timeline.slot) core.submit(timeline, encoder.wait(timeline.slot, channel, slot, ticket));
    }
    last = core.submit(timeline, encoder.nop(timeline.slot));
  } catch (error) {
    core.dependencies.free(handle, [adopting.here()]);
    throw error;
  }
  // To this thread's streams, the memory is as if the current one had made it behind the waits.
  storage.make(stream, last);
  const strides = token.strides === undefined ? undefined : Object.freeze([...token.strides]);
  return new DeviceArray(device, dtype, shape, storage, token.byteOffset, undefined, strides);
}
