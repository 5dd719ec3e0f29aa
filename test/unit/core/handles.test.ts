// Handles run out: what is refused then, and what brings the next one.
import { beforeEach, describe, expect, test } from 'vitest';
import { LimitError } from '../../../src/core/base/errors.js';
import { HandleTable } from '../../../src/core/device/handles.js';
import { AccessTracker } from '../../../src/core/ordering/access-tracker.js';
import { Timeline } from '../../../src/core/timeline/timeline.js';
import { HANDLE_INDEX_BITS } from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, fixture, handleAt, turn } from './fake-channel.js';

const MAX = 2 ** HANDLE_INDEX_BITS;

describe('a table that is exhausted', () => {
  let channel: FakeChannel;
  let timeline: Timeline;
  let reached: { readonly ticket: number; readonly resolve: () => void }[];
  let withdrawn: number[];
  let reservations: number;
  let table: HandleTable;

  /** One handle is left, and taken. */
  beforeEach(() => {
    channel = new FakeChannel();
    timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    timeline.last = 9;
    reached = [];
    withdrawn = [];
    reservations = 0;
    table = new HandleTable(
      () => {
        reservations++;
        return MAX - 1;
      },
      (_, ticket, withdrawals) => {
        withdrawals.push(() => void withdrawn.push(ticket));
        return new Promise((resolve) => reached.push({ ticket, resolve }));
      },
    );
    expect(table.take()).toBe(handleAt(MAX - 1));
  });

  function refusal(): LimitError {
    try {
      table.take();
    } catch (error) {
      if (error instanceof LimitError) return error;
    }
    throw new Error('Nothing was refused.');
  }

  /** Whether the promise has resolved by now. */
  function watch(promise: Promise<void>): { isResolved: boolean } {
    const seen = { isResolved: false };
    void promise.then(() => {
      seen.isResolved = true;
    });
    return seen;
  }

  test('requests no more indices, however often it is tried', () => {
    for (let n = 0; n < 5000; n++) expect(refusal().limit).toBe(MAX);
    expect(reservations).toBe(1);
  });

  test('resolves retryAfter when the oldest free has completed', async () => {
    table.giveBack(handleAt(3), timeline, 5);
    const seen = watch(refusal().retryAfter);
    await turn();
    expect(seen.isResolved).toBe(false);
    expect(reached.map(({ ticket }) => ticket)).toEqual([5]);
    channel.complete(0, 5);
    reached[0]!.resolve();
    await turn();
    expect(seen.isResolved).toBe(true);
    expect(table.take() & (MAX - 1)).toBe(3);
  });

  test('resolves retryAfter when a later free has completed', async () => {
    const seen = watch(refusal().retryAfter);
    await turn();
    table.giveBack(handleAt(3), timeline, 5);
    await turn();
    expect(seen.isResolved).toBe(false);
    channel.complete(0, 5);
    reached[0]!.resolve();
    await turn();
    expect(seen.isResolved).toBe(true);
  });

  test('does not wait for a stuck free when another handle is released, and leaves no waiter there', async () => {
    table.giveBack(handleAt(3), timeline, 5);
    const seen = watch(refusal().retryAfter);
    await turn();
    table.giveBackNow(handleAt(4));
    await turn();
    expect(seen.isResolved).toBe(true);
    expect(withdrawn).toEqual([5]);
    expect(table.take() & (MAX - 1)).toBe(4);
  });

  test('settles all waits when the device is gone', async () => {
    const seen = watch(refusal().retryAfter);
    table.end();
    await turn();
    expect(seen.isResolved).toBe(true);
  });
});

describe('a device without handles', () => {
  class Exhausted extends FakeChannel {
    override reserveHandles(): number {
      return MAX - 1;
    }
  }

  function refused(): ReturnType<typeof fixture> & { readonly room: Promise<void>; free(): void } {
    const made = fixture(new Exhausted());
    const last = made.device.empty(4);
    let error: unknown;
    try {
      made.device.empty(4);
    } catch (caught) {
      error = caught;
    }
    return { ...made, room: (error as LimitError).retryAfter, free: () => last[Symbol.dispose]() };
  }

  test('has handles again when an array was freed on the device', async () => {
    const { channel, device, progress, room, free } = refused();
    free();
    channel.completeAll();
    progress.wake();
    await room;
    device.empty(4);
  });

  test('leaves no wait pending after it was closed', async () => {
    const { device, room } = refused();
    await device.destroy();
    await room;
  });
});
