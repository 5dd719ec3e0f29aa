// Buffers of pinned arrays: their pages of the arena, how long freed buffers are kept, and how the others are unmapped.
import { describe, expect, test } from 'vitest';
import { growableSharedBuffer } from '../../../src/core/channel/host-buffers.js';
import { HandleTable } from '../../../src/core/device/handles.js';
import { HostArena } from '../../../src/core/device/host-arena.js';
import { AccessTracker } from '../../../src/core/ordering/access-tracker.js';
import { Timeline } from '../../../src/core/timeline/timeline.js';
import { FakeChannel } from './fake-channel.js';

const PAGE = 4096;
const MIB = 2 ** 20;
const MOST_KEPT = 1024;
const MOST_MAPPED = 16_384;

/** A channel that pretends to map pages, and records the calls. */
class MappingChannel extends FakeChannel {
  override readonly arena = growableSharedBuffer(0, 1024 * MIB);
  readonly mapped: Map<SharedArrayBuffer, number> = new Map();
  readonly unmapped: SharedArrayBuffer[] = [];
  refusesToUnmap = false;

  override mapHost(buffer: SharedArrayBuffer, arenaOffset: number): boolean {
    for (const [other, offset] of this.mapped) {
      const isApart = arenaOffset + buffer.byteLength <= offset || offset + other.byteLength <= arenaOffset;
      if (!isApart) throw new Error('two buffers have the same page');
    }
    this.mapped.set(buffer, arenaOffset);
    return true;
  }

  override unmapHost(buffer: SharedArrayBuffer): boolean {
    if (this.refusesToUnmap) return false;
    if (!this.mapped.delete(buffer)) throw new Error('it is not mapped');
    this.unmapped.push(buffer);
    return true;
  }
}

function open(channel = new MappingChannel()): { readonly channel: MappingChannel; readonly arena: HostArena } {
  const table = new HandleTable(
    (count) => channel.reserveHandles(1, count),
    () => Promise.resolve(),
  );
  return { channel, arena: new HostArena(channel, table) };
}

