// The number of lanes that 'auto' chooses, for simulated throughputs and a simulated clock.
import { describe, expect, it } from 'vitest';
import { AutoDepth } from '../../../src/reactive/auto-depth.js';

/** Runs items until the count stops changing; `perSecond` returns the throughput for a number of lanes. */
function settle(perSecond: (lanes: number) => number, occupiedShare = 1, most = 64): number[] {
  let nowMs = 0;
  const counts = [2];
  const lanes = {
    count: 2,
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
  for (let item = 0; item < 5000; item++) {
    const stepMs = 1000 / perSecond(lanes.count);
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
    expect(settle((lanes) => 100 * Math.min(lanes, 6))).toEqual([2, 3, 4, 6, 9, 6]);
  });

  it('keeps its first depth if the lanes do not limit the run', () => {
    expect(settle((lanes) => 100 * lanes, 0.5)).toEqual([2]);
  });

  it('keeps its first depth if two lanes reach the full throughput', () => {
    expect(settle(() => 100)).toEqual([2, 3, 2]);
  });

  it('stops at the limit', () => {
    expect(settle((lanes) => 100 * lanes, 1, 8)).toEqual([2, 3, 4, 6, 8]);
  });
});
