// Subscriptions that begin while operations are pending: they get each of them, as if they had begun earlier.
import { describe, expect, test, vi } from 'vitest';
import { DeviceLostError, UpstreamError } from '../../../src/core/base/errors.js';
import { installObservableFactory } from '../../../src/core/base/observable.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import type { Activity, Operation } from '../../../src/core/operations/operation.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { finish, type Fixture, fixture, settle, shiftKernel, turn } from './fake-channel.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

installObservableFactory((source) => source as never);

interface Seen {
  readonly operations: Operation[];
  readonly ids: () => number[];
  readonly end: () => unknown;
  readonly stop: () => void;
}

function watch({ hub }: Pick<Fixture['device'], 'hub'>): Seen {
  const operations: Operation[] = [];
  let end: unknown = 'none';
  const stop = hub.add({
    next: (operation) => void operations.push(operation),
    complete: () => (end = 'complete'),
    error: (error) => (end = error),
  });
  return { operations, ids: () => operations.map(({ id }) => id), end: () => end, stop };
}

describe('an operation that was pending at the start of a subscription', () => {
  test('is emitted although the first entries of the log are reused', async () => {
    const all = fixture();
    const { channel, device } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    for (let n = 0; n < 9000; n++) {
      stream.fill(x, n);
      if (n % 50 === 0) finish(all);
    }
    finish(all);
    const called: string[] = [];
    const host = stream.host(() => void called.push('host'));
    const behind: number[] = [];
    // The device has finished them; their promises wait for the function.
    for (let n = 0; n < 9000; n++) {
      behind.push(stream.fill(x, n).id);
      channel.completeAll();
    }
    stream.timeline.log.look();
    const seen = watch(stream);
    await vi.waitFor(() => expect(seen.operations).toHaveLength(9001));
    expect(called).toEqual(['host']);
    expect(seen.ids()).toEqual([host.id, ...behind]);
  });

  test('is emitted once, however many subscribe, unsubscribe and subscribe again', async () => {
    const all = fixture();
    const { channel, device } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    const { slot } = stream.timeline;
    const ids = [1, 2, 3, 4].map((value) => stream.fill(x, value).id);
    const last = stream.timeline.last;
    const first = watch(stream);
    const second = watch(device);
    channel.complete(slot, last - 3);
    await settle(all.progress);
    first.stop();
    second.stop();
    channel.complete(slot, last - 2);
    await settle(all.progress);
    const third = watch(stream);
    ids.push(stream.fill(x, 5).id);
    channel.complete(slot, last - 1);
    await settle(all.progress);
    const fourth = watch(stream);
    finish(all);
    await settle(all.progress);
    expect(first.ids()).toEqual(ids.slice(0, 1));
    expect(second.ids()).toEqual(ids.slice(0, 1));
    expect(third.ids()).toEqual(ids.slice(2));
    expect(fourth.ids()).toEqual(ids.slice(3));
  });

  test('is emitted if the stream is closed meanwhile', async () => {
    const all = fixture();
    const { device } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    const other = device.createStream();
    const ids = [stream.fill(x, 1).id, stream.waitStream(other).id, stream.fill(x, 2).id, stream.waitStream(other).id];
    const closing = stream.close();
    const seen = watch(stream);
    const settled = closing.then(() => true);
    do finish(all);
    while (!(await Promise.race([settled, turn().then(() => false)])));
    expect(seen.ids()).toEqual(ids);
    expect(seen.end()).toBe('complete');
  });

  test('is emitted if it finished before the device was lost; otherwise activity$ emits it as failed', () => {
    const all = fixture();
    const { channel, core, device } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    const issued = [1, 2, 3].map((value) => stream.fill(x, value));
    const seen = watch(stream);
    const phases: Activity[] = [];
    device.context.observation.activity.add({ next: (activity) => void phases.push(activity) });
    channel.complete(stream.timeline.slot, stream.timeline.last - 1);
    const lost = new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault');
    core.lose(lost);
    expect(seen.ids()).toEqual(issued.slice(0, 2).map(({ id }) => id));
    expect(seen.end()).toBe(lost);
    expect(phases.map(({ phase, operation }) => `${phase} ${operation.id}`)).toEqual([
      ...issued.slice(0, 2).map(({ id }) => `finished ${id}`),
      `failed ${issued[2]!.id}`,
    ]);
    expect(issued.map(({ status }) => status)).toEqual(['finished', 'finished', 'failed']);
    expect(issued[2]!.error).toBe(lost);
    // The device may still finish it, but no report changes.
    channel.completeAll();
    expect(issued[2]).toMatchObject({ isComplete: false, status: 'failed' });
  });
});

describe('status and error of an operation', () => {
  test('show the failure also without subscribers, and to a late one', async () => {
    const all = fixture();
    const { channel, device } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    const bad = stream.fill(x, 1);
    const read = stream.fill(x, 2);
    const { last, slot } = stream.timeline;
    channel.fail(slot, { id: 1, first: last - 1, last: last - 1, status: Status.LAUNCH_FAILED });
    channel.fail(slot, { id: 2, first: last, last, status: Status.UPSTREAM, cause: 1 });
    const seen = watch(stream);
    finish(all);
    await settle(all.progress);
    expect(seen.operations.map(({ status }) => status)).toEqual(['failed', 'failed']);
    expect(seen.operations[1]!.error).toBeInstanceOf(UpstreamError);
    expect(seen.operations[1]!.error!.cause).toMatchObject({ code: 'ERR_MILLRACE_LAUNCH' });
    expect([bad.status, read.status]).toEqual(['failed', 'failed']);
    expect(bad.error!.message).toBe(seen.operations[0]!.error!.message);
  });
});

describe('a listener', () => {
  test('that throws does not stop the others', async () => {
    const all = fixture();
    const { device } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    const thrown: unknown[] = [];
    vi.spyOn(globalThis, 'setImmediate').mockImplementation(((call: () => void) => {
      try {
        call();
      } catch (error) {
        thrown.push(error);
      }
    }) as never);
    try {
      stream.hub.add({
        next: () => {
          throw new Error('mine');
        },
      });
      const seen = watch(stream);
      const { id } = stream.fill(x, 1);
      all.channel.completeAll();
      all.progress.wake();
      expect(seen.ids()).toEqual([id]);
      expect(thrown).toMatchObject([{ message: 'mine' }]);
    } finally {
      vi.restoreAllMocks();
    }
  });

  test('that an earlier listener removed is not called any more', () => {
    const all = fixture();
    const { channel, device, progress } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    let removed: Seen | undefined = undefined as Seen | undefined;
    stream.hub.add({ next: () => removed?.stop() });
    removed = watch(stream);
    const iterated: unknown[] = [];
    stream.fill(x, 1);
    channel.completeAll();
    progress.wake();
    expect([...removed.ids(), ...iterated]).toEqual([]);
  });
});

test('a launch without subscribers adds only its entry in the log', () => {
  const all = fixture();
  const { device } = all;
  const stream = device.createStream({ ordering: 'explicit' });
  const y = stream.empty(4);
  finish(all);
  const add = vi.spyOn(all.progress, 'add');
  const kept = vi.spyOn(stream.timeline.log.kept, 'add');
  for (let n = 0; n < 9; n++) stream.launch(shiftKernel(inout(f32)), 4, { y });
  expect(add).not.toHaveBeenCalled();
  expect(kept).not.toHaveBeenCalled();
});
