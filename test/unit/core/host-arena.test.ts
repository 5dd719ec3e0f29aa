// Host memory: refused allocations leak nothing and count nothing, and a call looks at few of the blocks that wait for the device.
import { describe, expect, test, vi } from 'vitest';
import { LimitError, OutOfMemoryError } from '../../../src/core/base/errors.js';
import { HandleTable } from '../../../src/core/device/handles.js';
import { HostArena } from '../../../src/core/device/host-arena.js';
import type { Timeline } from '../../../src/core/timeline/timeline.js';
import { thrownBy } from '../../support/wait.js';
import { FakeChannel, fixture } from './fake-channel.js';
import { World } from './simulated.js';

const MIB = 2 ** 20;
const FIRST_CHUNK = 16 * MIB;

/** An arena whose handles the test can exhaust, and which counts its handles. */
function open(channel = new FakeChannel()) {
  let isRefusing = false;
  class Handles extends HandleTable {
    taken = 0;
    override take(): number {
      if (isRefusing) throw new LimitError('ERR_MILLRACE_LIMIT', 'no handle', 0, () => Promise.resolve());
      this.taken++;
      return super.take();
    }
    override giveBackNow(handle: number): void {
      this.taken--;
      super.giveBackNow(handle);
    }
  }
  let next = 0;
  const handles = new Handles(
    (count) => (next += count) - count,
    () => Promise.resolve(),
  );
  const refuse = (on: boolean): void => {
    isRefusing = on;
  };
  return { channel, handles, arena: new HostArena(channel, handles), refuse };
}

describe('blocks that wait for a stream that stands still', () => {
  test.each(['take', 'takePinned'] as const)('make %s no slower, and are used again after it goes on', (name) => {
    const { arena } = open();
    let isReached = false;
    let looks = 0;
    const timeline = { hasReached: () => (looks++, isReached) } as unknown as Timeline;
    const blocks = Array.from({ length: 500 }, () => arena[name](4096));
    for (const block of blocks) arena.giveBack(block, [{ timeline, ticket: 1 }]);
    looks = 0;
    arena.giveBack(arena[name](4096), []);
    expect(looks).toBeLessThan(10);
    isReached = true;
    const buffers = new Set(blocks.map(({ buffer, byteOffset }) => `${buffer.byteLength} ${byteOffset}`));
    for (let n = 0; n < 500; n++) {
      const { buffer, byteOffset } = arena[name](4096);
      expect(buffers).toContain(`${buffer.byteLength} ${byteOffset}`);
    }
    expect(arena.isSettling).toBe(false);
  });
});

describe('a block that is refused', () => {
  test.each([100, MIB, 100 * MIB])('is not counted, and the arena has not grown (%i bytes)', (byteLength) => {
    const { channel, arena, handles, refuse } = open();
    const before = channel.arena.byteLength;
    refuse(true);
    for (let n = 0; n < 10; n++) expect(thrownBy(() => arena.take(byteLength))).toBeInstanceOf(LimitError);
    expect([arena.liveBytes, channel.arena.byteLength, handles.taken]).toEqual([0, before, 0]);
    refuse(false);
    const block = arena.take(byteLength);
    expect(arena.liveBytes).toBe(byteLength);
    arena.giveBack(block, []);
    expect(arena.liveBytes).toBe(0);
  });

  test('does not affect later chunks', () => {
    const { channel, arena, refuse } = open();
    refuse(true);
    thrownBy(() => arena.take(MIB));
    refuse(false);
    // The whole first chunk is available for it.
    for (let n = 0; n < FIRST_CHUNK / MIB; n++) arena.take(MIB);
    expect(channel.registered).toEqual([expect.objectContaining({ byteOffset: 0, byteLength: FIRST_CHUNK })]);
  });

  test('releases its handle if the system has no memory for the arena', () => {
    const { channel, arena, handles } = open();
    channel.arena.grow = () => {
      throw new RangeError('SharedArrayBuffer.prototype.grow: Invalid length parameter');
    };
    // It gets a separate buffer instead.
    const block = arena.take(MIB);
    expect([block.buffer === channel.arena, block.buffer.byteLength, handles.taken]).toEqual([false, MIB, 1]);
  });

  test('is an OutOfMemoryError if there is no memory for a separate buffer', () => {
    const { arena, handles } = open();
    // No growable buffer can have so many.
    const error = thrownBy(() => arena.take(2 ** 53 - 1));
    expect(error).toBeInstanceOf(OutOfMemoryError);
    expect(error).toMatchObject({ requestedBytes: 2 ** 53 });
    expect([arena.liveBytes, handles.taken]).toEqual([0, 0]);
  });

  test.each(['adopt', 'lend'] as const)('releases its handle if the message to the worker cannot be posted (%s)', (way) => {
    const { channel, arena, handles } = open();
    const refuse = (): never => {
      throw new Error('it cannot be posted');
    };
    Object.assign(channel, { register: refuse, lend: refuse });
    const take = () => (way === 'lend' ? arena.lend(MIB) : arena.adopt(new SharedArrayBuffer(MIB), 0, MIB, false));
    expect(thrownBy(take).message).toBe('it cannot be posted');
    expect([arena.liveBytes, handles.taken]).toEqual([0, 0]);
  });
});

test('a copy between backends whose second stage is refused frees the first one', async () => {
  const world = new World();
  const [one, other] = [world.add('cuda', 'cuda:0'), world.add('cpu', 'cpu:0')];
  const [x, y] = [one.device.empty(70 * MIB, 'u8'), other.device.empty(70 * MIB, 'u8')];
  const { arena } = one.core;
  const take = arena.take.bind(arena);
  let accepts = 1;
  arena.take = (byteLength) => {
    if (accepts-- === 0) throw new OutOfMemoryError('ERR_MILLRACE_MEMORY', 'no memory', byteLength, 0);
    return take(byteLength);
  };
  expect(thrownBy(() => one.device.stream.copy(y, x))).toBeInstanceOf(OutOfMemoryError);
  await world.settle();
  expect(arena.liveBytes).toBe(0);
});

test('an upload whose snapshot fails frees its memory', () => {
  const { core, device } = fixture();
  const x = device.empty(4 * MIB);
  const data = new Float32Array(4 * MIB);
  const set = vi.spyOn(Uint8Array.prototype, 'set').mockImplementation(() => {
    throw new RangeError('offset is out of bounds');
  });
  try {
    expect(() => device.stream.copy(x, data)).toThrow(RangeError);
  } finally {
    set.mockRestore();
  }
  core.arena.reclaim();
  expect(core.arena.liveBytes).toBe(0);
});
