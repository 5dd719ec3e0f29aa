// An array of another thread, by the token of its `share`: this thread gets a handle of its own for the memory, and the current stream
// waits on the device for that thread's uses. Each thread frees its handle, and the last free gives the memory back, after the uses of
// all.
//
// The handle is made on a stream that does nothing else, so that no work of this thread delays it: once the call has returned, the other
// thread may dispose its array.
// Thread: owner.
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import type { ArgumentError } from '../base/errors.js';
import type { StreamContext } from '../device/stream-context.js';
import { type DType, DTYPES } from '../elements/dtype.js';
import { checkDType } from '../elements/dtype-names.js';
import { checkShape } from '../elements/shape.js';
import { contiguousStrides, reachOf } from '../elements/strides.js';
import { checkArrayToken } from './array-token.js';
import { Storage } from './storage.js';

/** The memory of an array token, and where the array is in it. */
export interface Adopted {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Undefined: the elements follow each other. */
  readonly strides: readonly number[] | undefined;
  readonly storage: Storage;
  readonly byteOffset: number;
}

/** Devices that two threads opened by `openDevice` are two devices, each with memory of its own. */
function ofAnotherDevice(given: unknown, theirs: string, ours: string): ArgumentError {
  const which = theirs === ours ? `the ${theirs} that another thread opened` : `device ${theirs}`;
  const cure = 'openShared(token), with the token of device.share() in the thread that shares the array';
  return badArgument(
    'token',
    given,
    `The token is of an array on ${which}, not on the ${ours} that this thread opened: open that device by ${cure}.`,
  );
}

/** Adopts the array on a stream, for `device.adopt`. If it throws, nothing is left on the device but waits. */
export function adopt(site: StreamContext, given: unknown, expected: DType | undefined): Adopted {
  const token = checkArrayToken(given);
  const { core, timeline } = site;
  if (timeline.recording !== undefined) {
    const what = 'a graph cannot contain the adoption of an array: adopt it before the capture';
    throw timeline.recording.refusal(timeline, 'unsupported-node', what);
  }
  if (token.key !== core.channel.address.key) {
    throw ofAnotherDevice(given, token.device, core.name);
  }
  const { byteOffset, storageBytes } = token;
  const dtype = checkDType(token.dtype);
  if (expected !== undefined && dtype !== expected) {
    throw badArgument('token', given, `The token is of an array of dtype ${show(dtype)}, not ${show(expected)}.`, expected);
  }
  const shape = checkShape(token.shape);
  const strides = token.strides === undefined ? undefined : Object.freeze([...token.strides]);
  const [low, high] = reachOf({ shape, strides: strides ?? contiguousStrides(shape) });
  const { byteSize } = DTYPES[dtype];
  if (byteOffset + low * byteSize < 0 || byteOffset + high * byteSize > storageBytes) {
    throw badArgument('token', given, `The token names elements outside of its memory (${storageBytes} bytes).`);
  }
  core.checkRoom(timeline, token.uses.length + 2);
  const { encoder } = core;
  const adopting = core.internalStreams.adoptions.take();
  const handle = core.handles.memory.take();
  try {
    core.submit(adopting, encoder.adopt(adopting.slot, handle, token.handle, Math.max(storageBytes, 1)));
  } catch (error) {
    core.handles.memory.giveBackNow(handle);
    throw error;
  }
  const storage = new Storage(MemorySpace.DEVICE, handle, 0, storageBytes, core);
  let last: number;
  try {
    for (const { channel, stream: slot, ticket } of token.uses) {
      // The stream's own records come in order anyway.
      if (channel !== core.channel.id || slot !== timeline.slot) core.submit(timeline, encoder.wait(timeline.slot, channel, slot, ticket));
    }
    last = core.submit(timeline, encoder.nop(timeline.slot));
  } catch (error) {
    core.frees.free(handle, [adopting.here()]);
    throw error;
  }
  // To this thread's streams, the memory is as if this stream had made it behind the waits.
  core.tracker.allocated(storage, site, last);
  return { dtype, shape, strides, storage, byteOffset };
}
