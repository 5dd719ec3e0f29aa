// Large page-locked blocks for copies to and from ordinary arrays. Each has a buffer of its own, of huge pages: on a host with an H200, one
// thread touched these for the first time with 3.2 GB/s, the arena's pages with 1.2 GB/s, and 12 threads huge pages with 21 GB/s.
// Thread: owner.
import type { Channel } from '../channel/channel.js';
import { type HostBlock, resized, roundUp } from './host-block.js';
import { type HostPages, ownBuffer } from './host-pages.js';

const MIB = 2 ** 20;
/** Smaller blocks are parts of the arena. */
export const LEAST_LARGE: number = 4 * MIB;
const HUGE_PAGE = 2 * MIB;
/**
 * One block of this size is there before the first copy. Without it the first copy of a process waits until the pages are made and locked:
 * on a host with an H100, 16 MiB went up with 3.7 GB/s, half of what CuPy reaches with the driver's own staging memory.
 */
const PREPARED = 64 * MIB;
/** The most bytes of unused blocks. */
const MOST_IDLE = 1024 * MIB;

/** The memory of the first block of a device that was closed. Where nothing has collected it, the next device need not touch fresh pages. */
let ofClosed: WeakRef<SharedArrayBuffer> | undefined;

export class LargeHostBlocks {
  readonly #channel: Channel;
  readonly #pages: HostPages;
  /** Unused blocks, the longest unused first. */
  readonly #idle: HostBlock[] = [];
  #idleBytes = 0;

  constructor(channel: Channel, pages: HostPages) {
    this.#channel = channel;
    this.#pages = pages;
  }

  /** Makes the first block. The worker touches its pages and locks them. */
  prepare(): void {
    try {
      const known = ofClosed?.deref();
      ofClosed = undefined;
      this.release(this.#lock(known ?? this.#fresh(PREPARED), 0));
    } catch {
      // Without memory or handles for it, copies make their own blocks and report what they lack.
    }
  }

  /** The device is closed, and has unlocked its pages. */
  end(): void {
    const first = this.#idle.find(({ largeBytes }) => largeBytes === PREPARED);
    if (first !== undefined) ofClosed = new WeakRef(first.buffer as SharedArrayBuffer);
  }

  /** Throws OutOfMemoryError. */
  take(byteLength: number): HostBlock {
    const known = this.#bestFit(byteLength);
    if (known !== undefined) return resized(known, byteLength);
    const buffer = this.#fresh(byteLength);
    return this.#lock(buffer, byteLength);
  }

  /** A block with a copy of the bytes, which several threads make. Throws OutOfMemoryError. */
  snapshot(bytes: Uint8Array): HostBlock {
    const { byteLength } = bytes;
    const known = this.#bestFit(byteLength);
    if (known !== undefined) {
      this.#channel.copyHost(new Uint8Array(known.buffer, 0, byteLength), bytes);
      return resized(known, byteLength);
    }
    const buffer = this.#fresh(byteLength);
    // Locked afterwards: it takes the worker less time if the pages are there.
    this.#channel.copyHost(new Uint8Array(buffer, 0, byteLength), bytes);
    return this.#lock(buffer, byteLength);
  }

  /** Nothing uses the block any more. */
  release(block: HostBlock): void {
    this.#idle.push(block);
    this.#idleBytes += block.largeBytes ?? 0;
    while (this.#idleBytes > MOST_IDLE) this.#drop();
  }

  #drop(): void {
    const oldest = this.#idle.shift() as HostBlock;
    this.#idleBytes -= oldest.largeBytes ?? 0;
    this.#pages.release(oldest);
  }

  #lock(buffer: SharedArrayBuffer, byteLength: number): HostBlock {
    return { ...this.#pages.own(buffer, byteLength), largeBytes: buffer.byteLength };
  }

  #fresh(byteLength: number): SharedArrayBuffer {
    for (;;) {
      try {
        const buffer = ownBuffer(roundUp(byteLength, HUGE_PAGE));
        this.#channel.adviseHugePages(new Uint8Array(buffer));
        return buffer;
      } catch (error) {
        if (this.#idle.length === 0) throw error;
        this.#drop();
      }
    }
  }

  /** The smallest unused block with enough room, of at most twice the size, or the prepared one. */
  #bestFit(byteLength: number): HostBlock | undefined {
    let best: HostBlock | undefined;
    for (const block of this.#idle) {
      const bytes = block.largeBytes ?? 0;
      const isFitting = bytes >= byteLength && (bytes <= 2 * byteLength || bytes === PREPARED);
      if (isFitting && bytes < (best?.largeBytes ?? Infinity)) best = block;
    }
    if (best === undefined) return undefined;
    this.#idle.splice(this.#idle.indexOf(best), 1);
    this.#idleBytes -= best.largeBytes ?? 0;
    return best;
  }
}
