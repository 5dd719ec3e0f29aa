// When a stream waits for a collection of forgotten arrays.
import { expect, test } from 'vitest';
import { LiveMemory } from '../../../src/core/device/live-memory.js';
import type { Timeline } from '../../../src/core/timeline/timeline.js';

const TURNS = 8;

test('arrays whose lines are found have 4 MiB, on a large GPU a part of its memory', () => {
  const largeOf = (backend: 'cpu' | 'cuda', totalMemoryBytes: number): number => {
    const channel = { backend, weigh: () => undefined, collectGarbage: () => undefined, releaseHold: () => undefined };
    return new LiveMemory({ channel, info: { totalMemoryBytes }, isGone: false, holdStream: () => 1 }).largeBytes;
  };
  const MIB = 2 ** 20;
  expect([largeOf('cpu', 2 ** 37), largeOf('cuda', 2 ** 34), largeOf('cuda', 2 ** 37)]).toEqual([4 * MIB, 4 * MIB, 16 * MIB]);
});

test('an allocation without room waits for a collection, again after more was used or an allocation failed', async () => {
  let [collections, ticket] = [0, 0];
  const channel = {
    backend: 'cpu' as const,
    weigh: () => undefined,
    collectGarbage: () => void collections++,
    releaseHold: () => undefined,
  };
  const live = new LiveMemory({ channel, info: { totalMemoryBytes: 128 }, isGone: false, holdStream: () => ++ticket });
  const timeline = { slot: 0 } as Timeline;
  /** The collections that an allocation of one byte waits for. */
  const allocate = async (): Promise<number> => {
    const before = collections;
    live.makeRoom(timeline, 1);
    live.add({ byteLength: 1, description: '', livePlace: -1 }, timeline, ++ticket);
    for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
    return collections - before;
  };
  for (let n = 0; n < 96; n++) expect(await allocate()).toBe(0);
  // Beyond three quarters, for each further sixty-fourth.
  expect([await allocate(), await allocate(), await allocate(), await allocate()]).toEqual([1, 0, 0, 1]);
  for (let n = 0; n < 3; n++) {
    live.refused(timeline, ticket);
    expect(await allocate()).toBe(1);
  }
});
