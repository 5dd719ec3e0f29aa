// The SharedArrayBuffers of pinned arrays: each array has one of its own, so that posting `data` to another thread shows
// that thread no byte of another array, or of the library.
//
// The buffer's pages are a part of the arena, mapped a second time: they are page-locked already, and native code reaches
// them through the arena's own mapping. Where the system refuses that, the buffer has a registration of its own.
//
// A size class is a number of pages. Freed buffers are kept, up to a bound, for arrays of the same class. A thread may still
// have the `data` of an earlier array then, and sees what the next one holds. A buffer that is not kept gets pages of its
// own before its part of the arena serves anybody else.
// Thread: owner.
import type { Channel } from '../channel/channel.js';
import { type HostBlock, PAGE, roundUp } from './host-block.js';
import { type HostPages, ownBuffer } from './host-pages.js';

/** Kept buffers of one device. The pages of a kept buffer stay locked and serve nobody else. */
const MOST_KEPT_BYTES = 64 * 2 ** 20;
const MOST_KEPT = 1024;
/**
 * Each mapped buffer is an entry of the process's memory map, of which Linux allows 65,530 by default (vm.max_map_count) and V8 ends the
 * process when it gets none. Further buffers have registrations of their own.
 */
const MOST_MAPPED = 16_384;

/** `fill` of shared memory goes byte by byte, `set` does not. */
const ZEROS = new Uint8Array(PAGE);

export class PinnedBuffers {
  readonly #channel: Channel;
  readonly #pages: HostPages;
  /** By size; those of one size in the order in which they were freed. */
  readonly #kept: Map<number, HostBlock[]> = new Map();
  #keptBytes = 0;
  #keptCount = 0;
  /** Mapped to pages of the arena, live or kept. */
  readonly #mapped: Set<ArrayBufferLike> = new Set();

  constructor(channel: Channel, pages: HostPages) {
    this.#channel = channel;
    this.#pages = pages;
  }

  /** A buffer whose first `byteLength` bytes are whatever they were, and whose others are 0. Throws OutOfMemoryError. */
  take(byteLength: number): HostBlock {
    const size = Math.max(PAGE, roundUp(byteLength, PAGE));
    const block = this.#takeKept(size) ?? this.#make(size);
    // A thread that gets `data` gets the buffer: what an earlier array left behind `data` is not for it.
    const rest = size - byteLength;
    if (rest > 0) new Uint8Array(block.buffer, byteLength, rest).set(ZEROS.subarray(0, rest));
    return { ...block, byteLength };
  }

  /** Are these bytes of such a buffer, or were they until it was disposed? */
  isLocked(buffer: ArrayBufferLike): boolean {
    return this.#mapped.has(buffer);
  }

  /** Nothing uses the block any more. */
  release(block: HostBlock): void {
    const size = block.pinnedBytes as number;
    if (size > MOST_KEPT_BYTES) {
      this.#drop(block);
      return;
    }
    const same = this.#kept.get(size) ?? [];
    same.push(block);
    // The class that was used last is the last to lose its buffers.
    this.#kept.delete(size);
    this.#kept.set(size, same);
    this.#keptBytes += size;
    this.#keptCount++;
    while (this.#keptBytes > MOST_KEPT_BYTES || this.#keptCount > MOST_KEPT) this.#dropOldest();
  }

  #takeKept(size: number): HostBlock | undefined {
    const same = this.#kept.get(size);
    const block = same?.pop();
    if (block === undefined) return undefined;
    if (same?.length === 0) this.#kept.delete(size);
    this.#keptBytes -= size;
    this.#keptCount--;
    return block;
  }

  #dropOldest(): void {
    const [oldest] = this.#kept;
    if (oldest === undefined) return;
    const [size, same] = oldest;
    const block = same.shift() as HostBlock;
    if (same.length === 0) this.#kept.delete(size);
    this.#keptBytes -= size;
    this.#keptCount--;
    this.#drop(block);
  }

  #make(size: number): HostBlock {
    const buffer = ownBuffer(size);
    const cut = this.#mapped.size < MOST_MAPPED ? this.#pages.cut(size) : undefined;
    if (cut?.chunk !== undefined) {
      if (this.#channel.mapHost(buffer, cut.byteOffset)) {
        this.#mapped.add(buffer);
        return { ...cut, buffer, byteOffset: 0, pinnedBytes: size };
      }
      this.#pages.release(cut);
    }
    return { ...this.#pages.own(buffer, size), pinnedBytes: size };
  }

  #drop(block: HostBlock): void {
    if (!this.#mapped.has(block.buffer)) {
      this.#pages.release(block);
    } else if (this.#channel.unmapHost(block.buffer as SharedArrayBuffer)) {
      this.#mapped.delete(block.buffer);
      this.#pages.release(block);
    }
    // Where the system refuses, the pages are lost: whoever has `data` would see what comes next.
  }
}
