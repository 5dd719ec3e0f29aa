// `array.read`: copies an array to the host, on a stream that waits for nothing but the array's last writer.
//
// A very large result without `into` is a buffer that the device's worker makes and transfers when it is complete. Every other result goes
// through page-locked memory: from there other threads copy it if it is new and large, else this one in slices.
// Thread: owner.
import { badArgument, show } from '../base/arguments.js';
import { isDetached, plainView } from '../base/buffers.js';
import { checkHostBytes } from '../base/host-bytes.js';
import { copyTrace, isTraced } from '../base/trace.js';
import { HostRead, Loan } from '../copies/download.js';
import { submitCopy } from '../copies/transfer.js';
import type { StreamContext } from '../device/stream-context.js';
import { DTYPES, type DType, type HostOf, isHostOf } from '../elements/dtype.js';
import { checkWaitCall, type WaitOptions } from '../waits/wait.js';
import type { Operation } from '../operations/operation.js';
import { traceOperation } from '../operations/traced-operation.js';
import type { StridedArray } from './strided-array.js';

/** Smaller results go through page-locked memory of their size: that costs less than two messages to the worker. */
const LEAST_LENT = 32 * 2 ** 20;

/** The stream that a read is submitted to. */
export interface ReadbackContext extends StreamContext {
  /** Throws where the stream takes no work any more. */
  checkOpen(): void;
  /** Makes the Operation of the read that was submitted. */
  readBack(ticket: number, byteLength: number): Operation;
}

/**
 * Reads an array into the host: `array.read`. It waits for the array's last writer, whatever the stream's ordering. Once the caller has the
 * bytes, it has observed that the writers have finished, and no more: the read may run on any stream.
 */
export async function readArray<D extends DType>(
  stream: ReadbackContext,
  array: StridedArray<D>,
  into: HostOf[D] | undefined,
  opts: WaitOptions | undefined,
): Promise<HostOf[D]> {
  checkWaitCall(opts, 'into');
  if (into !== undefined && !isHostOf(into, array.dtype)) {
    throw badArgument('into', into, `The option into (${show(into)}) is not a typed array for ${array.dtype}.`, array.dtype);
  }
  const target = into && plainView(into);
  if (target !== undefined && target.length !== array.length) {
    const message = `The length of into (${target.length}) differs from that of the array (${array.length}).`;
    throw badArgument('into', into, message, array.length);
  }
  if (into !== undefined && isDetached(into))
    throw badArgument('into', into, `The option into (${show(into)}) is detached: its memory was transferred to another ArrayBuffer.`);
  stream.checkOpen();
  const { byteLength, storage } = array;
  checkHostBytes('array', 'bytes to read', byteLength);
  const sources = storage.lastWrites(...array.byteRange);
  const site: StreamContext = { core: stream.core, timeline: stream.timeline, ordering: 'tracked', isReadback: true };
  const isLent = into === undefined && byteLength > LEAST_LENT;
  const copied = isLent ? new Loan(site, byteLength) : new HostRead(site, byteLength);
  let ticket = 0;
  const submit = (): Operation => {
    const submitted = copied.submit((dst) => {
      if (byteLength > 0) return submitCopy(site, dst, array.region, array.elements, undefined);
      return { ticket: site.core.submit(site.timeline, site.core.encoder.nop(site.timeline.slot)), parts: undefined };
    });
    ticket = submitted.ticket;
    return stream.readBack(ticket, byteLength).moves(undefined, submitted.parts);
  };
  const { core, timeline } = site;
  const operation = isTraced(copyTrace) ? traceOperation(copyTrace, { device: core.name, stream: timeline.label }, submit) : submit();
  const bytes = target && new Uint8Array(target.buffer, target.byteOffset, byteLength);
  const buffer = await copied.take({ operation, ticket, sources }, opts, bytes);
  return into ?? (new DTYPES[array.dtype].make(buffer) as HostOf[D]);
}
