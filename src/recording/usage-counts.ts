// What a usage counts, and what of it the record of an operation tells.
import {
  AllocArrayRecord,
  AllocRecord,
  BatchedCopy,
  CopyArrayRecord,
  CopyBatchRecord,
  CopyRecord,
  CopyStridedRecord,
  MemorySpace,
  Opcode,
  RecordHeader,
  StridedAxis,
  TextureShape,
} from '../protocol/protocol.gen.js';

/** Of one device. A request that shares a batch has its part of each number, which then is no whole one. */
export interface UsageCounts {
  /** Milliseconds for which the device worked on the operations, without waits. Operations that ran at the same time both count. */
  deviceMs: number;
  /** Operations that were submitted: those that `operations$` emits. */
  operations: number;
  /** Launches of kernels and of graphs. */
  launches: number;
  /** Copied from the host to the device. */
  bytesToDevice: number;
  /** Copied from the device to the host. */
  bytesToHost: number;
  /** Copied within the device. */
  bytesOnDevice: number;
  /** Copied from or to another device. */
  bytesBetweenDevices: number;
  /** Of arrays and textures that were allocated, and of memory that the library needed for operations. */
  allocatedBytes: number;
}

type Direction = 'bytesToDevice' | 'bytesToHost' | 'bytesOnDevice' | 'bytesBetweenDevices';

export function noCounts(): UsageCounts {
  return {
    deviceMs: 0,
    operations: 0,
    launches: 0,
    bytesToDevice: 0,
    bytesToHost: 0,
    bytesOnDevice: 0,
    bytesBetweenDevices: 0,
    allocatedBytes: 0,
  };
}

/** By TextureFormat. */
const BYTES_OF_FORMAT = [1, 2, 4, 1, 2, 4, 2, 4];
const WORD = 2;
const HALF = 1;

/** Reads the record that the encoder's block has. Fields of 64 bits are sizes, below 2^53. */
export class RecordReader {
  readonly #u32: Uint32Array;
  readonly #u16: Uint16Array;
  readonly #u8: Uint8Array;

  constructor(block: Uint8Array<ArrayBuffer>) {
    this.#u32 = new Uint32Array(block.buffer);
    this.#u16 = new Uint16Array(block.buffer);
    this.#u8 = new Uint8Array(block.buffer);
  }

  /** The handle of the first memory that the record names. */
  get handle(): number {
    return this.#u32[RecordHeader.BYTE_SIZE >> WORD] as number;
  }

  /** The bytes that the record allocates; undefined for other records. */
  allocated(opcode: number): number | undefined {
    if (opcode === Opcode.ALLOC) return this.#wide(AllocRecord.BYTES);
    return opcode === Opcode.ALLOC_ARRAY ? this.#wide(AllocArrayRecord.BYTES) : undefined;
  }

  /** Calls `add` with what the record copies. */
  copied(opcode: number, add: (direction: Direction, bytes: number) => void): void {
    switch (opcode) {
      case Opcode.COPY:
        this.#copy(0, add);
        break;
      case Opcode.COPY_BATCH: {
        const count = this.#u32[CopyBatchRecord.COUNT >> WORD] as number;
        // An entry has the fields of a CopyRecord without its header.
        for (let n = 0; n < count; n++) this.#copy(CopyBatchRecord.BYTE_SIZE + n * BatchedCopy.BYTE_SIZE - RecordHeader.BYTE_SIZE, add);
        break;
      }
      case Opcode.COPY_STRIDED: {
        let bytes = this.#u32[CopyStridedRecord.ELEMENT_BYTES >> WORD] as number;
        const rank = this.#u32[CopyStridedRecord.RANK >> WORD] as number;
        for (let axis = 0; axis < rank; axis++)
          bytes *= this.#wide(CopyStridedRecord.BYTE_SIZE + axis * StridedAxis.BYTE_SIZE + StridedAxis.EXTENT);
        add('bytesOnDevice', bytes);
        break;
      }
      case Opcode.COPY_ARRAY:
        add('bytesOnDevice', this.#textureBytes(CopyArrayRecord.SHAPE));
    }
  }

  #copy(at: number, add: (direction: Direction, bytes: number) => void): void {
    const [u16, u32] = [this.#u16, this.#u32];
    const toHost = u16[(at + CopyRecord.DST_SPACE) >> HALF] === MemorySpace.HOST;
    const fromHost = u16[(at + CopyRecord.SRC_SPACE) >> HALF] === MemorySpace.HOST;
    const isHere = u32[(at + CopyRecord.DST_DEVICE) >> WORD] === u32[(at + CopyRecord.SRC_DEVICE) >> WORD];
    const bytes = this.#wide(at + CopyRecord.BYTES);
    if (toHost !== fromHost) add(toHost ? 'bytesToHost' : 'bytesToDevice', bytes);
    else if (!toHost) add(isHere ? 'bytesOnDevice' : 'bytesBetweenDevices', bytes);
  }

  #textureBytes(shape: number): number {
    const u32 = this.#u32;
    const extent = (field: number): number => Math.max(u32[(shape + field) >> WORD] as number, 1);
    const elements = extent(TextureShape.WIDTH) * extent(TextureShape.HEIGHT) * extent(TextureShape.DEPTH);
    return (
      elements *
      (this.#u8[shape + TextureShape.CHANNELS] as number) *
      (BYTES_OF_FORMAT[this.#u8[shape + TextureShape.FORMAT] as number] as number)
    );
  }

  #wide(offset: number): number {
    const at = offset >> WORD;
    return (this.#u32[at + 1] as number) * 2 ** 32 + (this.#u32[at] as number);
  }
}
