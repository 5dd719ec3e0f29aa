// Copies as records, and the staging of ordinary arrays, which the device cannot reach: their bytes go through
// page-locked memory, on the way in at the call, on the way out when the device has finished.
// Thread: owner.
import { MemorySpace } from '../protocol/protocol.gen.js';
import { type CopyOptions, type Place, planCopy } from './copy.js';
import type { StreamSite } from './device-core.js';
import type { HostBlock } from './host-arena.js';
import { Landing } from './landing.js';
import type { Operation } from './operation.js';
import { Storage } from './storage.js';
import type { Point } from './timeline.js';
import { uses } from './uses.js';
import type { WaitOptions } from './wait.js';

/** What a copy became. */
export interface Transfer {
  readonly ticket: number;
  readonly byteLength: number;
  /** The last writes to what it reads. */
  readonly sources: readonly Point[];
  /** It ends in an ordinary array. */
  readonly landing: Landing | undefined;
}

/** `stream.copy`. */
export function submitTransfer(site: StreamSite, dst: unknown, src: unknown, opts: CopyOptions | undefined): Transfer {
  const { core, timeline } = site;
  const { dst: to, src: from, byteLength } = planCopy(core, dst, src, opts);
  if (byteLength === 0) {
    return { ticket: core.submit(timeline, core.encoder.nop(timeline.slot)), byteLength, sources: [], landing: undefined };
  }
  const label = opts?.label;
  const sources = from.place?.storage.lastWrites(from.place.offset, from.place.offset + byteLength) ?? [];
  if (to.bytes !== undefined) {
    // planCopy made sure that the device reaches one end.
    const landing = submitCopyOut(site, to.bytes, from.place as Place, label);
    return { ticket: landing.ticket, byteLength, sources, landing };
  }
  const ticket =
    from.bytes === undefined ? submitCopy(site, to.place, from.place, byteLength, label) : submitCopyIn(site, to.place, from.bytes, label);
  return { ticket, byteLength, sources, landing: undefined };
}

/** Between two places that the device reaches; the ticket. */
export function submitCopy(site: StreamSite, dst: Place, src: Place, byteLength: number, label: string | undefined): number {
  uses.begin(site);
  uses.add(dst.storage, dst.offset, dst.offset + byteLength, true);
  uses.add(src.storage, src.offset, src.offset + byteLength, false);
  uses.order('copy', label);
  const { core, timeline } = site;
  const bytes = core.encoder.copy(
    timeline.slot,
    dst.storage.core.channel.id,
    dst.storage.space,
    dst.storage.handle,
    dst.storage.base + dst.offset,
    src.storage.core.channel.id,
    src.storage.space,
    src.storage.handle,
    src.storage.base + src.offset,
    byteLength,
  );
  const ticket = core.submit(timeline, bytes);
  uses.commit(ticket);
  return ticket;
}

/** From an ordinary array, whose bytes are taken now; the ticket. */
export function submitCopyIn(site: StreamSite, dst: Place, bytes: Uint8Array, label: string | undefined): number {
  const { arena } = site.core;
  const block = arena.take(bytes.byteLength);
  const ticket = orReturn(site, block, () => {
    blockBytes(block).set(bytes);
    return submitCopy(site, dst, blockPlace(site, block), bytes.byteLength, label);
  });
  arena.giveBack(block, [{ timeline: site.timeline, ticket }]);
  return ticket;
}

/** Into an ordinary array, which the bytes reach whether or not somebody waits for it. */
export function submitCopyOut(site: StreamSite, into: Uint8Array, src: Place, label: string | undefined): Landing {
  const { core, timeline } = site;
  const block = core.arena.take(into.byteLength);
  const ticket = orReturn(site, block, () => submitCopy(site, blockPlace(site, block), src, into.byteLength, label));
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
          submitCopy({ core, timeline, ordering: 'tracked', isReadback: true }, blockPlace(site, block), src, byteLength, undefined),
    );
  }

  /** Waits for the bytes, in `into` or a new buffer. The block goes back when they are there, or when the device is done with it. */
  async take(operation: Operation, opts: WaitOptions | undefined, into: Uint8Array | undefined): Promise<Uint8Array> {
    const { core, timeline } = this.#site;
    const block = this.#block;
    try {
      // Whoever has the bytes knows that what wrote them has finished; the stream that they came by is chance.
      await core.wait(timeline, this.ticket, operation, opts, operation.sources);
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

function blockPlace({ core }: StreamSite, block: HostBlock): Place {
  // Staging memory has no history: its order is that of the stream it is used on.
  return { storage: new Storage(MemorySpace.HOST, block.handle, block.handleOffset, block.byteLength, core), offset: 0 };
}

function blockBytes(block: HostBlock): Uint8Array {
  return new Uint8Array(block.buffer, block.byteOffset, block.byteLength);
}
