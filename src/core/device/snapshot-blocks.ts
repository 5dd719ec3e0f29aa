// Page-locked snapshots of large ordinary arrays. Each has a buffer of its own, of huge pages: the first touch of those takes a tenth of the
// time of the arena's pages, and page-locking them a twentieth. Several threads copy the bytes, and pages are locked after that.
// Thread: owner.
import type { Channel } from '../channel/channel.js';
import { type HostBlock, roundUp } from './host-block.js';
import { type HostPages, ownBuffer } from './host-pages.js';

const MIB = 2 ** 20;
/** Smaller snapshots are parts of the arena. */
export const LEAST_SNAPSHOT: number = 4 * MIB;
const HUGE_PAGE = 2 * MIB;
/** The most bytes that wait for a next snapshot. */
const MOST_IDLE = 1024 * MIB;

export class SnapshotBlocks {
  readonly #channel: Channel;
  readonly #pages: HostPages;
  /** Unused blocks, the longest unused first. */
  readonly #idle: HostBlock[] = [];
  #idleBytes = 0;

  constructor(channel: Channel, pages: HostPages) {
    this.#channel = channel;
    this.#pages = pages;
  }

  /** A block with a copy of the bytes. Throws OutOfMemoryError. */
  take(bytes: Uint8Array): HostBlock {
    const { byteLength } = bytes;
    const known = this.#bestFit(byteLength);
    if (known !== undefined) {
      this.#channel.copyHost(new Uint8Array(known.buffer, 0, byteLength), bytes);
      return { ...known, byteLength };
    }
    const buffer = this.#fresh(roundUp(byteLength, HUGE_PAGE));
    this.#channel.adviseHugePages(new Uint8Array(buffer));
    this.#channel.copyHost(new Uint8Array(buffer, 0, byteLength), bytes);
    return { ...this.#pages.own(buffer, byteLength), snapshotBytes: buffer.byteLength };
  }

  /** Nothing uses the block any more. */
  release(block: HostBlock): void {
    this.#idle.push(block);
    this.#idleBytes += block.snapshotBytes ?? 0;
    while (this.#idleBytes > MOST_IDLE) this.#drop();
  }

  #drop(): void {
    const oldest = this.#idle.shift() as HostBlock;
    this.#idleBytes -= oldest.snapshotBytes ?? 0;
    this.#pages.release(oldest);
  }

  #fresh(bytes: number): SharedArrayBuffer {
    for (;;) {
      try {
        return ownBuffer(bytes);
      } catch (error) {
        if (this.#idle.length === 0) throw error;
        this.#drop();
      }
    }
  }

  /** The smallest unused block with enough room, of at most twice the size. */
  #bestFit(byteLength: number): HostBlock | undefined {
    let best: HostBlock | undefined;
    for (const block of this.#idle) {
      const bytes = block.snapshotBytes ?? 0;
      if (bytes >= byteLength && bytes <= 2 * byteLength && bytes < (best?.snapshotBytes ?? Infinity)) best = block;
    }
    if (best === undefined) return undefined;
    this.#idle.splice(this.#idle.indexOf(best), 1);
    this.#idleBytes -= best.snapshotBytes ?? 0;
    return best;
  }
}
