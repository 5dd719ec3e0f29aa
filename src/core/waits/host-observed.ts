// What the program has seen finished: that comes before everything it submits from then on, on whatever stream.
// Thread: owner.
import { AbortError, DeviceLostError, WaitTimeoutError } from '../base/errors.js';
import type { Point } from '../timeline/timeline.js';

/** The program was told that everything up to the point has finished. */
export function see({ timeline, ticket, clock }: Point): void {
  timeline.clockEntry.see(ticket, clock);
}

/** `wait`, which tells that the points were reached: also by a failure, but not by being given up. */
export async function noteSeen<T>(wait: Promise<T>, points: readonly Point[]): Promise<T> {
  try {
    return await wait;
  } catch (error) {
    if (error instanceof AbortError || error instanceof WaitTimeoutError || error instanceof DeviceLostError) points = [];
    throw error;
  } finally {
    for (const point of points) see(point);
  }
}
