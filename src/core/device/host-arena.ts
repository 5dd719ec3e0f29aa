// Page-locked host memory: staging memory of the library, buffers of pinned arrays, and memory of user code (`device.pin`).
//
// Small blocks come from slabs in powers of two, larger ones are whole pages (host-pages.ts). Each pinned array has a buffer of its own
// (pinned-buffers.ts), and so has each large block (large-host-blocks.ts). Memory of user code is a block with a registration of its own.
//
// A block is used again, or unregistered, only after its last use has completed.
// Thread: owner.
import type { Channel } from '../channel/channel.js';
import { unfilledBytes } from '../channel/host-buffers.js';
import type { Point } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';
import { type HostBlock, resized } from './host-block.js';
import { HostPages } from './host-pages.js';
import { LargeHostBlocks, LEAST_LARGE } from './large-host-blocks.js';
import { PinnedBuffers } from './pinned-buffers.js';

/** Small blocks start on multiples of this, so that copies run at full speed and two blocks share no cache line. */
const GRAIN = 256;
const SLAB = 256 * 1024;
const LARGEST_SMALL = 64 * 1024;
const EMPTY = new ArrayBuffer(0);
/** How many returned blocks a call looks at: more than it returns, and not all, because thousands may wait for a stream that stands still. */
const LOOKS = 4;

interface Retiring {
  readonly block: HostBlock;
  readonly uses: readonly Point[];
}

export class HostArena {
  readonly #channel: Channel;
  readonly #handles: HandleTable;
  readonly #pages: HostPages;
  readonly #pinned: PinnedBuffers;
  readonly #large: LargeHostBlocks;
  /** Free small blocks by the exponent of their size. */
  readonly #small: Map<number, HostBlock[]> = new Map();
  readonly #retiring: Retiring[] = [];
  /** Where the next look at `#retiring` begins. */
  #next = 0;
  #liveBytes = 0;

  constructor(channel: Channel, handles: HandleTable) {
    this.#channel = channel;
    this.#handles = handles;
    this.#pages = new HostPages(channel, handles);
    this.#pinned = new PinnedBuffers(channel, this.#pages);
    this.#large = new LargeHostBlocks(channel, this.#pages);
  }

  /** The bytes of blocks that were taken and not returned. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** Were blocks returned that the device may still use? */
  get isSettling(): boolean {
    return this.#retiring.length > 0;
  }

  /**
   * Makes the first chunk when the device is opened. Page-locking may wait for running kernels, and a kernel may itself wait for a copy that
   * needs this chunk. `isGpu` says that page-locking takes time, so the first large block is made as well.
   */
  prepare(isGpu: boolean): void {
    this.#pages.prepare();
    if (isGpu) this.#large.prepare();
  }

  /** The device is closed. */
  end(): void {
    this.#large.end();
  }

  /** A block for the library itself. Throws OutOfMemoryError. */
  take(byteLength: number): HostBlock {
    this.#reclaim(LOOKS);
    const block = this.#taken(byteLength);
    this.#liveBytes += byteLength;
    return block;
  }

  /** A block with a copy of the bytes, for one copy to the device. Throws OutOfMemoryError. */
  snapshot(bytes: Uint8Array): HostBlock {
    const { byteLength } = bytes;
    if (byteLength < LEAST_LARGE) {
      const block = this.take(byteLength);
      new Uint8Array(block.buffer, block.byteOffset, byteLength).set(bytes);
      return block;
    }
    this.#reclaim(LOOKS);
    const block = this.#large.snapshot(bytes);
    this.#liveBytes += byteLength;
    return block;
  }

  /** An ordinary buffer for the bytes of a result, which all will be written. */
  resultBytes(byteLength: number): Uint8Array<ArrayBuffer> {
    const bytes = unfilledBytes(byteLength);
    if (byteLength >= LEAST_LARGE) this.#channel.adviseHugePages(bytes);
    return bytes;
  }

  /** A block with a SharedArrayBuffer that no other live array uses. Throws OutOfMemoryError. */
  takePinned(byteLength: number): HostBlock {
    this.#reclaim(LOOKS);
    const block = this.#pinned.take(byteLength);
    this.#liveBytes += byteLength;
    return block;
  }

  /** A block of existing memory. Copies that name it wait, on the device, until it is registered. */
  adopt(buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): HostBlock {
    this.#reclaim(LOOKS);
    const block = this.promise(byteLength);
    try {
      return this.keep(block, buffer, byteOffset, isLocked);
    } catch (error) {
      this.cancel(block);
      throw error;
    }
  }

