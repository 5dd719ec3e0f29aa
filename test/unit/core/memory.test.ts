// Pinned memory from the arena: how it is divided, and when it is reused.
import { describe, expect, test, vi } from 'vitest';
import { HandleTable } from '../../../src/core/device/handles.js';
import { HostArena } from '../../../src/core/device/host-arena.js';
import { AccessTracker } from '../../../src/core/ordering/access-tracker.js';
import { Timeline } from '../../../src/core/timeline/timeline.js';
import { BFLOAT16, HALF, narrowed, widened } from '../../support/half-numbers.js';
import { numberOf16 } from '../../../src/core/elements/half-bits.js';
import { scalarBits } from '../../../src/core/elements/scalar-bits.js';
import { FakeChannel, fixture, turn } from './fake-channel.js';

const MIB = 2 ** 20;

function arenaOf(channel: FakeChannel): HostArena {
  const table = new HandleTable(
    (count) => channel.reserveHandles(1, count),
    () => Promise.resolve(),
  );
  return new HostArena(channel, table);
}

describe('host arena', () => {
  test('blocks of one chunk share its registration and do not overlap', () => {
    const channel = new FakeChannel();
    const arena = arenaOf(channel);
    const blocks = [100, 5000, 100_000, 3 * MIB, 0, 256, 257].map((bytes) => arena.take(bytes));
    expect(channel.registered).toEqual([{ handle: blocks[0]!.handle, byteOffset: 0, byteLength: 16 * MIB, isLocked: true }]);
    const ranges = blocks.map(({ byteOffset, byteLength }) => [byteOffset, byteOffset + byteLength] as const).toSorted(([a], [b]) => a - b);
    for (const [at, [, end]] of ranges.slice(0, -1).entries()) expect(ranges[at + 1]![0]).toBeGreaterThanOrEqual(end);
    for (const block of blocks) expect(block.handleOffset).toBe(block.byteOffset);
  });

  test('a block that an operation uses is reused only after that operation', () => {
    const channel = new FakeChannel();
    const arena = arenaOf(channel);
    const timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    timeline.last = 5;
    const first = arena.take(MIB);
    arena.giveBack(first, [{ timeline, ticket: 5 }]);
    expect(arena.isSettling).toBe(true);
    expect(arena.take(MIB).byteOffset).not.toBe(first.byteOffset);
    channel.complete(0, 5);
    expect(arena.take(MIB).byteOffset).toBe(first.byteOffset);
    expect(arena.isSettling).toBe(false);
  });

  test('adjacent freed blocks merge', () => {
    const channel = new FakeChannel();
    const arena = arenaOf(channel);
    const blocks = Array.from({ length: 16 }, () => arena.take(MIB));
    for (const at of [3, 1, 2, 0, ...Array.from({ length: 12 }, (_, n) => n + 4)]) arena.giveBack(blocks[at]!, []);
    for (const offset of [0, 3, 6, 9, 12]) expect(arena.take(3 * MIB).byteOffset).toBe(offset * MIB);
    expect(channel.registered).toHaveLength(1);
  });

  test('memory that does not fit the arena has a separate buffer and registration', async () => {
    const channel = new FakeChannel();
    const arena = arenaOf(channel);
    const blocks = Array.from({ length: 22 }, () => arena.take(3 * MIB));
    const last = blocks.at(-1)!;
    expect(last.buffer).not.toBe(channel.arena);
    expect(channel.registered.at(-1)).toEqual({ handle: last.handle, byteOffset: 0, byteLength: 3 * MIB, isLocked: true });
    arena.giveBack(last, []);
    await turn();
    expect(channel.unregistered).toEqual([last.handle]);
  });
});

describe('copies of ordinary arrays', () => {
  test('synchronize waits for large copies that no code awaits', async () => {
    const { channel, core, device } = fixture();
    const taken = vi.spyOn(core.arena, 'take');
    const x = device.empty(3 * MIB);
    const host = new Float32Array(3 * MIB);
    device.stream.copy(host, x);
    const synchronized = device.stream.synchronize();
    new Float32Array((taken.mock.results[0]!.value as { buffer: ArrayBuffer }).buffer).fill(1);
    channel.completeAll();
    await synchronized;
    expect([host[0], host.at(-1)]).toEqual([1, 1]);
  });
});

test.each([
  ['f16', HALF, [65504, 65520, 2 ** -24, 2 ** -25, 1 + 2 ** -11, 1 + 3 * 2 ** -11]],
  // The last one would be rounded twice by way of f32.
  ['bf16', BFLOAT16, [3.3895313892515355e38, 3.4e38, 2 ** -133, 2 ** -134, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -40]],
] as const)('%s rounds to nearest even once, and converts back', (dtype, format, numbers) => {
  const bitsOf = (value: number): number => scalarBits(dtype, value, 'value').low;
  const infinity = narrowed(format, Infinity);
  // An assertion for each of so many takes seconds.
  const wrong: unknown[] = [];
  const check = (found: number, wanted: number, what: number): unknown =>
    Object.is(found, wanted) || wrong.push(`${found}, not ${wanted}, of ${what}`);
  for (let bits = 0; bits <= infinity; bits += 1) {
    check(numberOf16(dtype, bits), widened(format, bits), bits);
    check(bitsOf(numberOf16(dtype, bits)), bits, bits);
  }
  for (const value of [0, -0, 1, -2, 1e300, -1e300, 5e-324, ...numbers]) expect(bitsOf(value), String(value)).toBe(narrowed(format, value));
  // Around each halfway point, so close that f32 cannot tell.
  for (let bits = 0; bits < infinity; bits += 7) {
    const halfway = bits + 1 === infinity ? numbers[0] : (widened(format, bits) + widened(format, bits + 1)) / 2;
    for (const value of [halfway, halfway * (1 + 2 ** -40), halfway * (1 - 2 ** -40)]) {
      for (const signed of [value, -value]) check(bitsOf(signed), narrowed(format, signed), signed);
    }
  }
  expect(wrong.slice(0, 10)).toEqual([]);
  expect(bitsOf(Number.NaN) & infinity).toBe(infinity);
  expect(bitsOf(Number.NaN) & 0x7fff).not.toBe(infinity);
  expect(numberOf16(dtype, 0xffff)).toBeNaN();
});
