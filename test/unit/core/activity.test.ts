// The phases of operations that subscribers get, and their order, on streams whose device reports the time of operations.
import { describe, expect, test } from 'vitest';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import { type Hub, installObservableFactory } from '../../../src/core/base/observable.js';
import type { Activity } from '../../../src/core/operations/operation.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { finish, type Fixture, fixture, settle } from './fake-channel.js';

installObservableFactory((source) => source as never);

/** A stream with timing whose device reports times only when released, and the values that a subscriber gets. */
function watched(): Fixture & { readonly stream: Stream; readonly heard: string[]; readonly answer: (deviceMs: number) => void } {
  const all = fixture();
  const questions: ((deviceMs: number) => void)[] = [];
  all.channel.answers.set('elapsed', () => new Promise<number>((resolve) => questions.push(resolve)));
  const stream = all.device.createStream({ timing: true });
  const heard: string[] = [];
  (stream.activity$ as unknown as Hub<Activity>).add({
    next: ({ phase, operation, deviceMs }) => heard.push(`${operation.kind} ${phase}${deviceMs === undefined ? '' : ` ${deviceMs} ms`}`),
    complete: () => heard.push('complete'),
    error: (error) => heard.push((error as Error).name),
  });
  return { ...all, stream, heard, answer: (deviceMs) => questions.shift()?.(deviceMs) };
}

describe('activity$ of a stream with timing', () => {
  test('emits the end of an operation with its time, and then the ends of later operations', async () => {
    const all = watched();
    const { device, stream, heard, answer } = all;
    const x = device.zeros(4);
    stream.fill(x, 1);
    stream.waitStream(device.createStream());
    expect(heard.splice(0)).toEqual(['fill submitted', 'wait submitted']);
    const finished: string[] = [];
    stream.hub.add({ next: ({ kind }) => finished.push(kind) });
    stream.fill(x, 2);
    heard.splice(0);
    finish(all);
    await settle(all.progress);
    expect(finished).toEqual(['fill', 'wait', 'fill']);
    expect(heard).toEqual([]);
    answer(2.5);
    await settle(all.progress);
    expect(heard.splice(0)).toEqual(['fill finished 2.5 ms', 'wait finished']);
    answer(1);
    await settle(all.progress);
    expect(heard).toEqual(['fill finished 1 ms']);
  });

  test('emits a failure at once, without a time', async () => {
    const all = watched();
    const { channel, device, stream, heard } = all;
    const array = device.zeros(4);
    stream.fill(array, 1);
    const { ticket } = channel.records.findLast(({ opcode }) => opcode === 'FILL')!;
    channel.fail(stream.timeline.slot, { id: 1, first: ticket, last: ticket, status: Status.LAUNCH_FAILED });
    finish(all);
    await settle(all.progress);
    expect(heard).toEqual(['fill submitted', 'fill failed']);
  });

  test('emits operations whose times are pending when the stream ends', async () => {
    for (const isLost of [false, true]) {
      const all = watched();
      const { core, device, stream, heard } = all;
      stream.fill(device.zeros(4), 1);
      finish(all);
      await settle(all.progress);
      expect(heard.splice(0)).toEqual(['fill submitted']);
      if (isLost) core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
      else await device.close();
      expect(heard).toEqual(['fill finished', isLost ? 'DeviceLostError' : 'complete']);
    }
  });
});

test('activity$ of a stream without timing requests no times and waits for none', async () => {
  const all = fixture();
  const { device } = all;
  let asked = 0;
  all.channel.answers.set('elapsed', () => asked++);
  const heard: Activity[] = [];
  (device.stream.activity$ as unknown as Hub<Activity>).add({ next: (activity) => heard.push(activity) });
  device.stream.fill(device.zeros(4), 1);
  finish(all);
  expect(heard.at(-1)).toMatchObject({ phase: 'finished' });
  expect(heard.at(-1)).not.toHaveProperty('deviceMs');
  expect(asked).toBe(0);
});
