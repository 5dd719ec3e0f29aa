// Lanes that `depth: 'auto'` adds and drops.
import { expect, it } from 'vitest';
import { checkLayout, LanePool } from '../../../src/reactive/lane-pool.js';
import { fakeDevice } from './fakes.js';

it('a lane that was free when lanes are dropped can still be taken, and is dropped after that', () => {
  const { device, streams } = fakeDevice();
  const pool = new LanePool(checkLayout(device, 'auto', undefined));
  const [a, b] = [pool.acquire()!, pool.acquire()!];
  expect([pool.free, pool.count]).toEqual([1, 3]);
  // A run has asked its source for an item for the free lane.
  pool.shrink(1);
  expect([pool.free, pool.count]).toEqual([1, 2]);
  const c = pool.acquire();
  expect(c?.index).toBe(2);
  pool.release(a);
  expect([pool.free, pool.count, pool.busy]).toEqual([0, 2, 2]);
  pool.release(b);
  expect(pool.free).toBe(1);
  // Lanes that were dropped are used again, with their streams.
  pool.grow(1);
  expect([pool.free, pool.count, streams.length]).toEqual([2, 3, 3]);
  expect(new Set([pool.acquire()?.index, pool.acquire()?.index, c?.index])).toEqual(new Set([0, 1, 2]));
});
