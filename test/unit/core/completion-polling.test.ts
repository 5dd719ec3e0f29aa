// When waiters are settled: order, earlier tickets, 2^32, the poll and the wake, and what keeps the process alive.
import { describe, expect, test } from 'vitest';
import { AccessTracker } from '../../../src/core/ordering/access-tracker.js';
import { Timeline } from '../../../src/core/timeline/timeline.js';
import { CompletionPolling } from '../../../src/core/waits/completion-polling.js';
import { FakeChannel, fixture, turn } from './fake-channel.js';

const TWO_32 = 2 ** 32;

describe('timeline', () => {
  test('completed is the larger of the two words', () => {
    const channel = new FakeChannel();
    const timeline = new Timeline(channel, 3, 's', new AccessTracker().newClock());
    timeline.last = 50;
    channel.complete(3, 10);
    expect(timeline.completed).toBe(10);
    channel.complete(3, 12, 'host');
    expect(timeline.completed).toBe(12);
    expect(timeline.pending).toBe(38);
    expect([timeline.hasReached(12), timeline.hasReached(13)]).toEqual([true, false]);
  });

  test('tickets beyond 32 bits compare correctly, also while one word is far behind', () => {
    const channel = new FakeChannel();
    const timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    timeline.last = TWO_32 - 1;
    channel.complete(0, TWO_32 - 2);
    channel.complete(0, 5, 'host');
    expect(timeline.completed).toBe(TWO_32 - 2);
    timeline.last = TWO_32 + 9;
    expect(timeline.completed).toBe(TWO_32 - 2);
    expect(timeline.isComplete).toBe(false);
    channel.complete(0, TWO_32 + 9);
    expect(timeline.completed).toBe(TWO_32 + 9);
    timeline.last = 2 ** 52;
    channel.complete(0, 2 ** 52, 'host');
    expect(timeline.isComplete).toBe(true);
  });

  test('a slot continues its count, so points of the previous stream stay reached', () => {
    const channel = new FakeChannel();
    channel.firstTicket = 100;
    const timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    expect(timeline.last).toBe(100);
    timeline.retire();
    expect(timeline.isComplete).toBe(true);
  });
});

