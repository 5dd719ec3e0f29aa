// Reading an array into the host: on a stream that waits for nothing but the array's last writer.
// Thread: owner.
import { badArgument, show } from './arguments.js';
import type { DeviceArray } from './array.js';
import { isHostOf } from './copy.js';
import { DTYPES, type DType, type HostOf } from './dtype.js';
import type { Stream } from './stream.js';
import { Readback } from './transfer.js';
import { checkWaitOptions, type WaitOptions } from './wait.js';

/** Waits for the array's last writer, whatever the stream's ordering. */
export async function readArray<D extends DType>(
  stream: Stream,
  array: DeviceArray<D>,
  into: HostOf[D] | undefined,
  opts: WaitOptions | undefined,
): Promise<HostOf[D]> {
  checkWaitOptions(opts);
  if (into !== undefined && !isHostOf(into, array.dtype)) {
    throw badArgument('into', into, `The array to read into (${show(into)}) cannot hold ${array.dtype}.`, array.dtype);
  }
  if (into !== undefined && into.length !== array.length) {
    throw badArgument('into', into, `The array to read into has ${into.length} elements; the array has ${array.length}.`, array.length);
  }
  stream.checkOpen();
  const { byteLength, storage } = array;
  const sources = storage.lastWrites(array.byteOffset, array.byteOffset + byteLength);
  const readback = new Readback(stream, { storage, offset: array.byteOffset }, byteLength);
  const operation = stream.readBack(readback.ticket, byteLength).moves(sources, undefined);
  if (into === undefined) {
    const bytes = await readback.take(operation, opts, undefined);
    return new DTYPES[array.dtype].make(bytes.buffer) as HostOf[D];
  }
  await readback.take(operation, opts, new Uint8Array(into.buffer, into.byteOffset, byteLength));
  return into;
}
