// Reading an array into the host: on a stream that waits for nothing but the array's last writer.
//
// A plain result beyond a size is a buffer that the device's worker makes: nobody sees it before it is complete, and no
// byte of it is copied on this thread. Everything else goes through page-locked memory and lands in slices.
// Thread: owner.
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import { OutOfMemoryError } from '../base/errors.js';
import { elementsOf, flatRegion, type Region, regionOf } from '../copies/region.js';
import { type Moved, submitCopy } from '../copies/transfer.js';
import { HostStage } from '../copies/upload.js';
import type { StreamSite } from '../device/device-core.js';
import type { HostBlock } from '../device/host-arena.js';
import { DTYPES, type DType, type HostOf } from '../elements/dtype.js';
import { Storage } from '../memory/storage.js';
import type { Operation } from '../operations/operation.js';
import { checkWaitOptions, type WaitOptions } from '../waits/wait.js';
import type { DeviceArray } from './array.js';
import { isHostOf } from './copy.js';
import type { Stream } from './stream.js';

/** Landing a smaller one costs less than asking the worker twice. */
const LEAST_LENT = 8 * 2 ** 20;

/**
 * Waits for the array's last writer, whatever the stream's ordering. Whoever has the bytes knows that what wrote them has finished; the
 * stream that they came by is chance.
 */
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
  const sources = storage.lastWrites(...array.byteRange);
  const site: StreamSite = { core: stream.core, timeline: stream.timeline, ordering: 'tracked', isReadback: true };
  const isLent = into === undefined && byteLength > LEAST_LENT;
  const target = isLent ? new Loan(site, byteLength) : new Landed(site, byteLength);
  const { ticket, parts } = target.submit((dst) => {
    if (byteLength > 0) return submitCopy(site, dst, regionOf(array), elementsOf(array), undefined);
    return { ticket: site.core.submit(site.timeline, site.core.encoder.nop(site.timeline.slot)), parts: undefined };
  });
  const operation = stream.readBack(ticket, byteLength).moves(sources, undefined, parts);
  const bytes = into && new Uint8Array(into.buffer, into.byteOffset, byteLength);
  const buffer = await target.take(operation, ticket, opts, bytes);
  return into ?? (new DTYPES[array.dtype].make(buffer) as HostOf[D]);
}

/** Through page-locked memory. */
class Landed {
  readonly #site: StreamSite;
  readonly #stage: HostStage;
  readonly #byteLength: number;

  constructor(site: StreamSite, byteLength: number) {
    this.#site = site;
    this.#byteLength = byteLength;
    this.#stage = HostStage.locked(site.core, byteLength);
  }

  submit(submit: (dst: Region) => Moved): Moved {
    return this.#stage.useLonger(() => submit(this.#stage.region));
  }

  /** Waits for the bytes, in `into` or a new buffer. The memory goes back when they are there, or when the device is done with it. */
  async take(
    operation: Operation,
    ticket: number,
    opts: WaitOptions | undefined,
    into: Uint8Array = new Uint8Array(this.#byteLength),
  ): Promise<ArrayBufferLike> {
    const { core, timeline } = this.#site;
    try {
      await core.wait(timeline, ticket, operation, opts, operation.sources);
      const error = await new Promise<Error | undefined>((resolve) => core.landings.land(this.#stage.bytes, into, resolve));
      if (error !== undefined) throw error;
      return into.buffer;
    } finally {
      this.#stage.giveBack();
    }
  }
}

/** Into a buffer of the worker's. */
class Loan {
  readonly #site: StreamSite;
  readonly #block: HostBlock;
  readonly #storage: Storage;

  constructor(site: StreamSite, byteLength: number) {
    this.#site = site;
    this.#block = site.core.arena.lend(byteLength);
    this.#storage = new Storage(MemorySpace.HOST, this.#block.handle, 0, byteLength, site.core);
  }

  submit(submit: (dst: Region) => Moved): Moved {
    try {
      return submit(flatRegion(this.#storage, 0, this.#block.byteLength));
    } catch (error) {
      this.#drop(Math.max(0, ...[...this.#storage.uses()].map(({ ticket }) => ticket)));
      throw error;
    }
  }

  async take(operation: Operation, ticket: number, opts: WaitOptions | undefined): Promise<ArrayBuffer> {
    const { core, timeline } = this.#site;
    const { arena, channel } = core;
    try {
      await core.wait(timeline, ticket, operation, opts, operation.sources);
    } catch (error) {
      if (!timeline.hasReached(ticket)) {
        this.#drop(ticket);
        throw error;
      }
      // Had the worker no memory, that is what the copy failed of.
      const reason: unknown = await channel.holdLoop(arena.collect(this.#block)).catch((refused: unknown) => refused);
      throw reason instanceof OutOfMemoryError ? reason : error;
    }
    return channel.holdLoop(arena.collect(this.#block));
  }

  /** Nobody wants the bytes any more. */
  #drop(ticket: number): void {
    const { core, timeline } = this.#site;
    const drop = (): void => void core.arena.collect(this.#block).catch(() => undefined);
    core.progress.add(timeline, { ticket, holdsLoop: false, settle: drop, lose: () => undefined });
  }
}
