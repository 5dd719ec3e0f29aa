// Every refusal at the call: a typed error with the value and the limit, and nothing submitted.
import { describe, expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import { f32, i32, i64, u8 } from '../../../src/core/elements/dtype.js';
import { type Kernel, input, inout, MADE, type LaunchShape, type Params } from '../../../src/core/kernels/kernel.js';
import { LaunchRecord } from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, fixture, INFO } from './fake-channel.js';

function kernelOf<P extends Params>(params: P, more: Partial<Kernel<P>> = {}): Kernel<P> {
  const build = {
    source: '',
    entry: 'k',
    name: 'k',
    options: [],
    fmad: true,
    isBounded: true,
    isChecked: false,
    mapping: { file: 'k', lines: [] },
  };
  return { name: 'k', params, source: '', build, [MADE]: true, abi: 'plain', indexRank: 0, ...more };
}

function refusal(call: () => unknown): Error & { readonly argument?: string; readonly value?: unknown; readonly limit?: unknown } {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error('The call returned.');
}

function facts(call: () => unknown): object {
  const { name, argument, limit } = refusal(call);
  return { name, argument, limit };
}

const { channel, device } = fixture();
const { stream } = device;
const x = device.zeros(16);
const image = device.zeros([4, 8]);

describe('launch arguments', () => {
  const kernel = kernelOf({ n: i32, a: f32, x: inout(f32) });
  const disposed = device.zeros(4);
  disposed[Symbol.dispose]();
  const foreign = fixture().device.zeros(4);
  const rows: readonly (readonly [args: object, argument: string | undefined, message: RegExp])[] = [
    [{ n: Number.NaN, a: 1, x }, 'n', /NaN/],
    [{ n: 1, a: '2', x }, 'a', /a \('2'\) is not a number/],
    [{ n: 1, a: 1, x: foreign }, 'x', /x of kernel k belongs to an earlier opening of device cpu:0/],
    [{ n: 1, a: 1, x: disposed }, undefined, /f32\[4\] of device cpu:0 was disposed/],
    [null as never, 'args', /are not an object/],
  ];
  test.each(rows.map(([args, argument, message]) => ({ args, argument, message })))('refuses: $message', ({ args, argument, message }) => {
    const before = channel.records.length;
    const error = refusal(() => stream.launch(kernel, 4, args as never));
    expect(error.message).toMatch(message);
    expect(error.argument).toBe(argument);
    expect(channel.records).toHaveLength(before);
    expect(device.state).toBe('open');
  });

  test('non-finite numbers are valid floats, safe integers are valid 64-bit integers', () => {
    const wide = kernelOf({ a: f32, n: i64 });
    stream.launch(wide, 1, { a: Number.POSITIVE_INFINITY, n: -1 });
    const { view } = channel.records.at(-1)!;
    expect(view.getFloat32(LaunchRecord.BYTE_SIZE + 8, true)).toBe(Number.POSITIVE_INFINITY);
    expect(view.getBigInt64(LaunchRecord.BYTE_SIZE + 24, true)).toBe(-1n);
    stream.launch(wide, 1, { a: 0, n: 2n ** 63n - 1n });
    expect(channel.records.at(-1)!.view.getBigInt64(LaunchRecord.BYTE_SIZE + 24, true)).toBe(2n ** 63n - 1n);
    expect(refusal(() => stream.launch(wide, 1, { a: 0, n: 2n ** 63n })).limit).toBe(2n ** 63n - 1n);
    expect(refusal(() => stream.launch(wide, 1, { a: 0, n: 2 ** 60 })).limit).toBe(Number.MAX_SAFE_INTEGER);
  });

  test('a shaped kernel gets the dimensions after each array and the extents last, x first', () => {
    const shaped = kernelOf({ image: input(f32, 2), a: f32 }, { abi: 'shaped', indexRank: 2 });
    stream.launch(shaped, image.shape as [number, number], { image, a: 1 });
    const { view } = channel.records.at(-1)!;
    const value = (n: number): number => view.getInt32(LaunchRecord.BYTE_SIZE + 16 * n + 8, true);
    expect(view.getUint32(LaunchRecord.ARG_COUNT, true)).toBe(7);
    expect([value(1), value(2), value(4), value(5), value(6)]).toEqual([4, 8, 8, 4, 1]);
    expect(refusal(() => stream.launch(shaped, [4, 8], { image: x, a: 1 })).message).toMatch(/1 dimensions; the kernel takes 2/);
    expect(refusal(() => stream.launch(shaped, 4, { image, a: 1 }))).toMatchObject({ argument: 'threads', limit: 2 });
  });

  test('an array with more elements than 32-bit indices can address is refused', () => {
    const roomy = new FakeChannel();
    Object.assign(roomy, { info: { ...INFO, totalMemoryBytes: 2 ** 40 } });
    const big = fixture(roomy).device;
    const huge = big.empty(2 ** 31, u8) as DeviceArray<'u8'>;
    expect(refusal(() => big.stream.launch(kernelOf({ x: input(u8) }), 1, { x: huge }))).toMatchObject({
      argument: 'x',
      limit: 2 ** 31 - 1,
    });
  });
});

