// More than 400 lines: one method per record.
// Encodes records in the environment's record block: one method per record, which returns the record's size for `submit`.
//
// One block serves all streams of a thread, because the call that encodes a record also submits it. Fields are written through
// typed arrays over the block, and 64-bit fields as two halves, because a BigInt costs more than a launch. Records are
// little-endian, like every machine that this runs on.
// Thread: owner.
import {
  type AllocKind,
  AdoptRecord,
  AllocRecord,
  ArgKind,
  CopyRecord,
  CopyStridedRecord,
  ExternalRecord,
  FillRecord,
  FillStridedRecord,
  FreeRecord,
  HoldRecord,
  LaunchArg,
  LaunchRecord,
  FreeEventRecord,
  FreeGraphRecord,
  LaunchGraphRecord,
  type EventKind,
  RecordEventRecord,
  MAX_RECORD_BYTES,
  type MemorySpace,
  NopRecord,
  Opcode,
  RecordHeader,
  StreamCreateRecord,
  StreamDestroyRecord,
  StridedAxis,
  SubmitCall,
  UploadGraphRecord,
  WaitEventRecord,
  WaitRecord,
} from './protocol.gen.js';
import { BatchEncoder } from './batch-encoder.js';
import { TextureEncoder } from './texture-encoder.js';

const TWO_32 = 4294967296;
/** Shift from a byte offset to the index in a 32-bit view. */
const WORD = 2;
const FIRST_ARG_WORD = LaunchRecord.BYTE_SIZE >> WORD;
const ARG_WORDS = LaunchArg.BYTE_SIZE >> WORD;
const ARG_HANDLE_WORD = LaunchArg.HANDLE >> WORD;
const ARG_VALUE_WORD = LaunchArg.VALUE >> WORD;
const SIZE_SHIFT = LaunchArg.SIZE * 8;
const ACCESS_SHIFT = LaunchArg.ACCESS * 8;

// V8 folds constants of this module into the code that uses them. An imported object is loaded and checked at each use, which made up a
// third of the instructions that encode a launch.
const { MEMORY, SCALAR } = ArgKind;
const LAUNCH = Opcode.LAUNCH;
const LAUNCH_BYTES = LaunchRecord.BYTE_SIZE;
const LAUNCH_ARG_BYTES = LaunchArg.BYTE_SIZE;
const KERNEL_WORD = LaunchRecord.KERNEL >> WORD;
const ARG_COUNT_WORD = LaunchRecord.ARG_COUNT >> WORD;
const GRID_X_WORD = LaunchRecord.GRID_X >> WORD;
const GRID_Y_WORD = LaunchRecord.GRID_Y >> WORD;
const GRID_Z_WORD = LaunchRecord.GRID_Z >> WORD;
const BLOCK_X_WORD = LaunchRecord.BLOCK_X >> WORD;
const BLOCK_Y_WORD = LaunchRecord.BLOCK_Y >> WORD;
const BLOCK_Z_WORD = LaunchRecord.BLOCK_Z >> WORD;
const SHARED_BYTES_WORD = LaunchRecord.SHARED_BYTES >> WORD;
const FLAGS_WORD = LaunchRecord.FLAGS >> WORD;
const OPCODE_WORD = RecordHeader.OPCODE >> WORD;
const SIZE_WORD = RecordHeader.SIZE >> WORD;
const CALL_CHANNEL_WORD = (MAX_RECORD_BYTES + SubmitCall.CHANNEL) >> WORD;
const CALL_BYTES_WORD = (MAX_RECORD_BYTES + SubmitCall.BYTES) >> WORD;
const CALL_TICKET_WORD = (MAX_RECORD_BYTES + SubmitCall.TICKET) >> WORD;
const CALL_STATUS_WORD = (MAX_RECORD_BYTES + SubmitCall.STATUS) >> WORD;
const STREAM_WORD = RecordHeader.STREAM >> WORD;

export class Encoder {
  /** The record block, which `openPort` gets, and a SubmitCall. */
  readonly block: Uint8Array<ArrayBuffer>;
  /** The records of textures, in the same block. */
  readonly textures: TextureEncoder;
  /** Batches of copies, in the same block. */
  readonly batches: BatchEncoder;
  /** Of the record that was encoded last. */
  opcode: Opcode = Opcode.NOP;
  readonly #u16: Uint16Array;
  readonly #u32: Uint32Array;
  readonly #f32: Float32Array;
  readonly #f64: Float64Array;

