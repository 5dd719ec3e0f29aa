// Arguments that copies, fills and launches refuse before anything is submitted, and that they accept: offsets, counts, shapes, dtypes.
import { describe, expect, test } from 'vitest';
import type { DeviceArray } from '../../../src/core/api/array.js';
import type { CopyOptions } from '../../../src/core/api/copy.js';
import type { HostArray } from '../../../src/core/elements/dtype.js';
import type { ArgumentError } from '../../../src/core/base/errors.js';
import { thrownBy } from '../../support/wait.js';
import { fixture } from './fake-channel.js';
import { World } from './simulated.js';

describe('a copy', () => {
  const { channel, device } = fixture();
  const { stream } = device;
  const x = device.zeros([3, 4]);
  const y = device.zeros([4, 3]);
  const line = device.zeros(8);
  const host = (length: number): Float32Array => new Float32Array(length);
  const copies = (dst: DeviceArray, src: DeviceArray | HostArray, opts?: CopyOptions): (() => unknown) => {
    return () => stream.copy(dst, src as DeviceArray, opts);
  };

  test.each([
    ['shapes that differ where one is not contiguous', copies(y, x.transpose().view([0, 3])), 'src', [4, 3], ['f32[4, 3]', 'f32[3, 3]']],
    ['another number of axes', copies(line.view([0, 8]), x.transpose().view([0, 2])), 'src', [8], ['f32[8]', 'f32[2, 3]']],
    ['an offset into several axes', copies(y, x.transpose(), { srcOffset: 1 }), 'srcOffset', undefined, ['srcOffset (1)', 'f32[4, 3]']],
    ['a count of several axes', copies(x.transpose(), y, { count: 12 }), 'count', undefined, ['count (12)', 'f32[4, 3]']],
    ['an ordinary array of another length', copies(x.transpose(), host(11)), 'src', [4, 3], ['f32[4, 3]', 'Float32Array[11]']],
    [
      'a source that is too long for one axis',
      copies(line.view([undefined, undefined, 2]), line.view([undefined, undefined, -1])),
      'count',
      4,
      ['(8 from dstOffset 0)', '(4)'],
    ],
    ['an offset beyond one axis', copies(line, x.view(undefined, 0), { srcOffset: 4 }), 'srcOffset', 3, ['srcOffset (4)', 'f32[3]']],
    ['a fractional count', copies(line, x.view(undefined, 0), { count: 1.5 }), 'count', undefined, ['count (1.5)', 'whole number']],
    ['a negative offset', copies(line, x, { dstOffset: -1 }), 'dstOffset', 0, ['dstOffset (-1)', 'f32[8]', 'f32[3, 4]']],
    ['more than the destination has', copies(line, x), 'count', 8, ['12', '(8)', 'f32[3, 4]']],
    ['another dtype', copies(x, device.zeros([3, 4], 'i32') as never), 'src', 'f32', ['i32[3, 4]', 'f32[3, 4]']],
    ['another class of ordinary array', copies(x, new Int32Array(12)), 'src', 'f32', ['Int32Array[12]', 'f32[3, 4]']],
    ['rows that overlap', copies(x.view([0, 2]), x.view([1, 3])), 'src', undefined, ['overlap']],
    ['columns that cross rows', copies(x.view(undefined, [0, 3]), x.transpose().view([1, 4]).transpose()), 'src', undefined, ['overlap']],
    ['itself', copies(line, line), 'src', undefined, ['overlap']],
    ['two ordinary arrays', copies(host(4) as never, host(4)), 'dst', undefined, ['Neither']],
    ['what is no array', copies(x, 5 as never), 'src', undefined, ['(5)']],
  ] as const)('refuses %s', (_, call, argument, limit, parts) => {
    const before = channel.records.length;
    const error = thrownBy(call);
    expect(error).toMatchObject({ name: 'ArgumentError', code: 'ERR_MILLRACE_COPY', argument });
    expect((error as ArgumentError).limit).toEqual(limit);
    for (const part of parts) expect(error.message).toContain(part);
    expect(channel.records).toHaveLength(before);
  });

  test.each([
    ['interleaved elements', copies(line.view([0, undefined, 2]), line.view([1, undefined, 2]))],
    ['two columns of one array', copies(x.view(undefined, 0), x.view(undefined, 3))],
    ['neighbouring blocks of columns', copies(x.view(undefined, [0, 2]), x.view(undefined, [2, 4]))],
    ['consecutive elements', copies(line.subarray(0, 4), line.subarray(4))],
    ['contiguous arrays of any two shapes', copies(x, y)],
    ['a view without elements', copies(line, x.view(undefined, [2, 2]).transpose().reshape([0]))],
    ['0 of them', copies(line, x.view(undefined, 0), { count: 0 })],
    ['offsets of 0 between views', copies(x.transpose(), y, { srcOffset: 0, dstOffset: 0 })],
  ])('takes %s', (_, call) => {
    const before = channel.records.length;
    call();
    expect(channel.records.length).toBe(before + 1);
  });

  test('refuses arrays of a device that is closing', async () => {
    const other = fixture();
    const z = other.device.zeros([3, 4]);
    const closed = other.device.close();
    expect(thrownBy(copies(x, z)).name).toBe('StateError');
    other.channel.completeAll();
    other.progress.wake();
    await closed;
  });

  test('names both channels in one record if they have the same backend', () => {
    const world = new World();
    const [one, other, third] = [world.add('cuda', 'cuda:0'), world.add('cuda', 'cuda:1'), world.add('cuda', 'cuda:2')];
    const [a, b] = [one.device.zeros(4), other.device.zeros(4)];
    const before = third.channel.records.length;
    third.device.stream.copy(b, a);
    // It waits for the operations that made them.
    expect(third.channel.opcodes().slice(before)).toEqual(['WAIT', 'WAIT', 'COPY']);
  });
});

test('shapes with a 0 are copied like other shapes', async () => {
  const world = new World();
  const { device } = world.add('cuda', 'cuda:0');
  const x = device.zeros([2, 0, 3]);
  expect([x.length, x.byteLength, x.isContiguous, x.transpose().shape, x.view(1).shape, x.subarray(0).shape]).toEqual([
    0,
    0,
    true,
    [3, 0, 2],
    [0, 3],
    [0],
  ]);
  device.stream.fill(x.transpose(), 1);
  device.stream.copy(x, x.transpose().clone().transpose());
  device.stream.copy(device.pinned(0), x);
  device.stream.copy(x, new Float32Array(0), { transfer: true });
  const reads = [x.read(), x.transpose().read(), x.read({ into: new Float32Array(0) })];
  const none = device.from(new Float32Array(0));
  await world.settle();
  expect(await Promise.all(reads)).toEqual([new Float32Array(0), new Float32Array(0), new Float32Array(0)]);
  expect(none.shape).toEqual([0]);
  await expect(x.item(0, 0, 0)).rejects.toMatchObject({ name: 'ArgumentError' });
});
