// Page-locked host memory: pieces for the library's own staging, buffers for pinned arrays, and memory of the user's.
//
// Small pieces come from slabs in powers of two, larger ones are pages (host-pages.ts). Pinned arrays have buffers of
// their own (pinned-buffers.ts).
//
// A block that the device may still use is not handed out again before its last use was seen completed. Memory of the user's
// is a block with a registration of its own too: it ends in the same way, and then the memory is the user's again.
// Thread: owner.
import type { Channel } from '../channel/channel.js';
import type { Point } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';
import type { HostBlock } from './host-block.js';
import { HostPages } from './host-pages.js';
import { PinnedBuffers } from './pinned-buffers.js';

/** Small blocks start on multiples of this: copies run at full speed and neighbours share no cache line. */
const GRAIN = 256;
const SLAB = 256 * 1024;
const LARGEST_SMALL = 64 * 1024;
const EMPTY = new ArrayBuffer(0);

interface Retiring {
  readonly block: HostBlock;
  readonly uses: readonly Point[];
}

export class HostArena {
  readonly #channel: Channel;
  readonly #handles: HandleTable;
  readonly #pages: HostPages;
  readonly #pinned: PinnedBuffers;
  /** Free small blocks by the exponent of their size. */
  readonly #small: Map<number, HostBlock[]> = new Map();
  #retiring: Retiring[] = [];
  #liveBytes = 0;

  constructor(channel: Channel, handles: HandleTable) {
    this.#channel = channel;
    this.#handles = handles;
    this.#pages = new HostPages(channel, handles);
    this.#pinned = new PinnedBuffers(channel, this.#pages);
  }

  /** Bytes handed out and not returned. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /** Are there returned blocks that the device may still use? */
  get isSettling(): boolean {
    return this.#retiring.length > 0;
  }

  /**
   * Makes the first chunk before anybody needs it: page-locking may wait for running kernels, and a kernel may run until
   * something is copied that stands behind this.
   */
  prepare(): void {
    this.#pages.prepare();
  }

  /** A piece for the library itself. Throws OutOfMemoryError. */
  take(byteLength: number): HostBlock {
    this.reclaim();
    const block = byteLength <= LARGEST_SMALL ? this.#takeSmall(byteLength) : this.#pages.take(byteLength);
    this.#liveBytes += byteLength;
    return block;
  }

  /** A SharedArrayBuffer for a pinned array alone. Throws OutOfMemoryError. */
  takePinned(byteLength: number): HostBlock {
    this.reclaim();
    const block = this.#pinned.take(byteLength);
    this.#liveBytes += byteLength;
    return block;
  }

  /** A block of memory that exists and stays where it is; copies wait on the device until it is registered. */
  adopt(buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): HostBlock {
    this.reclaim();
    const block = this.promise(byteLength);
    try {
      return this.keep(block, buffer, byteOffset, isLocked);
    } catch (error) {
      this.cancel(block);
      throw error;
    }
  }

  /** A block whose memory comes later, by `keep`; copies that name it wait on the device meanwhile. */
  promise(byteLength: number): HostBlock {
    const handle = this.#handles.take();
    this.#liveBytes += byteLength;
    return { buffer: EMPTY, byteOffset: 0, byteLength, handle, handleOffset: 0, cutBytes: 0, chunk: undefined };
  }

  /** The memory of a promised block. An ordinary ArrayBuffer is detached. */
  keep(block: HostBlock, buffer: ArrayBufferLike, byteOffset: number, isLocked: boolean): HostBlock {
    this.#channel.register(block.handle, buffer, byteOffset, block.byteLength, isLocked);
    const kept = { ...block, buffer, byteOffset };
    if (isLocked) this.#pages.lock(kept);
    return kept;
  }

  /** Nothing submitted names the promised block, and nothing was kept for it. */
  cancel(block: HostBlock): void {
    this.#liveBytes -= block.byteLength;
    this.#handles.giveBackNow(block.handle);
  }

  /** Memory that the device's worker makes and the device writes, which `collect` brings here as it is. */
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

  /** After every use of the block. Rejects with OutOfMemoryError where the worker had no memory: then nothing was written. */
  async collect(block: HostBlock): Promise<ArrayBuffer> {
    this.#liveBytes -= block.byteLength;
    try {
      return await this.#channel.collect(block.handle);
    } finally {
      this.#handles.giveBackNow(block.handle);
    }
  }

  /** Is any of these bytes page-locked for this device already? */
  isLocked(buffer: ArrayBufferLike, byteOffset: number, byteLength: number): boolean {
    this.reclaim();
    return this.#pinned.isLocked(buffer) || this.#pages.isLocked(buffer, byteOffset, byteLength);
  }

  /** Returns a block after the operations at these points. */
  giveBack(block: HostBlock, uses: readonly Point[]): void {
    this.#liveBytes -= block.byteLength;
    const open = uses.filter((use) => !use.timeline.hasReached(use.ticket));
    if (open.length === 0) this.#release(block);
    else this.#retiring.push({ block, uses: open });
  }

  /** Takes back what the device has finished with. */
  reclaim(): void {
    if (this.#retiring.length === 0) return;
    const rest: Retiring[] = [];
    for (const retiring of this.#retiring) {
      if (retiring.uses.every((use) => use.timeline.hasReached(use.ticket))) this.#release(retiring.block);
      else rest.push(retiring);
    }
    this.#retiring = rest;
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
    return { ...block, byteLength };
  }

  #smallStack(exponent: number): HostBlock[] {
    let stack = this.#small.get(exponent);
    if (stack === undefined) this.#small.set(exponent, (stack = []));
    return stack;
  }

  #release(block: HostBlock): void {
    if (block.pinnedBytes !== undefined) this.#pinned.release(block);
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