  constructor() {
    const buffer = new ArrayBuffer(MAX_RECORD_BYTES + SubmitCall.BYTE_SIZE);
    this.block = new Uint8Array(buffer);
    const header = (opcode: Opcode, size: number, stream: number): number => this.#header(opcode, size, stream);
    this.textures = new TextureEncoder(buffer, header);
    this.batches = new BatchEncoder(buffer, header);
    this.#u16 = new Uint16Array(buffer);
    this.#u32 = new Uint32Array(buffer);
    this.#f32 = new Float32Array(buffer);
    this.#f64 = new Float64Array(buffer);
  }

  /** From now on every record that is submitted has the label that the function returns. */
  keepLabels(labelOf: () => number): void {
    const { call } = Encoder.prototype;
    this.call = (channel, bytes) => {
      this.#u16[RecordHeader.LABEL >> 1] = labelOf();
      call.call(this, channel, bytes);
    };
  }

  /** Says what the next call of the addon's `submit` submits. */
  call(channel: number, bytes: number): void {
    this.#u32[CALL_CHANNEL_WORD] = channel;
    this.#u32[CALL_BYTES_WORD] = bytes;
  }

  /** The ticket that `submit` gave, or minus the Status with which it refused the record. */
  get answer(): number {
    const u32 = this.#u32;
    const status = u32[CALL_STATUS_WORD] as number;
    if (status !== 0) return -status;
    const high = u32[CALL_TICKET_WORD + 1] as number;
    const low = u32[CALL_TICKET_WORD] as number;
    return high === 0 ? low : high * TWO_32 + low;
  }

  /** `foreign` is a driver stream that Millrace did not create, `partition` the id of a partition. */
  streamCreate(stream: number, priority: number, foreign?: bigint, partition: number = 0): number {
    this.#u32[StreamCreateRecord.PRIORITY >> WORD] = priority;
    this.#u32[StreamCreateRecord.IS_FOREIGN >> WORD] = foreign === undefined ? 0 : 1;
    this.#u64(StreamCreateRecord.FOREIGN, Number((foreign ?? 0n) & 0xffffffffn), Number((foreign ?? 0n) >> 32n));
    this.#u32[StreamCreateRecord.PARTITION >> WORD] = partition;
    return this.#header(Opcode.STREAM_CREATE, StreamCreateRecord.BYTE_SIZE, stream);
  }

  streamDestroy(stream: number): number {
    return this.#header(Opcode.STREAM_DESTROY, StreamDestroyRecord.BYTE_SIZE, stream);
  }

  alloc(stream: number, handle: number, bytes: number, kind: AllocKind): number {
    this.#u32[AllocRecord.HANDLE >> WORD] = handle;
    this.#u32[AllocRecord.KIND >> WORD] = kind;
    this.#u64(AllocRecord.BYTES, bytes);
    return this.#header(Opcode.ALLOC, AllocRecord.BYTE_SIZE, stream);
  }

  adopt(stream: number, handle: number, source: number, bytes: number): number {
    this.#u32[AdoptRecord.HANDLE >> WORD] = handle;
    this.#u32[AdoptRecord.SOURCE >> WORD] = source;
    this.#u64(AdoptRecord.BYTES, bytes);
    return this.#header(Opcode.ADOPT, AdoptRecord.BYTE_SIZE, stream);
  }

  free(stream: number, handle: number): number {
    this.#u32[FreeRecord.HANDLE >> WORD] = handle;
    return this.#header(Opcode.FREE, FreeRecord.BYTE_SIZE, stream);
  }

  /** `low` and `high` are the halves of the pattern; the element is in its low bytes. */
  fill(stream: number, handle: number, elementBytes: number, offset: number, count: number, low: number, high: number): number {
    const u32 = this.#u32;
    u32[FillRecord.HANDLE >> WORD] = handle;
    u32[FillRecord.ELEMENT_BYTES >> WORD] = elementBytes;
    this.#u64(FillRecord.OFFSET, offset);
    this.#u64(FillRecord.COUNT, count);
    u32[FillRecord.PATTERN >> WORD] = low;
    u32[(FillRecord.PATTERN >> WORD) + 1] = high;
    return this.#header(Opcode.FILL, FillRecord.BYTE_SIZE, stream);
  }

