// How much one turn of the event loop gets to do: waits that are over, promises, reports, failures that no code awaits.
import { expect, test } from 'vitest';
import {
  READ_PER_TURN,
  REJECTED_PER_TURN,
  REPORTED_PER_TURN,
  SETTLED_PER_TURN,
  TOLD_PER_TURN,
  WAITS_PER_TURN,
} from '../../../src/core/base/loop-turns.js';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { isSettled } from '../../support/wait.js';
import type { Operation } from '../../../src/core/operations/operation.js';
import { finish, type Fixture, fixture, turn } from './fake-channel.js';

const MANY = 2000;

/** Many operations of the device's stream that the device will find failed. */
function manyThatFail({ channel, device }: Fixture): Operation[] {
  const { stream } = device;
  const x = device.zeros(1);
  return Array.from({ length: MANY }, (_, n) => {
    const operation = stream.fill(x, 1);
    const { slot, last } = stream.timeline;
    channel.fail(slot, { id: n + 1, first: last, last, status: Status.LAUNCH_FAILED, note: `${n}` });
    return operation;
  });
}

/** Counts calls by the turn in which they happen. */
function perTurn(): { readonly note: () => void; readonly total: () => number; readonly most: () => number } {
  const counts: number[] = [0];
  let isScheduled = false;
  const note = (): void => {
    counts[counts.length - 1]!++;
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      counts.push(0);
    });
  };
  return { note, total: () => counts.reduce((sum, count) => sum + count, 0), most: () => Math.max(...counts) };
}

test('a loop of awaits whose waits are over gives the event loop its turns', async () => {
  const { device } = fixture();
  const { stream } = device;
  const event = stream.record();
  const operation = stream.waitEvent(event);
  const waits: (() => Promise<unknown>)[] = [
    () => stream.ready(),
    () => stream.synchronize(),
    () => device.synchronize(),
    () => operation.synchronize({ timeoutMs: 1000 }),
    () => event.synchronize({ timeoutMs: 1000 }),
    () => stream.record().done,
  ];
  for (const wait of waits) {
    const { note, total, most } = perTurn();
    for (let n = 0; n < 5 * WAITS_PER_TURN; n++) {
      await wait();
      note();
    }
    expect(total()).toBe(5 * WAITS_PER_TURN);
    expect(most()).toBeLessThanOrEqual(2 * WAITS_PER_TURN);
  }
});

test('waits that are over resolve in the order of their calls, in several turns', async () => {
  const { device } = fixture();
  const { note, most } = perTurn();
  const order: number[] = [];
  const all = Array.from({ length: MANY }, async (_, n) => {
    await device.stream.synchronize();
    note();
    order.push(n);
  });
  await Promise.all(all);
  expect(order).toEqual(Array.from({ length: MANY }, (_, n) => n));
  expect(most()).toBeLessThanOrEqual(2 * WAITS_PER_TURN);
});

test('one turn settles a bounded number of promises, and a second stream does not wait for all of the first', async () => {
  const { channel, device } = fixture();
  const [first, second] = [device.createStream(), device.createStream()];
  const x = device.zeros(1);
  const { note, total, most } = perTurn();
  const settled: string[] = [];
  const submit = (stream: typeof first, name: string): Promise<unknown> =>
    stream.fill(x, 1).done.then(() => {
      note();
      settled.push(name);
    });
  const all = Array.from({ length: MANY }, () => submit(first, 'first'));
  all.push(submit(second, 'second'));
  channel.completeAll();
  await Promise.all(all);
  expect(total()).toBe(MANY + 1);
  expect(most()).toBeLessThanOrEqual(2 * SETTLED_PER_TURN);
  expect(settled.indexOf('second')).toBeLessThanOrEqual(2 * SETTLED_PER_TURN);
});

test('one turn reports a bounded number of operations, in order, and close waits for all of them', async () => {
  const all = fixture();
  const stream = all.device.createStream();
  const x = all.device.zeros(1);
  const { note, most } = perTurn();
  const ids: number[] = [];
  stream.hub.add({
    next: ({ id }) => {
      note();
      ids.push(id);
    },
  });
  const submitted = Array.from({ length: MANY }, () => stream.fill(x, 1).id);
  const closing = stream.close();
  while (!(await isSettled(closing))) finish(all);
  expect(ids).toEqual(submitted);
  expect(most()).toBeLessThanOrEqual(4 * TOLD_PER_TURN);
});