describe('the buffer of a pinned array', () => {
  test('has pages of the arena that neither other buffers nor staging memory have', () => {
    const { channel, arena } = open();
    const blocks = [1, 0, PAGE, PAGE + 1, MIB, 17].map((bytes) => [arena.takePinned(bytes), arena.take(bytes)] as const);
    for (const [pinned, staging] of blocks) {
      expect(pinned.byteOffset).toBe(0);
      const start = channel.mapped.get(pinned.buffer as SharedArrayBuffer)!;
      expect([pinned.handle, pinned.handleOffset, start % PAGE]).toEqual([channel.registered[0]!.handle, start, 0]);
      for (const [other] of blocks) {
        const first = channel.mapped.get(other.buffer as SharedArrayBuffer)!;
        expect(staging.byteOffset + staging.byteLength <= first || first + other.buffer.byteLength <= staging.byteOffset).toBe(true);
      }
    }
    // One registration for all of them.
    expect(channel.registered).toHaveLength(1);
  });

  test('is kept for the next array of as many pages, with zeros behind its data', () => {
    const { channel, arena } = open();
    const first = arena.takePinned(PAGE + 100);
    new Uint8Array(first.buffer).fill(7);
    arena.giveBack(first, []);
    expect(arena.takePinned(100).buffer).not.toBe(first.buffer);
    const again = arena.takePinned(PAGE + 50);
    expect(again.buffer).toBe(first.buffer);
    expect([again.handle, again.handleOffset]).toEqual([first.handle, first.handleOffset]);
    const bytes = new Uint8Array(again.buffer);
    expect([bytes.subarray(0, PAGE + 50).every((byte) => byte === 7), bytes.subarray(PAGE + 50).every((byte) => byte === 0)]).toEqual([
      true,
      true,
    ]);
    expect([channel.mapped.size, channel.unmapped.length]).toEqual([2, 0]);
  });

  test('is kept only when its last use has finished', () => {
    const { channel, arena } = open();
    const timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    timeline.last = 5;
    const first = arena.takePinned(100);
    arena.giveBack(first, [{ timeline, ticket: 5 }]);
    expect(arena.takePinned(100).buffer).not.toBe(first.buffer);
    channel.complete(0, 5);
    expect(arena.takePinned(100).buffer).toBe(first.buffer);
  });

  test('is unmapped from the arena when too many are kept, oldest first, before its pages are reused', () => {
    const { channel, arena } = open();
    const blocks = Array.from({ length: MOST_KEPT + 3 }, () => arena.takePinned(1));
    for (const block of blocks) arena.giveBack(block, []);
    expect(channel.unmapped).toEqual(blocks.slice(0, 3).map(({ buffer }) => buffer));
    expect(channel.mapped.size).toBe(MOST_KEPT);
    expect(arena.isLocked(blocks[3]!.buffer, 0, 1)).toBe(true);
    // An ordinary buffer to which code may still refer; the caller may pin it.
    expect(arena.isLocked(blocks[0]!.buffer, 0, 1)).toBe(false);
  });

  test('is unmapped when too many bytes are kept, and at once when it alone has too many', () => {
    const { channel, arena } = open();
    const [large, small] = [arena.takePinned(257 * MIB), arena.takePinned(MIB)];
    const rest = Array.from({ length: 32 }, () => arena.takePinned(8 * MIB));
    arena.giveBack(large, []);
    expect(channel.unmapped).toEqual([large.buffer]);
    arena.giveBack(small, []);
    for (const block of rest.slice(0, 31)) arena.giveBack(block, []);
    expect(channel.unmapped).toHaveLength(1);
    arena.giveBack(rest[31]!, []);
    expect(channel.unmapped).toEqual([large.buffer, small.buffer]);
  });

  test('whose pages cannot be unmapped keeps them permanently', () => {
    const { channel, arena } = open();
    const blocks = Array.from({ length: MOST_KEPT + 1 }, () => arena.takePinned(1));
    channel.refusesToUnmap = true;
    for (const block of blocks) arena.giveBack(block, []);
    // The next buffer has other pages: mapHost throws for one page in two buffers.
    for (let n = 0; n < MOST_KEPT + 10; n++) expect(arena.takePinned(1).buffer).not.toBe(blocks[0]!.buffer);
    expect(channel.mapped.has(blocks[0]!.buffer as SharedArrayBuffer)).toBe(true);
  });

  test('has a separate registration beyond the limit of mapped buffers, which ends with it', () => {
    const channel = new MappingChannel();
    channel.mapHost = (buffer, offset) => channel.mapped.set(buffer, offset) !== undefined;
    const { arena } = open(channel);
    const large = Array.from({ length: MOST_MAPPED }, () => arena.takePinned(1));
    const before = channel.registered.length;
    const beyond = arena.takePinned(1);
    expect(channel.registered.slice(before)).toEqual([{ handle: beyond.handle, byteOffset: 0, byteLength: PAGE, isLocked: true }]);
    expect([channel.mapped.has(beyond.buffer as SharedArrayBuffer), beyond.buffer === channel.arena]).toEqual([false, false]);
    arena.giveBack(beyond, []);
    for (const block of large.slice(0, MOST_KEPT)) arena.giveBack(block, []);
    expect(channel.unregistered).toEqual([beyond.handle]);
  });

  test('has a separate registration if it cannot be mapped', () => {
    const channel = new MappingChannel();
    channel.mapHost = () => false;
    const { arena } = open(channel);
    const block = arena.takePinned(10);
    expect(channel.registered.at(-1)).toEqual({ handle: block.handle, byteOffset: 0, byteLength: PAGE, isLocked: true });
    // The part of the arena that was reserved for it is free.
    expect(arena.take(MIB).byteOffset).toBe(0);
    arena.giveBack(block, []);
    expect(arena.takePinned(20).buffer).toBe(block.buffer);
    expect(channel.unregistered).toEqual([]);
  });
});
