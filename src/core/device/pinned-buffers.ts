// The SharedArrayBuffers of pinned arrays. Each array has one of its own, so posting `data` to another thread shows that thread no byte of
// another array or of the library.
//
// The pages of the buffer are a part of the arena, mapped a second time. They are page-locked already, and native code uses the arena's
// mapping. If the system refuses the second mapping, the buffer gets a registration of its own.
//
// A size class is a number of pages. Freed buffers are kept, up to a limit, for later arrays of the same class; a thread that still has the
// `data` of an earlier array then sees the bytes of the later one. A buffer that is not kept gets empty pages before its part of the arena
// is used again.
// Thread: owner.
import type { Channel } from '../channel/channel.js';
import { type HostBlock, PAGE, resized, roundUp } from './host-block.js';
import { type HostPages, ownBuffer } from './host-pages.js';

/** The kept buffers of one device: two of 64 MiB for each of two lanes. Their pages stay locked and cannot be used for anything else. */
const MOST_KEPT_BYTES = 256 * 2 ** 20;
const MOST_KEPT = 1024;
/**
 * Each mapped buffer is an entry of the process's memory map. Linux allows 65,530 by default (vm.max_map_count), and V8 ends the process
 * if it gets none. Further buffers get registrations of their own.
 */
const MOST_MAPPED = 16_384;

/** For `set`: `fill` of shared memory writes byte by byte. */
const ZEROS = new Uint8Array(PAGE);

export class PinnedBuffers {
  readonly #channel: Channel;
  readonly #pages: HostPages;
  /** By size, and within a size in the order of their frees. */
  readonly #kept: Map<number, HostBlock[]> = new Map();
  #keptBytes = 0;
  #keptCount = 0;
  /** The buffers that are mapped to pages of the arena, live or kept. */
  readonly #mapped: Set<ArrayBufferLike> = new Set();

  constructor(channel: Channel, pages: HostPages) {
    this.#channel = channel;
    this.#pages = pages;
  }

  /** A buffer whose first `byteLength` bytes are undefined and whose others are 0. Throws OutOfMemoryError. */
  take(byteLength: number): HostBlock {
    const size = Math.max(PAGE, roundUp(byteLength, PAGE));
    const block = this.#takeKept(size) ?? this.#make(size);
    // A thread that gets `data` gets the whole buffer, so bytes of an earlier array beyond `data` are cleared.
    const rest = size - byteLength;
    if (rest > 0) new Uint8Array(block.buffer, byteLength, rest).set(ZEROS.subarray(0, rest));
    return resized(block, byteLength);
  }

  /** Is this the mapped buffer of a pinned array, live or disposed? */
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
    // The size class that was used last is the last to lose its buffers.
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
    // What should have been written to the earlier array does not concern this one.
    this.#channel.reportedOf(block.handle, block.handleOffset, size);
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
    // If the system refuses, the pages are never used again: a thread that has `data` would see their next contents.
  }
}