describe('launch shapes', () => {
  const kernel = kernelOf({ x: inout(f32) });
  const grid = (shape: LaunchShape, on: Kernel<{ x: ReturnType<typeof inout> }> = kernel as never): number[] => {
    stream.launch(on, shape, { x } as never);
    const { view } = channel.records.at(-1)!;
    return Array.from({ length: 6 }, (_, n) => view.getUint32(LaunchRecord.GRID_X + 4 * n, true));
  };

  test('default blocks cover the threads, which are in array order', () => {
    expect(grid(1)).toEqual([1, 1, 1, 256, 1, 1]);
    expect(grid(257)).toEqual([2, 1, 1, 256, 1, 1]);
    expect(grid([100, 65])).toEqual([3, 13, 1, 32, 8, 1]);
    expect(grid({ threads: [3, 5, 33] })).toEqual([2, 2, 2, 32, 4, 2]);
    expect(grid({ threads: [10, 10], block: [5, 2] })).toEqual([2, 5, 1, 5, 2, 1]);
    expect(grid({ grid: [2, 3], block: 64 })).toEqual([2, 3, 1, 64, 1, 1]);
  });

  test("a kernel's own limit makes default blocks smaller", () => {
    const small = kernelOf({ x: inout(f32) }, { maxThreadsPerBlock: 64 }) as never;
    expect(grid(100, small)).toEqual([2, 1, 1, 64, 1, 1]);
    expect(grid([10, 40], small)).toEqual([2, 5, 1, 32, 2, 1]);
    expect(refusal(() => grid({ grid: 1, block: 128 }, small))).toMatchObject({ argument: 'block', limit: 64 });
  });

  test.each<[LaunchShape, string, unknown]>([
    [-1, 'threads', 0],
    [{ grid: 1, block: 2048 }, 'block', 1024],
    [{ grid: 1, block: [64, 32] }, 'block', 1024],
    [{ grid: 1, block: [1, 1, 65] }, 'block', 64],
    [{ grid: [1, 65536], block: 1 }, 'grid', 65535],
    [{ threads: 4, sharedBytes: 49153 }, 'sharedBytes', 49152],
  ])('refuses %o', (shape, argument, limit) => {
    const before = channel.records.length;
    expect(facts(() => stream.launch(kernel, shape, { x }))).toEqual({ name: 'ArgumentError', argument, limit });
    expect(channel.records).toHaveLength(before);
  });
});

describe('limits of a built kernel', () => {
  const shapes: readonly LaunchShape[] = [
    { grid: 1, block: [9, 4] },
    { threads: 64, block: 33 },
    { threads: 64, sharedBytes: 1001 },
  ];

  test("apply at the call once they are known; before that, the device's limits apply", async () => {
    const kernel = kernelOf({ x: inout(f32) });
    for (const shape of shapes) stream.launch(kernel, shape, { x });
    const handle = channel.records.at(-1)!.view.getUint32(LaunchRecord.KERNEL, true);
    const limits = { maxThreadsPerBlock: 32, maxSharedBytes: 1000, maxCooperativeBlocks: 7, blocksAtOnce: [] };
    channel.builds.get(handle)!.resolve({ compiler: 'none', fromCache: false, ms: 0, limits });
    await device.compile(kernel);
    const before = channel.records.length;
    expect(shapes.map((shape) => refusal(() => stream.launch(kernel, shape, { x })).message)).toEqual([
      'Block size (36) exceeds the limit of kernel k (32).',
      'Block size (33) exceeds the limit of kernel k (32).',
      'The sharedBytes (1001) exceed the limit of kernel k (1000).',
    ]);
    expect(channel.records).toHaveLength(before);
    stream.launch(kernel, { threads: [3, 64], sharedBytes: 1000 }, { x });
    const { view } = channel.records.at(-1)!;
    expect([LaunchRecord.BLOCK_X, LaunchRecord.BLOCK_Y].map((at) => view.getUint32(at, true))).toEqual([32, 1]);
  });
});

