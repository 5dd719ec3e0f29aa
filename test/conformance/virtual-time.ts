// Chapter 9: pipelines on devices of millrace/testing, beside the same pipelines on this device.
import { lastValueFrom, of, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { download, f32, inout, kernel, launch, overlap, upload, type Device, type Overlapped, type OverlapReport } from 'millrace';
import { createTestClock, createTestDevice, testKernel } from 'millrace/testing';
import { chapterDevice, rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';

const square = kernel('square', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! * x[i]!;
});

/** Items that pass, one that passes the second time, and one that is skipped. */
function pipeline(device: Device): Overlapped<Float32Array> {
  const opts = { depth: 2, onError: { retry: 1, delayMs: 1, then: 'skip' } } as const;
  return overlap(device, [1, 2, 3, 4, 5], opts, (n, lane) => {
    if (n === 2 && lane.attempt === 1) throw new Error('later');
    const values = new Float32Array(3).fill(n);
    if (n === 4) throw new Error('never');
    return of(values).pipe(
      upload(lane),
      launch(lane, square, 3, (x) => ({ x })),
      download(lane),
    );
  });
}

async function outcome(device: Device): Promise<{ readonly values: unknown; readonly counts: Partial<OverlapReport> }> {
  const run = pipeline(device);
  const values = await lastValueFrom(run.pipe(toArray()));
  const { items, skipped, retried, depth } = run.report();
  return { values, counts: { items, skipped, retried, depth } };
}

export function virtualTime(target: Target): void {
  describe('9 virtual time', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S944', 'a test device gives the results, failures and counts of this device, in the time that it was told', async () => {
      const clock = createTestClock();
      const run = ({ x }: { readonly x: Float32Array }): void => x.forEach((value, i) => (x[i] = value * value));
      const device = createTestDevice({ clock, kernels: [testKernel(square, { ms: 10, run })] });
      const virtual = await clock.run(() => outcome(device));
      expect(virtual).toEqual(await outcome(chapter.device));
      expect(virtual.counts).toEqual({ items: 4, skipped: 1, retried: 2, depth: 2 });
      // Two lanes: 1 ends at 10, 2 (which waits 1 ms) at 11, 3 at 20. 4 fails from 11 to 12 and keeps its lane until 3 has gone, so 5 ends at 30.
      expect(clock.now).toBe(30);
      await device.close();
    });
  });
}