  /** A block whose memory follows by `keep`. Copies that name it wait, on the device, until then. */
  promise(byteLength: number): HostBlock {
    const handle = this.#handles.take();
    this.#liveBytes += byteLength;
    return { buffer: EMPTY, byteOffset: 0, byteLength, handle, handleOffset: 0, cutBytes: 0, chunk: undefined };
  }

  /** Gives a promised block its memory. An ordinary ArrayBuffer is detached. */
  keep(block: HostBlock, buffer: ArrayBufferLike, byteOffset: number, isLocked: boolean): HostBlock {
    this.#channel.register(block.handle, buffer, byteOffset, block.byteLength, isLocked);
    const kept = { ...block, buffer, byteOffset };
    if (isLocked) this.#pages.lock(kept);
    return kept;
  }

  /** Drops a promised block that got no memory and that no submitted record names. */
  cancel(block: HostBlock): void {
    this.#liveBytes -= block.byteLength;
    this.#handles.giveBackNow(block.handle);
  }

  /** A block whose memory the device's worker makes. The device writes it, and `collect` transfers it to this thread. */
  lend(byteLength: number): HostBlock {
    const block = this.promise(byteLength);
    try {
      this.#channel.lend(block.handle, byteLength);
    } catch (error) {
      this.cancel(block);
      throw error;
    }
    return block;
  }

  /** The memory of a lent block, after its last use. Rejects with OutOfMemoryError if the worker had no memory; the copies failed then. */
  async collect(block: HostBlock): Promise<ArrayBuffer> {
    this.#liveBytes -= block.byteLength;
    try {
      return await this.#channel.collect(block.handle);
    } finally {
      this.#handles.giveBackNow(block.handle);
    }
  }

  /** Is one of these bytes already page-locked for this device? */
  isLocked(buffer: ArrayBufferLike, byteOffset: number, byteLength: number): boolean {
    const isLocked = (): boolean => this.#pinned.isLocked(buffer) || this.#pages.isLocked(buffer, byteOffset, byteLength);
    if (!isLocked()) return false;
    this.reclaim();
    return isLocked();
  }

  /** Returns a block. It is used again after these points. */
  giveBack(block: HostBlock, uses: readonly Point[]): void {
    this.#liveBytes -= block.byteLength;
    const open = uses.filter((use) => !use.timeline.hasReached(use.ticket));
    if (open.length === 0) this.#release(block);
    else this.#retiring.push({ block, uses: open });
  }

  /** Makes the returned blocks available that the device has finished with. */
  reclaim(): void {
    this.#reclaim(this.#retiring.length);
  }

  /** Looks at so many blocks, beginning where the last call ended. */
  #reclaim(looks: number): void {
    const retiring = this.#retiring;
    for (let left = Math.min(looks, retiring.length); left > 0; left--) {
      if (this.#next >= retiring.length) this.#next = 0;
      const { block, uses } = retiring[this.#next] as Retiring;
      if (!uses.every((use) => use.timeline.hasReached(use.ticket))) {
        this.#next++;
        continue;
      }
      const last = retiring.pop() as Retiring;
      if (this.#next < retiring.length) retiring[this.#next] = last;
      this.#release(block);
    }
  }

  #taken(byteLength: number): HostBlock {
    if (byteLength <= LARGEST_SMALL) return this.#takeSmall(byteLength);
    return byteLength < LEAST_LARGE ? this.#pages.take(byteLength) : this.#large.take(byteLength);
  }

  #takeSmall(byteLength: number): HostBlock {
    const exponent = Math.max(Math.log2(GRAIN), 32 - Math.clz32(Math.max(byteLength, 1) - 1));
    const stack = this.#smallStack(exponent);
    let block = stack.pop();
    if (block === undefined) {
      const size = 2 ** exponent;
      const slab = this.#pages.take(SLAB);
      for (let offset = 0; offset < SLAB; offset += size) stack.push(part(slab, offset, size));
      block = stack.pop() as HostBlock;
    }
    return resized(block, byteLength);
  }

  #smallStack(exponent: number): HostBlock[] {
    let stack = this.#small.get(exponent);
    if (stack === undefined) this.#small.set(exponent, (stack = []));
    return stack;
  }

  #release(block: HostBlock): void {
    if (block.pinnedBytes !== undefined) this.#pinned.release(block);
    else if (block.largeBytes !== undefined) this.#large.release(block);
    else if (block.cutBytes > 0 && block.cutBytes <= LARGEST_SMALL) this.#smallStack(Math.log2(block.cutBytes)).push(block);
    else this.#pages.release(block);
  }
}

function part(slab: HostBlock, offset: number, bytes: number): HostBlock {
  return {
    ...slab,
    byteOffset: slab.byteOffset + offset,
    byteLength: bytes,
    handleOffset: slab.handleOffset + offset,
    cutBytes: bytes,
  };
}
