// Copies as records, and the staging of ordinary arrays, which the device cannot reach: their bytes go through
// page-locked memory, on the way in at the call, on the way out when the device has finished.
// Thread: owner.
import { MemorySpace } from '../protocol/protocol.gen.js';
import type { Place } from './copy.js';
import type { StreamSite } from './device-core.js';
import type { HostBlock } from './host-arena.js';
import { Landing } from './landing.js';
import type { Operation } from './operation.js';
import { Storage } from './storage.js';
import type { WaitOptions } from './wait.js';

/** Between two places that the device reaches; the ticket. */
export function submitCopy({ core, timeline }: StreamSite, dst: Place, src: Place, byteLength: number, isTracked: boolean): number {
  if (dst.storage.isForeign(timeline)) core.orderUse(timeline, dst.storage, true, isTracked);
  if (src.storage.isForeign(timeline)) core.orderUse(timeline, src.storage, false, isTracked);
  const bytes = core.encoder.copy(
    timeline.slot,
    dst.storage.space,
    dst.storage.handle,
    dst.offset,
    src.storage.space,
    src.storage.handle,
    src.offset,
    byteLength,
  );
  const ticket = core.submit(timeline, bytes);
  dst.storage.use(timeline, ticket, true, isTracked);
  src.storage.use(timeline, ticket, false, isTracked);
  return ticket;
}

/** From an ordinary array, whose bytes are taken now; the ticket. */
export function submitCopyIn(site: StreamSite, dst: Place, bytes: Uint8Array, isTracked: boolean): number {
  const { arena } = site.core;
  const block = arena.take(bytes.byteLength);
  const ticket = orReturn(site, block, () => {
    blockBytes(block).set(bytes);
    return submitCopy(site, dst, blockPlace(block), bytes.byteLength, isTracked);
  });
  arena.giveBack(block, [{ timeline: site.timeline, ticket }]);
  return ticket;
}

/** Into an ordinary array, which the bytes reach whether or not somebody waits for it. */
export function submitCopyOut(site: StreamSite, into: Uint8Array, src: Place, isTracked: boolean): Landing {
  const { core, timeline } = site;
  const block = core.arena.take(into.byteLength);
  const ticket = orReturn(site, block, () => submitCopy(site, blockPlace(block), src, into.byteLength, isTracked));
  const landing = new Landing(ticket);
  core.landings.expect(timeline, landing);
  const finish = (error?: Error): void => {
    core.arena.giveBack(block, [{ timeline, ticket }]);
    landing.settle(error);
  };
  core.progress.add(timeline, {
    ticket,
    holdsLoop: false,
    // The operation failed: there is nothing to land, and who waits for it is told by its ticket.
    settle: () => (timeline.failureAt(ticket) === undefined ? core.landings.land(blockBytes(block), into, finish) : finish()),
    lose: () => finish(),
  });
  return landing;
}

/** A copy into page-locked memory that the caller takes the bytes out of. */
export class Readback {
  readonly ticket: number;
  readonly #site: StreamSite;
  readonly #block: HostBlock;

  constructor(site: StreamSite, src: Place, byteLength: number) {
    this.#site = site;
    const { core, timeline } = site;
    const block = core.arena.take(byteLength);
    this.#block = block;
    this.ticket = orReturn(site, block, () =>
      byteLength === 0
        ? core.submit(timeline, core.encoder.nop(timeline.slot))
        : // It waits for the last writer, whatever the stream's ordering.
          submitCopy(site, blockPlace(block), src, byteLength, true),
    );
  }

  /** Waits for the bytes, in `into` or a new buffer. The block goes back when they are there, or when the device is done with it. */
  async take(operation: Operation, opts: WaitOptions | undefined, into: Uint8Array | undefined): Promise<Uint8Array> {
    const { core, timeline } = this.#site;
    const block = this.#block;
    try {
      await core.wait(timeline, this.ticket, operation, opts);
      const bytes = into ?? new Uint8Array(block.byteLength);
      const error = await new Promise<Error | undefined>((resolve) => core.landings.land(blockBytes(block), bytes, resolve));
      if (error !== undefined) throw error;
      return bytes;
    } finally {
      core.arena.giveBack(block, [{ timeline, ticket: this.ticket }]);
    }
  }
}

/** Submits what uses the block, or returns the block. */
function orReturn({ core }: StreamSite, block: HostBlock, submit: () => number): number {
  try {
    return submit();
  } catch (error) {
    core.arena.giveBack(block, []);
    throw error;
  }
}

function blockPlace(block: HostBlock): Place {
  // Staging memory has no history: its order is that of the stream it is used on.
  return { storage: new Storage(MemorySpace.HOST, block.handle, block.handleOffset, block.byteLength), offset: block.handleOffset };
}

function blockBytes(block: HostBlock): Uint8Array {
  return new Uint8Array(block.buffer, block.byteOffset, block.byteLength);
}
