// Page-locked host memory, cut from one growable SharedArrayBuffer that the device's worker made and holds.
//
// The buffer starts on a page, keeps its address when it grows and costs nothing until touched. It grows by chunks; each
// chunk is registered with the device once, which takes milliseconds on the worker and none here: copies that name it
// wait on the device until it is locked. Small blocks come from slabs in powers of two, larger ones from a list of free
// ranges, best fit. What does not fit gets a SharedArrayBuffer and a registration of its own.
//
// A block that the device may still use is not cut again before its last use was seen completed. Memory of the user's
// is a block with a registration of its own too: it ends in the same way, and then the memory is the user's again.
// Thread: owner.
import { OutOfMemoryError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';
import { growableSharedBuffer } from '../channel/shared-buffer.js';
import type { Point } from '../timeline/timeline.js';
import type { HandleTable } from './handles.js';

const MIB = 2 ** 20;
const FIRST_CHUNK = 16 * MIB;
const LARGEST_CHUNK = 256 * MIB;
/** Beyond it a block gets a buffer of its own: it would keep a quarter of the arena from everybody else. */
const LARGEST_BLOCK = 1024 * MIB;
/** Blocks start on multiples of this: copies run at full speed and neighbours share no cache line. */
const GRAIN = 256;
const SLAB = 256 * 1024;
const LARGEST_SMALL = 64 * 1024;
const PAGE = 4096;
const EMPTY = new ArrayBuffer(0);

/** A piece of page-locked memory. */
export interface HostBlock {
  readonly buffer: ArrayBufferLike;
  /** Where it starts in `buffer`. */
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly handle: number;
  /** Where it starts in what `handle` names. */
  readonly handleOffset: number;
  /** Cut from the arena or a slab: its size there, or 0 for a buffer of its own. */
  readonly cutBytes: number;
  readonly chunk: Chunk | undefined;
}

interface Chunk {
  readonly handle: number;
  readonly start: number;
}

interface Range {
  readonly chunk: Chunk;
  /** In the arena. */
  start: number;
  bytes: number;
}

interface Retiring {
  readonly block: HostBlock;
  readonly uses: readonly Point[];
}

export class HostArena {
  readonly #channel: Channel;
  readonly #handles: HandleTable;
  #nextChunk = FIRST_CHUNK;
  /** Sorted by start; neighbours of one chunk are joined. */
  readonly #free: Range[] = [];
  /** Free small blocks by the exponent of their size. */
  readonly #small: Map<number, HostBlock[]> = new Map();
  #retiring: Retiring[] = [];
  /** Page-locked, and no part of the arena. */
  readonly #locked: Set<HostBlock> = new Set();
  #liveBytes = 0;

  constructor(channel: Channel, handles: HandleTable) {
    this.#channel = channel;
    this.#handles = handles;
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
    this.#grow(0);
  }

  take(byteLength: number): HostBlock {
    this.reclaim();
    const block = byteLength <= LARGEST_SMALL ? this.#takeSmall(byteLength) : this.#takeLarge(byteLength);
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
    if (isLocked) this.#locked.add(kept);
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
    if (buffer === this.#channel.arena) return true;
    this.reclaim();
    const end = byteOffset + byteLength;
    return [...this.#locked].some(
      (block) => block.buffer === buffer && block.byteOffset < end && byteOffset < block.byteOffset + block.byteLength,
    );
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
      const slab = this.#takeLarge(SLAB);
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

  #takeLarge(byteLength: number): HostBlock {
    const bytes = roundUp(byteLength, GRAIN);
    if (bytes > LARGEST_BLOCK) return this.#takeOwn(byteLength);
    const range = this.#bestFit(bytes) ?? this.#grow(bytes);
    if (range === undefined) return this.#takeOwn(byteLength);
    const { chunk, start } = range;
    range.start += bytes;
    range.bytes -= bytes;
    if (range.bytes === 0) this.#free.splice(this.#free.indexOf(range), 1);
    return {
      buffer: this.#channel.arena,
      byteOffset: start,
      byteLength,
      handle: chunk.handle,
      handleOffset: start - chunk.start,
      cutBytes: bytes,
      chunk,
    };
  }

  #bestFit(bytes: number): Range | undefined {
    let best: Range | undefined;
    for (const range of this.#free) {
      if (range.bytes >= bytes && (best === undefined || range.bytes < best.bytes)) best = range;
    }
    return best;
  }

  /** A new chunk of at least this size, or undefined when the arena is full, or the system has no memory for it. */
  #grow(bytes: number): Range | undefined {
    const { arena } = this.#channel;
    const start = arena.byteLength;
    const size = roundUp(Math.max(bytes, this.#nextChunk), PAGE);
    if (start + size > arena.maxByteLength) return undefined;
    // The handle first: it may be refused, and what the arena has grown by without one is never found again.
    const handle = this.#handles.take();
    try {
      arena.grow(start + size);
    } catch {
      this.#handles.giveBackNow(handle);
      return undefined;
    }
    this.#channel.register(handle, arena, start, size, true);
    this.#nextChunk = Math.min(this.#nextChunk * 2, LARGEST_CHUNK);
    const range = { chunk: { handle, start }, start, bytes: size };
    this.#free.push(range);
    return range;
  }

  #takeOwn(byteLength: number): HostBlock {
    // Page-locking wants whole pages.
    const size = roundUp(byteLength, PAGE);
    const buffer = ownBuffer(size);
    const handle = this.#handles.take();
    this.#channel.register(handle, buffer, 0, buffer.byteLength, true);
    const block = { buffer, byteOffset: 0, byteLength, handle, handleOffset: 0, cutBytes: 0, chunk: undefined };
    this.#locked.add(block);
    return block;
  }

  #release(block: HostBlock): void {
    if (block.cutBytes === 0) {
      // The device lets go of the pages before the buffer can be collected: the worker holds it until then. What is
      // asked of the worker later, such as locking the same pages again, comes after.
      this.#locked.delete(block);
      void this.#channel.unregister(block.handle).then(
        () => this.#handles.giveBackNow(block.handle),
        () => undefined,
      );
    } else if (block.cutBytes <= LARGEST_SMALL) {
      this.#smallStack(Math.log2(block.cutBytes)).push(block);
    } else {
      this.#insert({ chunk: block.chunk as Chunk, start: block.byteOffset, bytes: block.cutBytes });
    }
  }

  #insert(range: Range): void {
    const free = this.#free;
    let at = free.findIndex((other) => other.start > range.start);
    if (at < 0) at = free.length;
    const before = free[at - 1];
    const after = free[at];
    const joinsBefore = before !== undefined && before.chunk === range.chunk && before.start + before.bytes === range.start;
    const joinsAfter = after !== undefined && after.chunk === range.chunk && range.start + range.bytes === after.start;
    if (joinsBefore) {
      before.bytes += range.bytes + (joinsAfter ? after.bytes : 0);
      if (joinsAfter) free.splice(at, 1);
    } else if (joinsAfter) {
      after.start = range.start;
      after.bytes += range.bytes;
    } else {
      free.splice(at, 0, range);
    }
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

/** Throws OutOfMemoryError. */
function ownBuffer(byteLength: number): SharedArrayBuffer {
  try {
    return growableSharedBuffer(byteLength, byteLength);
  } catch (cause) {
    const message = `There is no host memory for a block of ${byteLength} bytes.`;
    throw new OutOfMemoryError('ERR_MILLRACE_MEMORY', message, byteLength, 0, { cause });
  }
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