describe('cooperative launches', () => {
  const together = (grid: number, block: number, cooperative = true): LaunchShape => ({ grid, block, cooperative });
  const flags = (): number => channel.records.at(-1)!.view.getUint32(LaunchRecord.FLAGS, true);

  /** Built with these limits. */
  async function built(maxCooperativeBlocks: number, blocksAtOnce: readonly number[], syncsGrid = false): Promise<Kernel> {
    const plain = kernelOf({ x: inout(f32) });
    const made = { ...plain, build: { ...plain.build, syncsGrid } };
    stream.launch(made, { grid: 1_000_000, block: 32, cooperative: true }, { x });
    const handle = channel.records.at(-1)!.view.getUint32(LaunchRecord.KERNEL, true);
    const limits = { maxThreadsPerBlock: 128, maxSharedBytes: 0, maxCooperativeBlocks, blocksAtOnce };
    channel.builds.get(handle)!.resolve({ compiler: 'none', fromCache: false, ms: 0, limits });
    await device.compile(made);
    return made;
  }

  test('set a flag of the record', async () => {
    const kernel = await built(100, []);
    for (const [shape, flag] of [
      [together(100, 1), 1],
      [{ threads: 128, cooperative: true }, 1],
      [together(100, 1, false), 0],
      [{ grid: 1000, block: 1 }, 0],
      [64, 0],
    ] as const) {
      stream.launch(kernel, shape, { x });
      expect(flags()).toBe(flag);
    }
    const wrong = { grid: 1, block: 1, cooperative: 'yes' as unknown as boolean };
    expect(facts(() => stream.launch(kernel, wrong, { x }))).toEqual({ name: 'ArgumentError', argument: 'cooperative', limit: undefined });
  });

  test('have no more blocks than run at once on all multiprocessors, by the size of the block', async () => {
    const most = INFO.multiprocessors * 4;
    const kernel = await built(most, [4, 2, 1, 1]);
    stream.launch(kernel, together(most, 32), { x });
    stream.launch(kernel, together(most / 2, 64), { x });
    const before = channel.records.length;
    const message = (blocks: number, limit: number): string =>
      `The blocks of a cooperative launch (${blocks}) exceed the limit of kernel k (${limit}).`;
    expect(refusal(() => stream.launch(kernel, together(most + 1, 1), { x })).message).toBe(message(most + 1, most));
    expect(refusal(() => stream.launch(kernel, together(most, 33), { x })).message).toBe(message(most, most / 2));
    expect(facts(() => stream.launch(kernel, together(most, 128), { x }))).toEqual({
      name: 'ArgumentError',
      argument: 'grid',
      limit: most / 4,
    });
    expect(channel.records).toHaveLength(before);
    stream.launch(kernel, { grid: 5000, block: 32 }, { x });
  });

  test('are refused by a device without support', async () => {
    const kernel = await built(0, [4]);
    expect(refusal(() => stream.launch(kernel, together(1, 1), { x }))).toMatchObject({
      name: 'UnsupportedError',
      capability: 'cooperative launches',
    });
    stream.launch(kernel, { grid: 1, block: 1 }, { x });
  });

  test('are required for a kernel whose blocks wait for each other', async () => {
    const kernel = await built(10, [], true);
    for (const shape of [64, [8, 8], { threads: 64 }, { grid: 1, block: 1 }, together(1, 1, false)]) {
      expect(facts(() => stream.launch(kernel, shape, { x }))).toEqual({ name: 'ArgumentError', argument: 'cooperative', limit: true });
    }
    stream.launch(kernel, together(1, 1), { x });
  });
});

