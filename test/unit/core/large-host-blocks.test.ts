// Large blocks of page-locked memory: when a block is used again, and what is kept.
import { expect, test } from 'vitest';
import { HandleTable } from '../../../src/core/device/handles.js';
import { HostArena } from '../../../src/core/device/host-arena.js';
import { FakeChannel } from './fake-channel.js';

const MIB = 2 ** 20;

function open() {
  const channel = new FakeChannel();
  let next = 0;
  const handles = new HandleTable(
    (count) => (next += count) - count,
    () => Promise.resolve(),
  );
  return { channel, arena: new HostArena(channel, handles) };
}

const filled = (byteLength: number, value: number) => new Uint8Array(byteLength).fill(value);
const bytesOf = ({ buffer, byteOffset, byteLength }: { buffer: ArrayBufferLike; byteOffset: number; byteLength: number }) =>
  new Uint8Array(buffer, byteOffset, byteLength);

test.each([100, MIB, 4 * MIB, 9 * MIB + 5])('a snapshot of %i bytes has them, and writes of the caller do not reach it', (byteLength) => {
  const { arena } = open();
  const source = filled(byteLength, 7);
  const block = arena.snapshot(source);
  source.fill(9);
  expect(block.byteLength).toBe(byteLength);
  expect(bytesOf(block).every((byte) => byte === 7)).toBe(true);
  expect(arena.liveBytes).toBe(byteLength);
});

test('a large snapshot has whole huge pages, locked after they were filled, and none of the arena', () => {
  const { arena, channel } = open();
  const before = channel.arena.byteLength;
  const block = arena.snapshot(filled(5 * MIB, 1));
  expect(channel.arena.byteLength).toBe(before);
  expect(channel.registered.at(-1)).toMatchObject({ handle: block.handle, byteLength: 6 * MIB, isLocked: true });
});

test('the next snapshot of about its size uses a returned block again, one of half the size or more than that does not', () => {
  const { arena, channel } = open();
  const first = arena.snapshot(filled(16 * MIB, 1));
  const used = arena.snapshot(filled(16 * MIB, 2));
  expect(used.handle).not.toBe(first.handle);
  arena.giveBack(first, []);
  expect(arena.snapshot(filled(17 * MIB, 3)).handle).not.toBe(first.handle);
  expect(arena.snapshot(filled(7 * MIB, 4)).handle).not.toBe(first.handle);
  const again = arena.snapshot(filled(9 * MIB, 5));
  expect(again).toMatchObject({ handle: first.handle, byteLength: 9 * MIB });
  expect(bytesOf(again).every((byte) => byte === 5)).toBe(true);
  expect(bytesOf(used).every((byte) => byte === 2)).toBe(true);
  expect(channel.registered.length).toBe(4);
});

test('the first copy of a GPU uses a block that was locked when the device was opened, whatever its size', () => {
  const { arena, channel } = open();
  arena.prepare(true);
  expect(arena.liveBytes).toBe(0);
  const prepared = channel.registered.at(-1);
  expect(prepared).toMatchObject({ byteLength: 64 * MIB, isLocked: true });
  const first = arena.snapshot(filled(5 * MIB, 1));
  expect(first.handle).toBe(prepared?.handle);
  expect(arena.snapshot(filled(5 * MIB, 2)).handle).not.toBe(first.handle);
  arena.giveBack(first, []);
  expect(arena.snapshot(filled(64 * MIB, 3)).handle).toBe(first.handle);
});

test('the first block of a GPU has the memory of the last one that was closed, unless another device has that', () => {
  let fresh = 0;
  const opened = () => {
    const { arena, channel } = open();
    channel.adviseHugePages = () => fresh++;
    arena.prepare(true);
    return arena;
  };
  const first = opened();
  first.end();
  const second = opened();
  expect(fresh).toBe(1);
  opened();
  expect(fresh).toBe(2);
  // Something may still read or write it.
  second.snapshot(filled(5 * MIB, 1));
  second.end();
  opened();
  expect(fresh).toBe(3);
});

test('a device opens without memory for the first block, and the CPU device makes none', () => {
  const { arena, channel } = open();
  arena.prepare(false);
  const count = channel.registered.length;
  expect(count).toBeLessThanOrEqual(1);
  channel.adviseHugePages = () => {
    throw new RangeError('Array buffer allocation failed');
  };
  arena.prepare(true);
  expect(arena.liveBytes).toBe(0);
});

test('blocks beyond 1 GiB that nothing uses are given back, the longest unused first', () => {
  const { arena, channel } = open();
  // The buffers take no memory until they are touched, and an empty source touches nothing of them.
  const hollow = (byteLength: number) => new Proxy(new Uint8Array(0), { get: (_, key) => (key === 'byteLength' ? byteLength : 0) });
  channel.copyHost = () => undefined;
  const blocks = [400, 400, 400].map((mib) => arena.snapshot(hollow(mib * MIB)));
  for (const block of blocks) arena.giveBack(block, []);
  expect(channel.unregistered).toEqual([blocks[0]?.handle]);
  expect(arena.liveBytes).toBe(0);
});