  /** `dstDevice` and `srcDevice` are the channel ids of the devices that own the handles. `flags` are CopyFlags. */
  copy(
    stream: number,
    dstDevice: number,
    dstSpace: MemorySpace,
    dstHandle: number,
    dstOffset: number,
    srcDevice: number,
    srcSpace: MemorySpace,
    srcHandle: number,
    srcOffset: number,
    bytes: number,
    flags = 0,
  ): number {
    const u32 = this.#u32;
    u32[CopyRecord.FLAGS >> WORD] = flags;
    u32[CopyRecord.DST_HANDLE >> WORD] = dstHandle;
    u32[CopyRecord.SRC_HANDLE >> WORD] = srcHandle;
    u32[CopyRecord.DST_DEVICE >> WORD] = dstDevice;
    u32[CopyRecord.SRC_DEVICE >> WORD] = srcDevice;
    this.#u16[CopyRecord.DST_SPACE >> 1] = dstSpace;
    this.#u16[CopyRecord.SRC_SPACE >> 1] = srcSpace;
    this.#u64(CopyRecord.DST_OFFSET, dstOffset);
    this.#u64(CopyRecord.SRC_OFFSET, srcOffset);
    this.#u64(CopyRecord.BYTES, bytes);
    return this.#header(Opcode.COPY, CopyRecord.BYTE_SIZE, stream);
  }

  /** Write the `axes` axes with `stridedAxis` first. */
  copyStrided(
    stream: number,
    dstHandle: number,
    dstOffset: number,
    srcHandle: number,
    srcOffset: number,
    elementBytes: number,
    axes: number,
  ): number {
    const u32 = this.#u32;
    u32[CopyStridedRecord.DST_HANDLE >> WORD] = dstHandle;
    u32[CopyStridedRecord.SRC_HANDLE >> WORD] = srcHandle;
    u32[CopyStridedRecord.ELEMENT_BYTES >> WORD] = elementBytes;
    u32[CopyStridedRecord.RANK >> WORD] = axes;
    this.#u64(CopyStridedRecord.DST_OFFSET, dstOffset);
    this.#u64(CopyStridedRecord.SRC_OFFSET, srcOffset);
    return this.#header(Opcode.COPY_STRIDED, CopyStridedRecord.BYTE_SIZE + axes * StridedAxis.BYTE_SIZE, stream);
  }

  /** As `fill`, over `axes` axes. Write them with `stridedAxis` first. */
  fillStrided(stream: number, handle: number, elementBytes: number, offset: number, axes: number, low: number, high: number): number {
    const u32 = this.#u32;
    u32[FillStridedRecord.HANDLE >> WORD] = handle;
    u32[FillStridedRecord.ELEMENT_BYTES >> WORD] = elementBytes;
    u32[FillStridedRecord.RANK >> WORD] = axes;
    this.#u64(FillStridedRecord.OFFSET, offset);
    this.#u64(FillStridedRecord.PATTERN, low, high);
    return this.#header(Opcode.FILL_STRIDED, FillStridedRecord.BYTE_SIZE + axes * StridedAxis.BYTE_SIZE, stream);
  }

  /** Writes one axis after the fixed part of a strided record, strides in bytes. The offset is the same for copies and fills. */
  stridedAxis(index: number, extent: number, dstStride: number, srcStride: number): void {
    const at = CopyStridedRecord.BYTE_SIZE + index * StridedAxis.BYTE_SIZE;
    this.#u64(at + StridedAxis.EXTENT, extent);
    this.#u64(at + StridedAxis.DST_STRIDE, dstStride, Math.floor(dstStride / TWO_32));
    this.#u64(at + StridedAxis.SRC_STRIDE, srcStride, Math.floor(srcStride / TWO_32));
  }

