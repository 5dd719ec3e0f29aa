// How much one turn of the event loop gets to do: waits that are over, promises, reports, failures that no code awaits.
import { expect, test } from 'vitest';
import { SETTLED_PER_TURN, TOLD_PER_TURN, WAITS_PER_TURN } from '../../../src/core/base/loop-turns.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { isSettled } from '../../support/wait.js';
import { finish, fixture, turn } from './fake-channel.js';

const MANY = 2000;

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

test('one turn tells a bounded number of failures that no code awaits, and none is lost', async () => {
  const { channel, core, device } = fixture();
  const x = device.zeros(1);
  const { note, total, most } = perTurn();
  core.errors.add({ next: note });
  const { timeline } = device.stream;
  for (let n = 0; n < MANY; n++) {
    device.stream.fill(x, 1);
    channel.fail(timeline.slot, { id: n + 1, first: timeline.last, last: timeline.last, status: Status.LAUNCH_FAILED, note: `${n}` });
  }
  channel.completeAll();
  await device.stream.synchronize();
  while (core.failures.hasUntold) await turn();
  expect(total()).toBe(MANY);
  expect(most()).toBeLessThanOrEqual(4 * TOLD_PER_TURN);
});
