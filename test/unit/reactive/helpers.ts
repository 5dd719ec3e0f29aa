// Helpers of the tests of overlap.
import { afterAll, beforeAll, expect } from 'vitest';
import type { Lane } from '../../../src/reactive/lane.js';
import { deferred, settleAll, type Deferred } from './fakes.js';

/** Fails the file if one of its tests left an unhandled rejection. */
export function forbidUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  beforeAll(() => void process.on('unhandledRejection', onUnhandled));
  afterAll(async () => {
    await settleAll();
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled).toEqual([]);
  });
}

/** A stage whose items finish in the order that the test chooses. */
export function manual<R = string>(): {
  readonly stage: (item: number, lane: Lane) => Promise<R>;
  readonly items: Map<number, Deferred<R>>;
  readonly lanes: Map<number, Lane>;
} {
  const items = new Map<number, Deferred<R>>();
  const lanes = new Map<number, Lane>();
  const stage = (item: number, lane: Lane): Promise<R> => {
    const work = deferred<R>();
    items.set(item, work);
    lanes.set(item, lane);
    return work.promise;
  };
  return { stage, items, lanes };
}

export async function collect<R>(results: AsyncIterable<R>): Promise<R[]> {
  const all: R[] = [];
  for await (const result of results) all.push(result);
  return all;
}