describe('progress', () => {
  test('an operation is done while slower work, queued before its promise was read, still runs', async () => {
    const { channel, progress, device } = fixture();
    const stream = device.createStream();
    const x = stream.zeros(4);
    const early = stream.fill(x, 1);
    const late = stream.fill(x, 2);
    const settled: string[] = [];
    void late.done.then(() => settled.push('late'));
    void early.done.then(() => settled.push('early'));
    const ticket = stream.timeline.last;
    channel.complete(stream.timeline.slot, ticket - 1, 'host');
    progress.wake();
    await turn();
    expect(settled).toEqual(['early']);
    expect([early.isComplete, late.isComplete]).toEqual([true, false]);
    channel.complete(stream.timeline.slot, ticket);
    progress.wake();
    await turn();
    expect(settled).toEqual(['early', 'late']);
  });

  test('waiters settle in ticket order, in whatever order they were added', async () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const x = stream.zeros(1);
    const operations = [0, 1, 2, 3, 4].map((value) => stream.fill(x, value));
    const settled: number[] = [];
    for (const n of [3, 0, 4, 1, 2]) void operations[n]!.done.then(() => settled.push(n));
    channel.completeAll();
    await turn();
    await turn();
    expect(settled).toEqual([0, 1, 2, 3, 4]);
  });

  test('after the poll one wake is requested at the lowest ticket with a waiter, and another one after it', async () => {
    const { channel, progress, device } = fixture();
    const { stream } = device;
    const x = stream.zeros(1);
    const first = stream.fill(x, 1);
    const second = stream.fill(x, 2);
    const done = [second.done, first.done];
    const until = performance.now() + 2000;
    while (channel.armed.length === 0 && performance.now() < until) await turn();
    const { slot, last } = stream.timeline;
    expect(channel.armed).toEqual([{ stream: slot, ticket: last - 1 }]);
    channel.complete(slot, last - 1);
    progress.wake();
    await done[1];
    expect(channel.armed.at(-1)).toEqual({ stream: slot, ticket: last });
    channel.complete(slot, last);
    progress.wake();
    await done[0];
    expect(channel.armed).toHaveLength(2);
  });

  test('a later waiter for an earlier ticket arms an earlier wake', async () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const x = stream.zeros(1);
    const first = stream.fill(x, 1);
    const second = stream.fill(x, 2);
    void second.done;
    const until = performance.now() + 2000;
    while (channel.armed.length === 0 && performance.now() < until) await turn();
    void first.done;
    while (channel.armed.length === 1 && performance.now() < until) await turn();
    expect(channel.armed.map(({ ticket }) => ticket)).toEqual([stream.timeline.last, stream.timeline.last - 1]);
    channel.completeAll();
  });

  test('a wake that arrives after the poll saw its ticket leaves later waiters armed', async () => {
    const { channel, progress, device } = fixture();
    const [a, b] = [device.createStream(), device.createStream()];
    const x = a.zeros(1);
    const y = b.zeros(1);
    const first = a.fill(x, 1).done;
    const until = performance.now() + 50;
    while (channel.armed.length === 0 && performance.now() < until) await turn();
    channel.completeAll();
    // The poll for another stream settles it before the wake arrives.
    const other = b.fill(y, 1).done;
    await first;
    progress.wake();
    const armed = channel.armed.length;
    const next = a.fill(x, 2).done;
    while (channel.armed.length === armed && performance.now() < until) await turn();
    while (!channel.armed.some(({ ticket }) => ticket === a.timeline.last) && performance.now() < until) await turn();
    expect(channel.armed).toContainEqual({ stream: a.timeline.slot, ticket: a.timeline.last });
    channel.completeAll();
    progress.wake();
    await Promise.all([other, next]);
  });

  test.each([
    [0.05, 40],
    [1000, 39],
  ])('with polls of up to %d ms, waits of 1 ms need a wake in at most %d of 40 cases', async (longestPollMs, most) => {
    const channel = new FakeChannel();
    const timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    const progress = new CompletionPolling(() => undefined, longestPollMs);
    progress.join(timeline, () => void timeline.newFailures(1));
    const armed: number[] = [];
    for (let n = 1; n <= 40; n++) {
      timeline.last = n;
      const settled = new Promise<void>((settle) => {
        progress.keep(timeline, { ticket: n, keepsAlive: false, settle, lose: () => undefined });
      });
      for (const until = performance.now() + 1; performance.now() < until; ) await turn();
      armed.push(channel.armed.length);
      channel.complete(0, n);
      if (channel.armed.at(-1)?.ticket === n) progress.wake();
      await settled;
    }
    const last = armed.at(-1)!;
    expect(last).toBeGreaterThan(0);
    // A turn on a loaded machine may take as long as a wait.
    if (most === 40) expect(last).toBeGreaterThanOrEqual(30);
    else expect(last).toBeLessThanOrEqual(most);
  });

  test('if a listener withdraws the first waiter when the stream advances, the second one is still settled', () => {
    const channel = new FakeChannel();
    const timeline = new Timeline(channel, 0, 's', new AccessTracker().newClock());
    timeline.last = 2;
    const progress = new CompletionPolling(() => undefined);
    const heard: string[] = [];
    const waiter = (name: string, ticket: number) => ({
      ticket,
      keepsAlive: false,
      settle: () => heard.push(name),
      lose: () => heard.push(`${name} lost`),
    });
    progress.join(timeline, () => {
      timeline.newFailures(1);
      withdraw();
    });
    const withdraw = progress.add(timeline, waiter('first', 1));
    progress.add(timeline, waiter('second', 2));
    channel.complete(0, 2);
    progress.wake();
    expect(heard).toEqual(['second']);
  });

  test('promises keep the process alive from the first to the last, observers do not', async () => {
    const { channel, device, holds } = fixture();
    const { stream } = device;
    const x = stream.zeros(1);
    stream.hub.add({ next: () => undefined });
    stream.fill(x, 0);
    expect(holds).toEqual([]);
    const operations = [stream.fill(x, 1), stream.fill(x, 2)];
    const done = operations.map((operation) => operation.done);
    expect(holds).toEqual([true]);
    channel.completeAll();
    await Promise.all(done);
    expect(holds).toEqual([true, false]);
  });

  test('an aborted wait no longer keeps the process alive and does not affect the operation', async () => {
    const { channel, device, holds } = fixture();
    const x = device.zeros(1);
    const operation = device.stream.fill(x, 1);
    const aborter = new AbortController();
    const wait = operation.synchronize({ signal: aborter.signal });
    aborter.abort(new Error('enough'));
    await expect(wait).rejects.toMatchObject({ name: 'AbortError', code: 'ABORT_ERR', cause: { message: 'enough' } });
    expect(holds).toEqual([true, false]);
    channel.completeAll();
    await operation.done;
  });

  test('a wait that takes too long names its timeout and its object', async () => {
    const { device } = fixture();
    device.zeros(1);
    await expect(device.stream.synchronize({ timeoutMs: 1 })).rejects.toMatchObject({ name: 'WaitTimeoutError', timeoutMs: 1 });
    await expect(device.stream.synchronize({ timeoutMs: -1 })).rejects.toMatchObject({ name: 'ArgumentError', value: -1, limit: 0 });
  });
});
