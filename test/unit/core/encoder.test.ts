// Records as the bytes that the native side reads.
import { describe, expect, test } from 'vitest';
import { Encoder } from '../../../src/protocol/encoder.js';
import {
  AllocArrayRecord,
  ArgKind,
  AllocKind,
  CopyArrayRecord,
  CopyFlag,
  BatchedCopy,
  CopyBatchRecord,
  CopyRecord,
  CreateTextureRecord,
  ExternalRecord,
  LaunchArg,
  LaunchRecord,
  MemorySpace,
  Opcode,
  RecordHeader,
  TextureFormat,
  TextureShape,
  WaitRecord,
} from '../../../src/protocol/protocol.gen.js';

const encoder = new Encoder();
const view = new DataView(encoder.block.buffer);
const u64 = (at: number): bigint => view.getBigUint64(at, true);

function header(opcode: number, size: number, stream: number): void {
  expect([view.getUint16(0, true), view.getUint16(2, true), view.getUint32(4, true), view.getUint32(8, true)]).toEqual([
    opcode,
    0,
    size,
    stream,
  ]);
}

describe('encoder', () => {
  test('a record begins with its opcode, size and stream, whatever the block contained before', () => {
    encoder.block.fill(0xff);
    expect(encoder.nop(5)).toBe(16);
    header(Opcode.NOP, 16, 5);
    expect(view.getUint32(12, true)).toBe(0);
  });

  test('64-bit fields hold numbers beyond 32 bits', () => {
    const ticket = 2 ** 52 + 12345;
    encoder.wait(1, 2, 3, ticket);
    header(Opcode.WAIT, WaitRecord.BYTE_SIZE, 1);
    expect([view.getUint32(WaitRecord.DEVICE, true), view.getUint32(WaitRecord.TARGET, true)]).toEqual([2, 3]);
    expect(u64(WaitRecord.TICKET)).toBe(BigInt(ticket));
    encoder.alloc(1, 9, 2 ** 40 + 1, AllocKind.STAGING);
    expect(u64(24)).toBe(2n ** 40n + 1n);
  });

  test('the records of textures have their shape and how it is read', () => {
    const shape = { width: 70_000, height: 3, depth: 0, format: TextureFormat.F16, channels: 4, hasSurface: true } as const;
    encoder.block.fill(0xff);
    encoder.textures.allocArray(2, 7, 2 ** 33, shape);
    header(Opcode.ALLOC_ARRAY, AllocArrayRecord.BYTE_SIZE, 2);
    const shapeAt = (at: number): unknown => [
      ...[TextureShape.WIDTH, TextureShape.HEIGHT, TextureShape.DEPTH].map((field) => view.getUint32(at + field, true)),
      encoder.block[at + TextureShape.FORMAT],
      encoder.block[at + TextureShape.CHANNELS],
      view.getUint16(at + TextureShape.HAS_SURFACE, true),
    ];
    expect([view.getUint32(AllocArrayRecord.HANDLE, true), u64(AllocArrayRecord.BYTES)]).toEqual([7, 2n ** 33n]);
    expect(shapeAt(AllocArrayRecord.SHAPE)).toEqual([70_000, 3, 0, TextureFormat.F16, 4, 1]);
    encoder.textures.create(2, 8, 7, 512, 2 ** 20, shape, { filter: 1, address: [0, 2, 3], flags: 5 });
    header(Opcode.CREATE_TEXTURE, CreateTextureRecord.BYTE_SIZE, 2);
    expect([view.getUint32(CreateTextureRecord.SOURCE, true), u64(CreateTextureRecord.OFFSET), u64(CreateTextureRecord.PITCH)]).toEqual([
      7,
      512n,
      2n ** 20n,
    ]);
    expect([...encoder.block.subarray(CreateTextureRecord.FILTER, CreateTextureRecord.FLAGS + 1)]).toEqual([1, 0, 2, 3, 5]);
    encoder.textures.copy(2, 7, 9, 2 ** 34, { ...shape, hasSurface: false }, true);
    header(Opcode.COPY_ARRAY, CopyArrayRecord.BYTE_SIZE, 2);
    expect([view.getUint32(CopyArrayRecord.ARRAY, true), view.getUint32(CopyArrayRecord.MEMORY, true)]).toEqual([7, 9]);
    expect([u64(CopyArrayRecord.OFFSET), view.getUint32(CopyArrayRecord.IS_UPLOAD, true)]).toEqual([2n ** 34n, 1]);
    expect(shapeAt(CopyArrayRecord.SHAPE)).toEqual([70_000, 3, 0, TextureFormat.F16, 4, 0]);
  });

  test('a batch has copies like those of COPY records', () => {
    const one = { space: MemorySpace.HOST, handle: 11 };
    const two = { space: MemorySpace.DEVICE, handle: 12 };
    encoder.batches.copy(0, 5, one, 2 ** 33, two, 8, 2 ** 34, 0);
    encoder.batches.copy(1, 5, two, 8, one, 2 ** 33, 16, CopyFlag.PINNED);
    const size = CopyBatchRecord.BYTE_SIZE + 2 * BatchedCopy.BYTE_SIZE;
    expect(encoder.batches.batch(4, 2)).toBe(size);
    header(Opcode.COPY_BATCH, size, 4);
    expect(view.getUint32(CopyBatchRecord.COUNT, true)).toBe(2);
    const entry = (n: number): Uint8Array => {
      const start = CopyBatchRecord.BYTE_SIZE + n * BatchedCopy.BYTE_SIZE;
      return encoder.block.slice(start, start + BatchedCopy.BYTE_SIZE);
    };
    const [first, second] = [entry(0), entry(1)];
    const fieldsOfCopy = (): Uint8Array => encoder.block.slice(RecordHeader.BYTE_SIZE, CopyRecord.BYTE_SIZE);
    encoder.copy(4, 5, MemorySpace.HOST, 11, 2 ** 33, 5, MemorySpace.DEVICE, 12, 8, 2 ** 34);
    expect(first).toEqual(fieldsOfCopy());
    encoder.copy(4, 5, MemorySpace.DEVICE, 12, 8, 5, MemorySpace.HOST, 11, 2 ** 33, 16, CopyFlag.PINNED);
    expect(second).toEqual(fieldsOfCopy());
  });

  test('a copy names both ends with their spaces', () => {
    expect(encoder.copy(4, 5, MemorySpace.HOST, 11, 2 ** 33, 6, MemorySpace.DEVICE, 12, 8, 2 ** 34)).toBe(CopyRecord.BYTE_SIZE);
    header(Opcode.COPY, CopyRecord.BYTE_SIZE, 4);
    expect([view.getUint32(CopyRecord.DST_HANDLE, true), view.getUint32(CopyRecord.SRC_HANDLE, true)]).toEqual([11, 12]);
    expect([view.getUint32(CopyRecord.DST_DEVICE, true), view.getUint32(CopyRecord.SRC_DEVICE, true)]).toEqual([5, 6]);
    expect([view.getUint16(CopyRecord.DST_SPACE, true), view.getUint16(CopyRecord.SRC_SPACE, true)]).toEqual([1, 0]);
    expect([u64(CopyRecord.DST_OFFSET), u64(CopyRecord.SRC_OFFSET), u64(CopyRecord.BYTES)]).toEqual([2n ** 33n, 8n, 2n ** 34n]);
    expect(view.getUint32(CopyRecord.FLAGS, true)).toBe(0);
    encoder.copy(4, 5, MemorySpace.HOST, 11, 0, 6, MemorySpace.DEVICE, 12, 8, 16, CopyFlag.STAGED | CopyFlag.FIRST_PIECE);
    expect(view.getUint32(CopyRecord.FLAGS, true)).toBe(3);
    // The block still has the bytes of the previous record.
    encoder.copy(4, 5, MemorySpace.HOST, 11, 0, 6, MemorySpace.DEVICE, 12, 8, 16);
    expect(view.getUint32(CopyRecord.FLAGS, true)).toBe(0);
  });

  test('a priority keeps its sign', () => {
    encoder.streamCreate(0, -5);
    expect(view.getInt32(16, true)).toBe(-5);
  });

  test('launch arguments survive a wait that is written before the launch', () => {
    encoder.memoryArg(0, 3, 77, 2 ** 35);
    encoder.f32Arg(1, 1.5);
    encoder.f64Arg(2, Math.PI);
    encoder.intArg(3, 4, -2, 0);
    encoder.wait(1, 2, 3, 4);
    const bytes = encoder.launch(1, 88, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0);
    expect(bytes).toBe(LaunchRecord.BYTE_SIZE + 4 * LaunchArg.BYTE_SIZE);
    header(Opcode.LAUNCH, bytes, 1);
    expect(view.getUint32(LaunchRecord.KERNEL, true)).toBe(88);
    expect(Array.from({ length: 9 }, (_, n) => view.getUint32(LaunchRecord.ARG_COUNT + 4 * n, true))).toEqual([
      4, 5, 6, 7, 8, 9, 10, 11, 12,
    ]);
    const arg = (n: number): number => LaunchRecord.BYTE_SIZE + n * LaunchArg.BYTE_SIZE;
    expect([view.getUint8(arg(0)), view.getUint8(arg(0) + LaunchArg.ACCESS), view.getUint32(arg(0) + LaunchArg.HANDLE, true)]).toEqual([
      1, 3, 77,
    ]);
    expect(u64(arg(0) + LaunchArg.VALUE)).toBe(2n ** 35n);
    expect([view.getUint8(arg(1)), view.getUint8(arg(1) + LaunchArg.SIZE), view.getFloat32(arg(1) + LaunchArg.VALUE, true)]).toEqual([
      0, 4, 1.5,
    ]);
    expect([view.getUint8(arg(2) + LaunchArg.SIZE), view.getFloat64(arg(2) + LaunchArg.VALUE, true)]).toEqual([8, Math.PI]);
    expect(view.getInt32(arg(3) + LaunchArg.VALUE, true)).toBe(-2);
  });

  test('an entry before a memory argument names another device, the space and the bytes', () => {
    encoder.elsewhereArg(0, 7, MemorySpace.HOST, 2 ** 35 + 1);
    const at = LaunchRecord.BYTE_SIZE;
    expect([view.getUint8(at), view.getUint8(at + LaunchArg.ACCESS), view.getUint16(at + LaunchArg.SIZE, true)]).toEqual([
      ArgKind.ELSEWHERE,
      0,
      MemorySpace.HOST,
    ]);
    expect([view.getUint32(at + LaunchArg.HANDLE, true), u64(at + LaunchArg.VALUE)]).toEqual([7, 2n ** 35n + 1n]);
  });

  test('the memory of an external function survives a wait, and follows its record', () => {
    encoder.memoryArg(0, 1, 77, 2 ** 35);
    encoder.memoryArg(1, 6, 78, 4);
    encoder.wait(1, 2, 3, 4);
    const bytes = encoder.external(3, 2);
    expect(bytes).toBe(ExternalRecord.BYTE_SIZE + 2 * LaunchArg.BYTE_SIZE);
    header(Opcode.EXTERNAL, bytes, 3);
    expect(view.getUint32(ExternalRecord.ARG_COUNT, true)).toBe(2);
    const args = [0, 1].map((n) => {
      const at = ExternalRecord.BYTE_SIZE + n * LaunchArg.BYTE_SIZE;
      return [
        view.getUint8(at),
        view.getUint8(at + LaunchArg.ACCESS),
        view.getUint32(at + LaunchArg.HANDLE, true),
        u64(at + LaunchArg.VALUE),
      ];
    });
    expect(args).toEqual([
      [ArgKind.MEMORY, 1, 77, 2n ** 35n],
      [ArgKind.MEMORY, 6, 78, 4n],
    ]);
  });

  test('the bytes of structs follow the entries of a launch', () => {
    encoder.bytesArg(0, 12, 8);
    encoder.memberArg(1, 2, 32_760, 77, 2 ** 35);
    encoder.behindArgs(2, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    const size = LaunchRecord.BYTE_SIZE + 2 * LaunchArg.BYTE_SIZE;
    expect(encoder.launch(1, 88, 2, 5, 6, 7, 8, 9, 10, 11, 12, 8)).toBe(size + 8);
    const at = LaunchRecord.BYTE_SIZE;
    expect([view.getUint8(at), view.getUint8(at + LaunchArg.ACCESS), view.getUint16(at + LaunchArg.SIZE, true)]).toEqual([
      ArgKind.BYTES,
      0,
      12,
    ]);
    expect(u64(at + LaunchArg.VALUE)).toBe(8n);
    const member = at + LaunchArg.BYTE_SIZE;
    expect([view.getUint8(member), view.getUint8(member + LaunchArg.ACCESS), view.getUint16(member + LaunchArg.SIZE, true)]).toEqual([
      ArgKind.MEMBER,
      2,
      32_760,
    ]);
    expect([view.getUint32(member + LaunchArg.HANDLE, true), u64(member + LaunchArg.VALUE)]).toEqual([77, 2n ** 35n]);
    expect([...encoder.block.subarray(size, size + 8)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