describe('the default block of a launch', () => {
  /** Of compute capability 9.0: 65536 registers and 2048 threads a multiprocessor, 32 blocks. */
  const atOnce = (registers: number): number[] =>
    Array.from({ length: 32 }, (_, at) => Math.min(32, Math.floor(64 / (at + 1)), Math.floor(65536 / (registers * 32 * (at + 1)))));

  async function blocksOf(isOfBlocks: boolean, blocksAtOnce: readonly number[], maxThreadsPerBlock = 1024): Promise<number[][]> {
    const plain = kernelOf({ x: inout(f32) });
    const made = { ...plain, build: { ...plain.build, isOfBlocks } };
    stream.launch(made, 4096, { x });
    const handle = channel.records.at(-1)!.view.getUint32(LaunchRecord.KERNEL, true);
    const limits = { maxThreadsPerBlock, maxSharedBytes: 0, maxCooperativeBlocks: 0, blocksAtOnce };
    channel.builds.get(handle)!.resolve({ compiler: 'none', fromCache: false, ms: 0, limits });
    await device.compile(made);
    return [4096, [64, 64], [16, 16, 16]].map((threads) => {
      stream.launch(made, threads, { x });
      const { view } = channel.records.at(-1)!;
      return [LaunchRecord.BLOCK_X, LaunchRecord.BLOCK_Y, LaunchRecord.BLOCK_Z].map((at) => view.getUint32(at, true));
    });
  }

  test('is the smallest one whose occupancy is close to the best', async () => {
    expect(await blocksOf(false, atOnce(32))).toEqual([
      [256, 1, 1],
      [32, 8, 1],
      [32, 4, 2],
    ]);
    // 51 warps have registers, 48 of them in blocks of 8.
    expect((await blocksOf(false, atOnce(40)))[0]).toEqual([256, 1, 1]);
    // 18 have, 16 of them in blocks of 8.
    expect(await blocksOf(false, atOnce(110))).toEqual([
      [288, 1, 1],
      [32, 9, 1],
      [32, 9, 1],
    ]);
    // 28 have, 24 of them in blocks of 8, 27 in blocks of 9.
    expect((await blocksOf(false, atOnce(72)))[0]).toEqual([288, 1, 1]);
    // 30 have, in blocks of 10.
    expect(await blocksOf(false, atOnce(67))).toEqual([
      [320, 1, 1],
      [32, 10, 1],
      [32, 5, 2],
    ]);
  });

  test('has 256 threads if the size has no effect or if threads of a block work together', async () => {
    const usual = [
      [256, 1, 1],
      [32, 8, 1],
      [32, 4, 2],
    ];
    expect(await blocksOf(false, [])).toEqual(usual);
    expect(await blocksOf(true, atOnce(110))).toEqual(usual);
  });

  test('does not exceed the limit of the kernel', async () => {
    expect(await blocksOf(false, atOnce(32).slice(0, 2), 64)).toEqual([
      [64, 1, 1],
      [32, 2, 1],
      [32, 2, 1],
    ]);
  });
});

describe('arrays and copies', () => {
  test.each<[() => unknown, string, unknown]>([
    [() => device.zeros(-1), 'length', 0],
    [() => device.zeros(1.5), 'length', undefined],
    [() => device.zeros([2, -3]), 'dimension', 0],
    [() => device.zeros(2 ** 28 + 1), 'shape', 2 ** 30],
    [() => device.zeros(4, 'f128' as never), 'dtype', undefined],
    [() => device.full(4, 300, u8), 'value', 255],
    [() => device.from([1, 2, 3], { dtype: u8, shape: [2, 2] }), 'shape', 3],
    [() => device.from('text' as never), 'data', 'f32'],
    [() => x.reshape([3, 5]), 'shape', 16],
    [() => stream.fill(x, 'one' as never), 'value', undefined],
    [() => device.createStream({ priority: 0.5 }), 'priority', undefined],
    [() => device.createStream({ ordering: 'loose' as never }), 'ordering', undefined],
  ])('refuses %s', (call, argument, limit) => {
    const before = channel.records.length;
    expect(facts(call)).toEqual({ name: 'ArgumentError', argument, limit });
    expect(channel.records).toHaveLength(before);
  });
});