test('one turn reads a bounded number of failures, on several streams, and no promise settles before its failure is known', async () => {
  const { channel, core, device } = fixture();
  core.errors.add({ next: () => undefined });
  const x = device.zeros(1);
  const read = perTurn();
  const failures = channel.failures.bind(channel);
  channel.failures = (stream, from, count) => {
    const part = failures(stream, from, count);
    for (const _ of part.records) read.note();
    return part;
  };
  const streams = [device.createStream(), device.createStream(), device.createStream()];
  const outcomes: boolean[] = [];
  const expected: boolean[] = [];
  const awaited: Promise<unknown>[] = [];
  for (let n = 0; n < MANY; n++) {
    for (const stream of streams) {
      const operation = stream.fill(x, 1);
      const { slot, last } = stream.timeline;
      // The device notices some of the failures in another order than that of their tickets.
      const id = last + 100_000 * slot;
      if (n % 3 === 0) channel.fail(slot, { id: id + 1, first: last + 1, last: last + 1, status: Status.LAUNCH_FAILED });
      if (n % 3 < 2) channel.fail(slot, { id, first: last, last, status: Status.LAUNCH_FAILED });
      // Some are awaited before they are over.
      const at = expected.push(n % 3 < 2) - 1;
      const settle = (): Promise<unknown> =>
        operation.done.then(
          () => (outcomes[at] = false),
          () => (outcomes[at] = true),
        );
      if (n % 2 === 0) awaited.push(settle());
      else if (n > MANY - 10) queueMicrotask(() => awaited.push(settle()));
      else expected.pop();
    }
  }
  channel.completeAll();
  await turn();
  await Promise.all(awaited);
  while (core.failures.hasUnhandled) await turn();
  expect(outcomes).toEqual(expected);
  // Each part of a stream begins with the newest failure that was known, which may have grown.
  expect(read.total()).toBeGreaterThanOrEqual(2 * MANY);
  expect(read.most()).toBeLessThanOrEqual(4 * READ_PER_TURN);
});

test('one turn rejects a bounded number of promises with failures', async () => {
  const fixed = fixture();
  const { note, total, most } = perTurn();
  const all = manyThatFail(fixed).map(({ done }) => done.catch(note));
  fixed.channel.completeAll();
  await Promise.all(all);
  expect(total()).toBe(MANY);
  expect(most()).toBeLessThanOrEqual(2 * REJECTED_PER_TURN);
});

test('one turn rejects a bounded number of promises of a lost device, after those of work that has finished', async () => {
  const { channel, core, device } = fixture();
  const [first, second] = [device.createStream(), device.createStream()];
  const x = device.zeros(1);
  const { note, total, most } = perTurn();
  const outcomes: string[] = [];
  const all = [first, second].flatMap((stream) =>
    Array.from({ length: MANY }, () =>
      stream.fill(x, 1).done.then(
        () => outcomes.push('resolved'),
        (error: Error) => {
          note();
          outcomes.push(error.name);
        },
      ),
    ),
  );
  const finished = first.timeline.last - MANY + 10;
  channel.complete(first.timeline.slot, finished);
  core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
  // Completed too late: it stays lost.
  channel.completeAll();
  const late = second.fill.bind(second, x, 1);
  expect(late).toThrow(DeviceLostError);
  await Promise.all(all);
  expect(outcomes.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'resolved'));
  expect(total()).toBe(2 * MANY - 10);
  expect(most()).toBeLessThanOrEqual(2 * SETTLED_PER_TURN);
});

test('one turn tells observers of a bounded number of operations of a lost device, and then the error', async () => {
  const { channel, core, device } = fixture();
  const stream = device.createStream();
  const x = device.zeros(1);
  channel.completeAll();
  const { note, total, most } = perTurn();
  const ends: unknown[] = [];
  for (const { observation } of [stream, device.context])
    observation.activity.add({
      next: ({ phase }) => void (phase === 'failed' && note()),
      error: (error: unknown) => void ends.push(error),
    });
  for (let n = 0; n < MANY; n++) stream.fill(x, 1);
  const lost = new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault');
  core.lose(lost);
  while (ends.length < 2) await turn();
  expect(ends).toEqual([lost, lost]);
  expect(total()).toBe(2 * MANY);
  expect(most()).toBeLessThanOrEqual(4 * TOLD_PER_TURN);
});

test('close tells a bounded number of failures in one turn', async () => {
  const all = fixture();
  const { core, device } = all;
  const { note, total, most } = perTurn();
  core.errors.add({ next: note });
  manyThatFail(all);
  const closing = device.close();
  while (!(await isSettled(closing))) finish(all);
  expect(total()).toBe(MANY);
  expect(most()).toBeLessThanOrEqual(2 * REPORTED_PER_TURN);
});

test('a status that is asked for knows its failure at once', async () => {
  const { channel, core, device } = fixture();
  core.errors.add({ next: () => undefined });
  const x = device.zeros(1);
  const { timeline } = device.stream;
  const operations = Array.from({ length: MANY }, (_, n) => {
    const operation = device.stream.fill(x, 1);
    const { slot, last } = timeline;
    if (n % 2 === 0) channel.fail(slot, { id: n + 1, first: last, last, status: Status.LAUNCH_FAILED });
    return operation;
  });
  channel.completeAll();
  expect(operations.map(({ status }) => status)).toEqual(operations.map((_, n) => (n % 2 === 0 ? 'failed' : 'finished')));
  await turn();
});

test('one turn tells a bounded number of failures that no code awaits, and none is lost', async () => {
  const all = fixture();
  const { channel, core, device } = all;
  const { note, total, most } = perTurn();
  core.errors.add({ next: note });
  manyThatFail(all);
  channel.completeAll();
  await device.stream.synchronize();
  while (core.failures.hasUnhandled) await turn();
  expect(total()).toBe(MANY);
  expect(most()).toBeLessThanOrEqual(2 * REPORTED_PER_TURN);
});