  recordEvent(stream: number, handle: number, kind: EventKind): number {
    this.#u32[RecordEventRecord.HANDLE >> WORD] = handle;
    this.#u32[RecordEventRecord.KIND >> WORD] = kind;
    return this.#header(Opcode.RECORD_EVENT, RecordEventRecord.BYTE_SIZE, stream);
  }

  freeEvent(stream: number, handle: number): number {
    this.#u32[FreeEventRecord.HANDLE >> WORD] = handle;
    return this.#header(Opcode.FREE_EVENT, FreeEventRecord.BYTE_SIZE, stream);
  }

  waitEvent(stream: number, handle: number): number {
    this.#u32[WaitEventRecord.HANDLE >> WORD] = handle;
    return this.#header(Opcode.WAIT_EVENT, WaitEventRecord.BYTE_SIZE, stream);
  }

  hold(stream: number): number {
    return this.#header(Opcode.HOLD, HoldRecord.BYTE_SIZE, stream);
  }

  /** `device` is the channel id of the device of the stream `target`. */
  wait(stream: number, device: number, target: number, ticket: number): number {
    this.#u32[WaitRecord.DEVICE >> WORD] = device;
    this.#u32[WaitRecord.TARGET >> WORD] = target;
    this.#u64(WaitRecord.TICKET, ticket);
    return this.#header(Opcode.WAIT, WaitRecord.BYTE_SIZE, stream);
  }

  nop(stream: number): number {
    return this.#header(Opcode.NOP, NopRecord.BYTE_SIZE, stream);
  }

  // A launch is encoded arguments first and header last. The waits that its arrays need are found while the arguments are written.
  // A wait record is shorter than the fixed part of a launch, so encoding one does not overwrite the arguments.

  memoryArg(index: number, access: number, handle: number, offset: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    const u32 = this.#u32;
    u32[at] = MEMORY | (access << ACCESS_SHIFT);
    u32[at + ARG_HANDLE_WORD] = handle;
    u32[at + ARG_VALUE_WORD] = offset;
    u32[at + ARG_VALUE_WORD + 1] = offset / TWO_32;
  }

  /** A variable of the kernel's module, which the kernel accesses without a parameter. */
  variableArg(index: number, access: number, handle: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    const u32 = this.#u32;
    u32[at] = ArgKind.VARIABLE | (access << ACCESS_SHIFT);
    u32[at + ARG_HANDLE_WORD] = handle;
    u32[at + ARG_VALUE_WORD] = 0;
    u32[at + ARG_VALUE_WORD + 1] = 0;
  }

  /** The memory of the next entry, a memory argument or a pointer, is that of the device with this channel id: `bytes` of it. */
  elsewhereArg(index: number, device: number, space: MemorySpace, bytes: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    this.#u32[at] = ArgKind.ELSEWHERE | (space << SIZE_SHIFT);
    this.#u32[at + ARG_HANDLE_WORD] = device;
    this.#u32[at + ARG_VALUE_WORD] = bytes;
    this.#u32[at + ARG_VALUE_WORD + 1] = bytes / TWO_32;
  }

  /** A parameter by value: `size` bytes, at this offset of those that `behindArgs` writes. */
  bytesArg(index: number, size: number, offset: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    const u32 = this.#u32;
    u32[at] = ArgKind.BYTES | (size << SIZE_SHIFT);
    u32[at + ARG_VALUE_WORD] = offset;
    u32[at + ARG_VALUE_WORD + 1] = 0;
  }

  /** A pointer at offset `place` of the latest parameter by value. */
  memberArg(index: number, access: number, place: number, handle: number, offset: number): void {
    this.memoryArg(index, access, handle, offset);
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    this.#u32[at] = ArgKind.MEMBER | (access << ACCESS_SHIFT) | (place << SIZE_SHIFT);
  }

  /** Writes the bytes behind the entries of a launch. */
  behindArgs(argCount: number, bytes: Uint8Array): void {
    this.block.set(bytes, LaunchRecord.BYTE_SIZE + argCount * LaunchArg.BYTE_SIZE);
  }

  /** An integer of up to 4 bytes in `low`, or a larger one in two halves. */
  intArg(index: number, size: number, low: number, high: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    const u32 = this.#u32;
    u32[at] = SCALAR | (size << SIZE_SHIFT);
    u32[at + ARG_VALUE_WORD] = low;
    u32[at + ARG_VALUE_WORD + 1] = high;
  }

