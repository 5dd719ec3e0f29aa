// Finished operations in arrays: all of them, in order, for one await each, and bounded.
import { expect, test } from 'vitest';
import { operationsOf } from '../../../src/core/operations/operation-iterator.js';
import { fixture, turn } from './fake-channel.js';

test('a batch has the operations that finished since the last one, up to the limit', async () => {
  const { channel, device, progress } = fixture();
  const { stream } = device;
  const x = device.zeros(1);
  // What is pending would be told.
  channel.completeAll();
  const iterator = operationsOf(stream, { batches: 4 })[Symbol.asyncIterator]();
  const ids: number[] = [];
  const finish = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) ids.push(stream.fill(x, n).id);
    channel.completeAll();
    progress.wake();
    await turn();
  };
  const first = iterator.next();
  await finish(3);
  expect((await first).value.map(({ id }: { id: number }) => id)).toEqual(ids.slice(0, 3));
  await finish(1);
  await finish(2);
  expect((await iterator.next()).value).toHaveLength(3);
  await finish(4);
  expect((await iterator.next()).value.map(({ id }: { id: number }) => id)).toEqual(ids.slice(6));
  const rest = iterator.next();
  await iterator.return?.();
  expect(await rest).toEqual({ done: true, value: undefined });
});

test('more unread operations than a batch are an error, or the oldest are lost', async () => {
  const { channel, device, progress } = fixture();
  const { stream } = device;
  const x = device.zeros(1);
  // What is pending would be told.
  channel.completeAll();
  const strict = operationsOf(device, { batches: 2 })[Symbol.asyncIterator]();
  const loose = operationsOf(device, { batches: 2, overflow: 'drop-oldest' })[Symbol.asyncIterator]();
  const ids = [1, 2, 3].map((value) => stream.fill(x, value).id);
  channel.completeAll();
  progress.wake();
  expect((await loose.next()).value.map(({ id }: { id: number }) => id)).toEqual(ids.slice(1));
  expect((await strict.next()).value).toHaveLength(2);
  expect((await strict.next()).value).toHaveLength(1);
  await expect(strict.next()).rejects.toMatchObject({ code: 'ERR_MILLRACE_OVERFLOW' });
  expect(() => operationsOf(stream, { batches: 0 })).toThrow(/batches/);
  expect(() => operationsOf(stream, 3 as never)).toThrow(/batches/);
});
