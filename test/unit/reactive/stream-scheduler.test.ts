// A stream as an RxJS scheduler, on a device that finishes when the test says so.
import { AsyncLocalStorage } from 'node:async_hooks';
import { EMPTY, interval, observeOn, of, range, type SchedulerAction, subscribeOn, take, toArray, lastValueFrom } from 'rxjs';
import { describe, expect, test, vi } from 'vitest';
import type { Stream } from '../../../src/core/api/stream.js';
import { DeviceLostError } from '../../../src/core/base/errors.js';
import { onStream } from '../../../src/reactive/stream-scheduler.js';
import { finish, type Fixture, fixture, settle, turn } from '../core/fake-channel.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

/** A stream with a pending operation. */
function busy(): Fixture & { readonly stream: Stream; readonly submit: () => void } {
  const all = fixture();
  const stream = all.device.createStream({ ordering: 'explicit' });
  const x = stream.zeros(4);
  finish(all);
  const submit = (): void => void stream.fill(x, 1);
  submit();
  return { ...all, stream, submit };
}

async function quiet(all: Fixture): Promise<void> {
  for (let n = 0; n < 4; n++) await settle(all.progress);
}

describe('an action', () => {
  test('runs after everything that was submitted before, in the order of the calls', async () => {
    const all = busy();
    const { channel, stream, submit } = all;
    const scheduler = onStream(stream);
    const ran: string[] = [];
    const note = (name?: string): void => void ran.push(name!);
    scheduler.schedule(note, 0, 'a');
    const { last, slot } = stream.timeline;
    submit();
    onStream(stream).schedule(note, 0, 'b');
    channel.complete(slot, last);
    // The device has finished nothing since, but this action finds the stream complete before the other waits settle.
    await quiet(all);
    expect(ran).toEqual(['a']);
    channel.completeAll();
    scheduler.schedule(note, 0, 'c');
    expect(ran).toEqual(['a']);
    all.progress.wake();
    await vi.waitFor(() => expect(ran).toEqual(['a', 'b', 'c']));
  });

  test('of an idle stream runs soon, never within the call, and does not block the event loop', async () => {
    const all = busy();
    finish(all);
    const ran: number[] = [];
    let turns = 0;
    const action = onStream(all.stream).schedule(function (this: SchedulerAction<unknown>) {
      ran.push(turns);
      this.schedule();
    });
    expect(ran).toEqual([]);
    for (; ran.length < 20; turns++) await turn();
    action.unsubscribe();
    expect(turns).toBeGreaterThan(10);
  });

  test('waits for host functions before it', async () => {
    const all = busy();
    const ran: string[] = [];
    all.stream.host(() => void ran.push('function'));
    onStream(all.stream).schedule(() => void ran.push('action'));
    all.channel.completeAll();
    await vi.waitFor(() => expect(ran).toEqual(['function', 'action']));
  });

  test('that is unsubscribed does not run, and delays nothing', async () => {
    const all = busy();
    const scheduler = onStream(all.stream);
    const ran: string[] = [];
    const dropped = scheduler.schedule(() => void ran.push('dropped'));
    scheduler.schedule(() => void ran.push('kept'));
    const late = scheduler.schedule(() => void ran.push('late'), 1e6);
    dropped.unsubscribe();
    late.unsubscribe();
    all.channel.completeAll();
    await vi.waitFor(() => expect(ran).toEqual(['kept']));
  });

  test('with a delay waits for operations that were submitted by the end of the delay', async () => {
    const timeout = vi.spyOn(globalThis, 'setTimeout');
    const all = busy();
    const ran: string[] = [];
    onStream(all.stream).schedule(() => void ran.push('action'), 1000);
    const [due, delayMs] = timeout.mock.calls.at(-1)!;
    clearTimeout(timeout.mock.results.at(-1)!.value as NodeJS.Timeout);
    timeout.mockRestore();
    expect(delayMs).toBe(1000);
    finish(all);
    await quiet(all);
    all.submit();
    due();
    await quiet(all);
    expect(ran).toEqual([]);
    finish(all);
    await vi.waitFor(() => expect(ran).toEqual(['action']));
  });

  test('runs also if the stream was closed or the device lost', async () => {
    for (const isLost of [false, true]) {
      const all = busy();
      const ran: string[] = [];
      onStream(all.stream).schedule(() => void ran.push('before'));
      if (isLost) all.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
      else {
        const closing = all.stream.close().then(() => true);
        do finish(all);
        while (!(await Promise.race([closing, turn().then(() => false)])));
      }
      onStream(all.stream).schedule(() => void ran.push('after'));
      await vi.waitFor(() => expect(ran).toEqual(['before', 'after']));
    }
  });

  test('runs in the asynchronous context of its call', async () => {
    const all = busy();
    const context = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    for (const name of ['one', 'two']) context.run(name, () => onStream(all.stream).schedule(() => void seen.push(context.getStore())));
    all.channel.completeAll();
    await vi.waitFor(() => expect(seen).toEqual(['one', 'two']));
  });

  test('that throws does not stop later ones', async () => {
    const all = busy();
    const heard: unknown[] = [];
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => heard.push(error));
    try {
      const mine = new Error('mine');
      const ran: string[] = [];
      const action = onStream(all.stream).schedule(() => {
        throw mine;
      });
      onStream(all.stream).schedule(() => void ran.push('behind'));
      all.channel.completeAll();
      await vi.waitFor(() => expect([ran, heard]).toEqual([['behind'], [mine]]));
      expect(action.closed).toBe(true);
    } finally {
      process.removeAllListeners('uncaughtException');
      for (const listener of others) process.on('uncaughtException', listener);
    }
  });
});

describe('operators', () => {
  test('of several kinds take it', async () => {
    const all = busy();
    finish(all);
    const scheduler = onStream(all.stream);
    expect(await lastValueFrom(range(0, 4, scheduler).pipe(toArray()))).toEqual([0, 1, 2, 3]);
    expect(await lastValueFrom(interval(1, scheduler).pipe(take(3), toArray()))).toEqual([0, 1, 2]);
    expect(await lastValueFrom(of(5).pipe(subscribeOn(scheduler)))).toBe(5);
    expect(await lastValueFrom(EMPTY.pipe(observeOn(scheduler, 1)), { defaultValue: 'none' })).toBe('none');
  });
});

test('bad arguments are refused at the call', () => {
  const { stream, device } = busy();
  expect(() => onStream(device as never)).toThrow(expect.objectContaining({ code: 'ERR_MILLRACE_ARGUMENT' }));
  for (const delay of [Number.NaN, '5', 2 ** 31]) {
    expect(() => onStream(stream).schedule(() => undefined, delay as never)).toThrow(
      expect.objectContaining({ argument: 'delay', value: delay }),
    );
  }
});

test('nothing can be scheduled inside a hold of the stream', async () => {
  const all = busy();
  const { channel, stream } = all;
  let thrown: unknown;
  stream.hold(
    () => {
      try {
        onStream(stream).schedule(() => undefined);
      } catch (error) {
        thrown = error;
      }
    },
    { timeoutMs: 1000 },
  );
  channel.complete(stream.timeline.slot, stream.timeline.last - 1);
  all.progress.wake();
  await vi.waitFor(() => expect(thrown).toMatchObject({ code: 'ERR_MILLRACE_STATE', message: expect.stringContaining('held') }));
});