  f32Arg(index: number, value: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    this.#u32[at] = SCALAR | (4 << SIZE_SHIFT);
    this.#f32[at + ARG_VALUE_WORD] = value;
  }

  f64Arg(index: number, value: number): void {
    const at = FIRST_ARG_WORD + index * ARG_WORDS;
    this.#u32[at] = SCALAR | (8 << SIZE_SHIFT);
    this.#f64[(at + ARG_VALUE_WORD) >> 1] = value;
  }

  /** `valueBytes` is how many bytes `behindArgs` wrote. */
  launch(
    stream: number,
    kernel: number,
    argCount: number,
    gridX: number,
    gridY: number,
    gridZ: number,
    blockX: number,
    blockY: number,
    blockZ: number,
    sharedBytes: number,
    flags: number,
    valueBytes: number,
  ): number {
    const u32 = this.#u32;
    u32[KERNEL_WORD] = kernel;
    u32[ARG_COUNT_WORD] = argCount;
    u32[GRID_X_WORD] = gridX;
    u32[GRID_Y_WORD] = gridY;
    u32[GRID_Z_WORD] = gridZ;
    u32[BLOCK_X_WORD] = blockX;
    u32[BLOCK_Y_WORD] = blockY;
    u32[BLOCK_Z_WORD] = blockZ;
    u32[SHARED_BYTES_WORD] = sharedBytes;
    u32[FLAGS_WORD] = flags;
    return this.#header(LAUNCH, LAUNCH_BYTES + argCount * LAUNCH_ARG_BYTES + valueBytes, stream);
  }

  /** The entries of the slots were written as arguments. */
  launchGraph(stream: number, graph: number, argCount: number): number {
    const size = LaunchGraphRecord.BYTE_SIZE + argCount * LaunchArg.BYTE_SIZE;
    // Arguments are written where a launch has them.
    if (argCount > 0)
      this.block.copyWithin(LaunchGraphRecord.BYTE_SIZE, LaunchRecord.BYTE_SIZE, LaunchRecord.BYTE_SIZE + argCount * LaunchArg.BYTE_SIZE);
    this.#u32[LaunchGraphRecord.GRAPH >> WORD] = graph;
    this.#u32[LaunchGraphRecord.ARG_COUNT >> WORD] = argCount;
    return this.#header(Opcode.LAUNCH_GRAPH, size, stream);
  }

  /** The memory was written as arguments. */
  external(stream: number, argCount: number): number {
    const size = ExternalRecord.BYTE_SIZE + argCount * LaunchArg.BYTE_SIZE;
    this.block.copyWithin(ExternalRecord.BYTE_SIZE, LaunchRecord.BYTE_SIZE, LaunchRecord.BYTE_SIZE + argCount * LaunchArg.BYTE_SIZE);
    this.#u32[ExternalRecord.ARG_COUNT >> WORD] = argCount;
    this.#u32[(ExternalRecord.ARG_COUNT >> WORD) + 1] = 0;
    return this.#header(Opcode.EXTERNAL, size, stream);
  }

  uploadGraph(stream: number, graph: number): number {
    this.#u32[UploadGraphRecord.GRAPH >> WORD] = graph;
    return this.#header(Opcode.UPLOAD_GRAPH, UploadGraphRecord.BYTE_SIZE, stream);
  }

  freeGraph(stream: number, graph: number): number {
    this.#u32[FreeGraphRecord.GRAPH >> WORD] = graph;
    return this.#header(Opcode.FREE_GRAPH, FreeGraphRecord.BYTE_SIZE, stream);
  }

  #header(opcode: Opcode, size: number, stream: number): number {
    const u32 = this.#u32;
    // The opcode and the label share a word; `keepLabels` sets the label.
    u32[OPCODE_WORD] = opcode;
    u32[SIZE_WORD] = size;
    u32[STREAM_WORD] = stream;
    u32[STREAM_WORD + 1] = 0;
    this.opcode = opcode;
    return size;
  }

  #u64(offset: number, low: number, high: number = low / TWO_32): void {
    this.#u32[offset >> WORD] = low;
    this.#u32[(offset >> WORD) + 1] = high;
  }
}
