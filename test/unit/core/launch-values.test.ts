// Structs, vectors and bytes as launches write them, and the limit of the device.
import { describe, expect, test } from 'vitest';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { vec3f } from '../../../src/compiler/language/elements.js';
import { ArgumentError } from '../../../src/core/base/errors.js';
import { bool, f16, f32, f64, i32, i64, i8, u8 } from '../../../src/core/elements/dtype.js';
import { inout, input } from '../../../src/core/kernels/kernel.js';
import { optional } from '../../../src/core/kernels/params.js';
import { arrayOf, bytes, dim3, struct, vec } from '../../../src/core/kernels/value-params.js';
import { Access, ArgKind, LaunchArg, LaunchRecord } from '../../../src/protocol/protocol.gen.js';
import { thrownBy } from '../../support/wait.js';
import { open } from './opened.js';

const P = struct({ tag: i8, x: input(f32), none: optional(input(f32)), y: inout(f32), o: vec3f });
const step = cudaKernel(
  'step',
  { n: i32, p: P, b: bytes(3), bias: optional(input(f32)) },
  '__global__ void step(int n, P p, B b, const float* bias) {}',
);

interface Entry {
  readonly kind: number;
  readonly access: number;
  readonly size: number;
  readonly handle: number;
  readonly value: number;
}

function entriesOf(view: DataView): Entry[] {
  return Array.from({ length: view.getUint32(LaunchRecord.ARG_COUNT, true) }, (_, n) => {
    const at = LaunchRecord.BYTE_SIZE + n * LaunchArg.BYTE_SIZE;
    return {
      kind: view.getUint8(at),
      access: view.getUint8(at + LaunchArg.ACCESS),
      size: view.getUint16(at + LaunchArg.SIZE, true),
      handle: view.getUint32(at + LaunchArg.HANDLE, true),
      value: Number(view.getBigUint64(at + LaunchArg.VALUE, true)),
    };
  });
}

describe('a launch', () => {
  test('has the bytes of its values behind its entries, and an entry for each pointer', () => {
    const { device, channel } = open();
    const x = device.zeros(8);
    const y = device.zeros(8);
    device.stream.launch(step, 1, {
      n: 5,
      p: { tag: -1, x: x.subarray(2, 4), none: null, y, o: [1, 2, 3] },
      b: Object.defineProperty(Uint8Array.of(7, 8, 9), 'length', { get: () => expect.unreachable() }),
      bias: null,
    });
    const { view } = channel.records.findLast(({ opcode }) => opcode === 'LAUNCH')!;
    expect(P.offsets).toEqual({ tag: 0, x: 8, none: 16, y: 24, o: 32 });
    expect([P.byteSize, P.align]).toEqual([48, 8]);
    const none = { access: 0, handle: 0 };
    expect(entriesOf(view)).toEqual([
      { ...none, kind: ArgKind.SCALAR, size: 4, value: 5 },
      { ...none, kind: ArgKind.BYTES, size: 48, value: 0 },
      { kind: ArgKind.MEMBER, access: Access.READ, size: 8, handle: x.storage.handle, value: 8 },
      { kind: ArgKind.MEMBER, access: Access.READ_WRITE, size: 24, handle: y.storage.handle, value: 0 },
      { ...none, kind: ArgKind.BYTES, size: 3, value: 48 },
      { ...none, kind: ArgKind.SCALAR, size: 8, value: 0 },
    ]);
    const behind = LaunchRecord.BYTE_SIZE + 6 * LaunchArg.BYTE_SIZE;
    expect(view.byteLength).toBe(behind + 56);
    expect([view.getInt8(behind), view.getBigUint64(behind + 8, true), view.getBigUint64(behind + 16, true)]).toEqual([-1, 0n, 0n]);
    expect([0, 1, 2].map((n) => view.getFloat32(behind + 32 + 4 * n, true))).toEqual([1, 2, 3]);
    expect([...new Uint8Array(view.buffer, view.byteOffset + behind + 48, 8)]).toEqual([7, 8, 9, 0, 0, 0, 0, 0]);
  });

  test('keeps its values when a getter of one submits another launch', () => {
    const { device, channel } = open();
    const x = device.zeros(8);
    const made = (tag: number, o: readonly [number, number, number]) => ({ tag, x, none: null, y: x, o });
    const rest = { n: 1, b: new Uint8Array(3), bias: null };
    device.stream.launch(step, 1, {
      ...rest,
      p: {
        ...made(3, [7, 7, 7]),
        get o(): readonly [number, number, number] {
          device.stream.launch(step, 1, { ...rest, p: made(4, [8, 8, 8]) });
          return [9, 9, 9];
        },
      },
    });
    const launches = channel.records.filter(({ opcode }) => opcode === 'LAUNCH');
    const found = launches.map(({ view }) => {
      const behind = LaunchRecord.BYTE_SIZE + view.getUint32(LaunchRecord.ARG_COUNT, true) * LaunchArg.BYTE_SIZE;
      return [view.getInt8(behind), view.getFloat32(behind + 40, true)];
    });
    expect(found).toEqual([
      [4, 8],
      [3, 9],
    ]);
  });

  test('is refused if the parameters are larger than the device takes', () => {
    const { device } = open();
    const large = cudaKernel('large', { n: i8, p: struct({ at: arrayOf(f64, 512) }) }, '__global__ void large(char n, P p) {}');
    const error = thrownBy(() => device.stream.launch(large, 1, { n: 1, p: { at: new Float64Array(512) } }));
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error).toMatchObject({
      message: 'The parameters of kernel large (4104 bytes) exceed the limit of the device (4096 bytes).',
      value: 4104,
      limit: 4096,
    });
  });
});

