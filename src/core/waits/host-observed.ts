// What the host has observed as finished. It happens before everything that the thread submits later, on any stream.
// Thread: owner.
import { AbortError, DeviceLostError, WaitTimeoutError } from '../base/errors.js';
import type { Point } from '../timeline/timeline.js';

/**
 * Records that the host observed everything up to the point as finished. Its failures poison what derives from them first: later records of
 * other devices use it without a wait.
 */
export function noteObserved({ timeline, ticket, clock }: Point): void {
  timeline.noteFailures(ticket);
  timeline.clockEntry.observe(ticket, clock);
}

/** Follows `wait`, and records the points as observed when it resolves or rejects with a failure, but not when the wait was given up. */
export async function observedAfter<T>(wait: Promise<T>, points: readonly Point[]): Promise<T> {
  try {
    return await wait;
  } catch (error) {
    if (error instanceof AbortError || error instanceof WaitTimeoutError || error instanceof DeviceLostError) points = [];
    throw error;
  } finally {
    for (const point of points) noteObserved(point);
  }
}
