// Encodes batches of copies: a part of Encoder.
// Thread: owner.
import { BatchedCopy, CopyBatchRecord, type MemorySpace, Opcode } from './protocol.gen.js';

/** What a handle names. */
export interface NamedMemory {
  readonly space: MemorySpace;
  readonly handle: number;
}

const TWO_32 = 4294967296;

export class BatchEncoder {
  readonly #u16: Uint16Array;
  readonly #u32: Uint32Array;
  readonly #header: (opcode: Opcode, size: number, stream: number) => number;

  /** `buffer`: the record block. `header` writes the header of a record and returns its size. */
  constructor(buffer: ArrayBuffer, header: (opcode: Opcode, size: number, stream: number) => number) {
    this.#u16 = new Uint16Array(buffer);
    this.#u32 = new Uint32Array(buffer);
    this.#header = header;
  }

  /** Write the `count` copies with `copy` first. */
  batch(stream: number, count: number): number {
    this.#u32[CopyBatchRecord.COUNT >> 2] = count;
    return this.#header(Opcode.COPY_BATCH, CopyBatchRecord.BYTE_SIZE + count * BatchedCopy.BYTE_SIZE, stream);
  }

  /** Both ends belong to the device with this channel id. `flags` are CopyFlags. */
  copy(
    index: number,
    device: number,
    dst: NamedMemory,
    dstOffset: number,
    src: NamedMemory,
    srcOffset: number,
    bytes: number,
    flags: number,
  ): void {
    const at = CopyBatchRecord.BYTE_SIZE + index * BatchedCopy.BYTE_SIZE;
    const u32 = this.#u32;
    u32[(at + BatchedCopy.DST_HANDLE) >> 2] = dst.handle;
    u32[(at + BatchedCopy.SRC_HANDLE) >> 2] = src.handle;
    this.#u16[(at + BatchedCopy.DST_SPACE) >> 1] = dst.space;
    this.#u16[(at + BatchedCopy.SRC_SPACE) >> 1] = src.space;
    u32[(at + BatchedCopy.DST_DEVICE) >> 2] = device;
    u32[(at + BatchedCopy.SRC_DEVICE) >> 2] = device;
    u32[(at + BatchedCopy.FLAGS) >> 2] = flags;
    this.#u64(at + BatchedCopy.DST_OFFSET, dstOffset);
    this.#u64(at + BatchedCopy.SRC_OFFSET, srcOffset);
    this.#u64(at + BatchedCopy.BYTES, bytes);
  }

  #u64(at: number, value: number): void {
    this.#u32[at >> 2] = value;
    this.#u32[(at >> 2) + 1] = value / TWO_32;
  }
}