test('typed arrays of the element type are taken as they are: f16 as raw bits, bool as 0 and 1', () => {
  const { device, channel } = open();
  const H = struct({ v: vec(f16, 2), h: arrayOf(f16, 2), n: arrayOf(f16, 2), b: arrayOf(bool, 2), l: arrayOf(i64, 1), f: arrayOf(f32, 1) });
  const halves = cudaKernel('halves', { h: H }, '__global__ void halves(H h) {}');
  const bits = Uint16Array.of(0x3c00, 0x4000);
  const h = { v: bits, h: bits, n: [1, 2], b: Uint8Array.of(0, 7), l: BigInt64Array.of(-1n), f: Float64Array.of(0.5) };
  device.stream.launch(halves, 1, { h });
  const { view } = channel.records.findLast(({ opcode }) => opcode === 'LAUNCH')!;
  const at = LaunchRecord.BYTE_SIZE + LaunchArg.BYTE_SIZE;
  const words = [0, 2, 4, 6, 8, 10].map((place) => view.getUint16(at + place, true));
  expect(words).toEqual([0x3c00, 0x4000, 0x3c00, 0x4000, 0x3c00, 0x4000]);
  expect([view.getUint8(at + 12), view.getUint8(at + 13), view.getBigInt64(at + 16, true)]).toEqual([0, 1, -1n]);
  expect(view.getFloat32(at + 24, true)).toBe(0.5);
});

describe('a declaration', () => {
  test.each([
    [() => struct({} as never), 'fields', /at least one field/],
    [() => struct({ a: 1 } as never), 'a', /The field a \(1\) is not a type such as f32/],
    [() => struct({ '1': f32 } as never), '1', /not an identifier/],
    [() => struct(null as never), 'fields', /not an object of types/],
    [() => struct({ a: f64 }, { align: 4 }), 'align', /below the minimum \(8\)/],
    [() => struct({ a: f64 }, { align: 24 }), 'align', /not a power of two/],
    [() => struct({ a: f64 }, { packed: true } as never), 'opts', /no option 'packed'/],
    [() => arrayOf(f32, 0), 'length', /below the minimum \(1\)/],
    [() => arrayOf(f32, 1.5), 'length', /not a whole number/],
    [() => arrayOf(f64, 5000), 'fields', /\(40000 bytes\) exceeds the limit/],
    [() => bytes(0), 'n', /below the minimum/],
    [() => bytes(6, { align: 4 }), 'n', /not a multiple of the alignment \(4\)/],
    [() => bytes(40_000), 'n', /exceeds the limit \(32764\)/],
    [() => vec(f32, 5 as never), 'size', /exceeds the limit \(4\)/],
    [() => vec({ kind: 'scalar', dtype: 'bool' } as never, 2), 'type', /no vectors of 2 bool/],
    [() => vec(dim3 as never, 2), 'type', /not a type such as f32/],
    [() => optional(f32 as never), 'array', /not an array parameter such as input\(f32\)/],
    [() => cudaKernel('k', { m: arrayOf(f32, 4) } as never, '__global__ void k(float m) {}'), 'params.m', /which only a struct may have/],
    [() => kernel('k', { p: P } as never, (() => undefined) as never), 'params.p', /for kernels in CUDA C\+\+/],
  ] as const)('%s is refused', (make, argument, message) => {
    const error = thrownBy(make);
    expect(error).toBeInstanceOf(ArgumentError);
    expect((error as Error).message).toMatch(message);
    expect((error as ArgumentError).argument).toBe(argument);
  });

  test('that is nested too deeply is refused, before the stack is full', () => {
    let nested: unknown = struct({ a: u8 });
    for (let n = 0; n < 10_000; n++) nested = { kind: 'struct', fields: { a: nested }, align: 1 };
    expect((thrownBy(() => struct({ a: nested } as never)) as Error).message).toMatch(/nested more deeply than structs may be \(32\)/);
  });

  test('is copied, so a later change of the object has no effect', () => {
    const fields: Record<string, unknown> = { a: { ...f32 }, b: { kind: 'struct', fields: { c: i8 }, byteSize: 999, align: 1 } };
    const made = struct(fields as never);
    fields['z'] = f64;
    expect([made.byteSize, Object.keys(made.fields)]).toEqual([8, ['a', 'b']]);
    expect(Object.isFrozen(made) && Object.isFrozen(made.fields)).toBe(true);
  });
});
