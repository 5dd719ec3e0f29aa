// The number of lanes that 'auto' chooses, for simulated throughputs and a simulated clock.
import { describe, expect, it } from 'vitest';
import { AutoDepth } from '../../../src/reactive/auto-depth.js';

/** Runs items until the count stops changing; `perSecond` returns the throughput for a number of lanes and of items so far. */
function settle(perSecond: (lanes: number, items: number) => number, occupiedShare = 1, most = 64): number[] {
  let nowMs = 0;
  const counts = [3];
  const lanes = {
    count: 3,
    grow(by: number): boolean {
      if (lanes.count >= most) return false;
      lanes.count = Math.min(most, lanes.count + by);
      counts.push(lanes.count);
      return true;
    },
    shrink(by: number): void {
      lanes.count -= by;
      counts.push(lanes.count);
    },
  };
  const auto = new AutoDepth(lanes, () => nowMs);
  for (let item = 0; item < 50_000; item++) {
    const stepMs = 1000 / perSecond(lanes.count, item);
    auto.setOccupied(true);
    nowMs += stepMs * occupiedShare;
    auto.setOccupied(false);
    nowMs += stepMs * (1 - occupiedShare);
    auto.countItem();
  }
  return counts;
}

describe("depth: 'auto'", () => {
  it('grows while more lanes increase the throughput, and reverts a step without effect', () => {
    expect(settle((lanes) => 100 * Math.min(lanes, 6))).toEqual([3, 4, 6, 9, 6]);
  });

  it('keeps its first depth if the lanes do not limit the run', () => {
    expect(settle((lanes) => 100 * lanes, 0.5)).toEqual([3]);
  });

  it('keeps its first depth if it reaches the full throughput', () => {
    expect(settle(() => 100)).toEqual([3, 4, 3]);
  });

  it('stops at the limit', () => {
    expect(settle((lanes) => 100 * lanes, 1, 8)).toEqual([3, 4, 6, 8]);
  });

  it('measures neither the slow first items nor those in flight when the number changes', () => {
    expect(settle((_, items) => (items < 6 ? 1 : 100))).toEqual([3, 4, 3]);
    let since = 0;
    let lanesBefore = 3;
    const slowAfterChange = (lanes: number, items: number): number => {
      if (lanes !== lanesBefore) since = items;
      lanesBefore = lanes;
      return items - since < lanes ? 10 : 100 * Math.min(lanes, 6);
    };
    expect(settle(slowAfterChange)).toEqual([3, 4, 6, 9, 6]);
  });

  it('measures small items for a few milliseconds, not for a few items', () => {
    // The first of two hundred items is late, as after a collection of garbage.
    expect(settle((_, items) => (items % 200 === 10 ? 500 : 100_000))).toEqual([3, 4, 3]);
  });

  it('takes steps back whose small gain was chance', () => {
    // A machine that becomes faster while more lanes are tried.
    expect(settle((_, items) => (items < 24 ? 100 : items < 60 ? 110 : 120))).toEqual([3, 4, 6, 9, 6, 4, 3]);
    // A small gain that is none of chance is kept.
    expect(settle((lanes) => (lanes >= 4 ? 110 : 100))).toEqual([3, 4, 6, 4, 3, 4]);
  });
});
