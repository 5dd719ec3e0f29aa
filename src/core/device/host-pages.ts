// Page-locked pages. They are cut from the arena, one growable SharedArrayBuffer that the device's worker made and holds. If the arena has
// no room, a block gets a buffer with a registration of its own.
//
// The arena starts on a page, keeps its address when it grows, and takes no memory until it is touched. It grows by chunks. The worker
// registers each chunk once, which takes it milliseconds; copies that name the chunk wait, on the device, until it is locked. Cuts are whole
// pages, from a list of free ranges, by best fit.
// Thread: owner.
import { OutOfMemoryError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';
import { type GrowableSharedBuffer, growableSharedBuffer } from '../channel/host-buffers.js';
import type { HandleTable } from './handles.js';
import { type Chunk, type HostBlock, PAGE, roundUp } from './host-block.js';

const MIB = 2 ** 20;
const FIRST_CHUNK = 16 * MIB;
const LARGEST_CHUNK = 256 * MIB;
/** Larger blocks get a buffer of their own: one of them would take a quarter of the arena. */
const LARGEST_CUT = 1024 * MIB;

interface Range {
  readonly chunk: Chunk;
  /** The offset in the arena. */
  start: number;
  bytes: number;
}

export class HostPages {
  readonly #channel: Channel;
  readonly #handles: HandleTable;
  #nextChunk = FIRST_CHUNK;
  /** Sorted by start; neighbours of one chunk are joined. */
  readonly #free: Range[] = [];
  /** Page-locked blocks outside the arena, by handle. */
  readonly #locked: Map<number, HostBlock> = new Map();

  constructor(channel: Channel, handles: HandleTable) {
    this.#channel = channel;
    this.#handles = handles;
  }

  /** Makes the first chunk. */
  prepare(): void {
    this.#grow(0);
  }

  take(byteLength: number): HostBlock {
    return this.cut(byteLength) ?? this.own(ownBuffer(roundUp(byteLength, PAGE)), byteLength);
  }

  /** A part of the arena; undefined if it has no room. */
  cut(byteLength: number): HostBlock | undefined {
    const bytes = roundUp(byteLength, PAGE);
    if (bytes > LARGEST_CUT) return undefined;
    const range = this.#bestFit(bytes) ?? this.#grow(bytes);
    if (range === undefined) return undefined;
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

  /** Registers a buffer of whole pages and page-locks it. */
  own(buffer: SharedArrayBuffer, byteLength: number): HostBlock {
    const handle = this.#handles.take();
    this.#channel.register(handle, buffer, 0, buffer.byteLength, true);
    const block = { buffer, byteOffset: 0, byteLength, handle, handleOffset: 0, cutBytes: 0, chunk: undefined };
    this.lock(block);
    return block;
  }

  /** Notes a block of page-locked memory outside the arena. */
  lock(block: HostBlock): void {
    this.#locked.set(block.handle, block);
  }

  /** Is any of these bytes page-locked? */
  isLocked(buffer: ArrayBufferLike, byteOffset: number, byteLength: number): boolean {
    if (buffer === this.#channel.arena) return true;
    const end = byteOffset + byteLength;
    for (const block of this.#locked.values()) {
      if (block.buffer === buffer && block.byteOffset < end && byteOffset < block.byteOffset + block.byteLength) return true;
    }
    return false;
  }

  /** Nothing uses the block any more. */
  release(block: HostBlock): void {
    const { chunk, handle, cutBytes } = block;
    if (chunk !== undefined) {
      this.#insert({ chunk, start: chunk.start + block.handleOffset, bytes: cutBytes });
      return;
    }
    // The worker holds the buffer until the device has unlocked its pages. The worker answers requests in order, so a later request to
    // lock the same pages comes after.
    this.#locked.delete(handle);
    void this.#channel.unregister(handle).then(
      () => this.#handles.giveBackNow(handle),
      () => undefined,
    );
  }

  #bestFit(bytes: number): Range | undefined {
    let best: Range | undefined;
    for (const range of this.#free) {
      if (range.bytes >= bytes && (best === undefined || range.bytes < best.bytes)) best = range;
    }
    return best;
  }

  /** A new chunk of at least this size; undefined if the arena is full or the system has no memory. */
  #grow(bytes: number): Range | undefined {
    const { arena } = this.#channel;
    const start = arena.byteLength;
    const size = roundUp(Math.max(bytes, this.#nextChunk), PAGE);
    if (start + size > arena.maxByteLength) return undefined;
    // The handle is taken first, because that may throw: memory that the arena had grown by would then be lost.
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

/** Throws OutOfMemoryError. */
export function ownBuffer(byteLength: number): GrowableSharedBuffer {
  try {
    return growableSharedBuffer(byteLength, byteLength);
  } catch (cause) {
    const message = `The host has not enough memory for a block of ${byteLength} bytes.`;
    throw new OutOfMemoryError('ERR_MILLRACE_MEMORY', message, byteLength, 0, { cause });
  }
}
