// Encodes the records that make textures and copy their elements: a part of Encoder.
// Thread: owner.
import {
  AllocArrayRecord,
  CopyArrayRecord,
  CreateTextureRecord,
  Opcode,
  type TextureAddress,
  type TextureFilter,
  type TextureFormat,
  TextureShape,
} from './protocol.gen.js';

/** The elements of a texture: TextureShape. */
export interface TextureShapeOf {
  readonly width: number;
  /** 0 in one dimension, as `depth` in two. */
  readonly height: number;
  readonly depth: number;
  readonly format: TextureFormat;
  readonly channels: number;
  readonly hasSurface: boolean;
}

/** How a texture is read. */
export interface Sampling {
  readonly filter: TextureFilter;
  readonly address: readonly [x: TextureAddress, y: TextureAddress, z: TextureAddress];
  /** TextureFlags. */
  readonly flags: number;
}

/** Encoder writes the headers of all records. Returns the size. */
type WriteHeader = (opcode: Opcode, size: number, stream: number) => number;

export class TextureEncoder {
  readonly #view: DataView;
  readonly #header: WriteHeader;

  /** `buffer`: the record block. */
  constructor(buffer: ArrayBuffer, header: WriteHeader) {
    this.#view = new DataView(buffer);
    this.#header = header;
  }

  /** The memory of a texture; `bytes` is the size of all elements. */
  allocArray(stream: number, handle: number, bytes: number, shape: TextureShapeOf): number {
    this.#u32(AllocArrayRecord.HANDLE, handle);
    this.#u64(AllocArrayRecord.BYTES, bytes);
    this.#shape(AllocArrayRecord.SHAPE, shape);
    return this.#header(Opcode.ALLOC_ARRAY, AllocArrayRecord.BYTE_SIZE, stream);
  }

  /** `pitch` is 0 for the memory of a texture. */
  create(stream: number, handle: number, source: number, offset: number, pitch: number, shape: TextureShapeOf, how: Sampling): number {
    this.#u32(CreateTextureRecord.HANDLE, handle);
    this.#u32(CreateTextureRecord.SOURCE, source);
    this.#u64(CreateTextureRecord.OFFSET, offset);
    this.#u64(CreateTextureRecord.PITCH, pitch);
    this.#shape(CreateTextureRecord.SHAPE, shape);
    this.#view.setUint8(CreateTextureRecord.FILTER, how.filter);
    const [x, y, z] = how.address;
    this.#view.setUint8(CreateTextureRecord.ADDRESS_X, x);
    this.#view.setUint8(CreateTextureRecord.ADDRESS_Y, y);
    this.#view.setUint8(CreateTextureRecord.ADDRESS_Z, z);
    this.#u32(CreateTextureRecord.FLAGS, how.flags);
    return this.#header(Opcode.CREATE_TEXTURE, CreateTextureRecord.BYTE_SIZE, stream);
  }

  /** All elements, from or to linear memory. */
  copy(stream: number, array: number, memory: number, offset: number, shape: TextureShapeOf, isUpload: boolean): number {
    this.#u32(CopyArrayRecord.ARRAY, array);
    this.#u32(CopyArrayRecord.MEMORY, memory);
    this.#u64(CopyArrayRecord.OFFSET, offset);
    this.#shape(CopyArrayRecord.SHAPE, shape);
    this.#u32(CopyArrayRecord.IS_UPLOAD, isUpload ? 1 : 0);
    return this.#header(Opcode.COPY_ARRAY, CopyArrayRecord.BYTE_SIZE, stream);
  }

  #shape(at: number, { width, height, depth, format, channels, hasSurface }: TextureShapeOf): void {
    this.#u32(at + TextureShape.WIDTH, width);
    this.#u32(at + TextureShape.HEIGHT, height);
    this.#u32(at + TextureShape.DEPTH, depth);
    this.#view.setUint8(at + TextureShape.FORMAT, format);
    this.#view.setUint8(at + TextureShape.CHANNELS, channels);
    this.#view.setUint16(at + TextureShape.HAS_SURFACE, hasSurface ? 1 : 0, true);
  }

  #u32(at: number, value: number): void {
    this.#view.setUint32(at, value, true);
  }

  #u64(at: number, value: number): void {
    this.#view.setBigUint64(at, BigInt(value), true);
  }
}
