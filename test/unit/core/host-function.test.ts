// Host functions: when they are called, their order with other promises, and how their errors are reported.
import { describe, expect, test } from 'vitest';
import { AbortError, DeviceLostError, LaunchError, type MillraceError } from '../../../src/core/base/errors.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { rejectionOf } from '../../support/wait.js';
import { fixture, reach, settle, turn } from './fake-channel.js';

describe('host', () => {
  test('is a record, called once when everything before it has finished, and not before', async () => {
    const all = fixture();
    const { channel, device } = all;
    const { stream } = device;
    stream.fill(device.zeros(4), 1);
    const calls: string[] = [];
    const operation = stream.host(() => calls.push('called'), { label: 'note' });
    const { last, slot } = stream.timeline;
    expect(channel.opcodes(slot).at(-1)).toBe('NOP');
    expect([operation.kind, operation.label, operation.isComplete]).toEqual(['host', 'note', false]);
    await reach(all, stream, last - 1);
    expect(calls).toEqual([]);
    channel.complete(slot, last);
    // The device has finished its part; the function has not been called.
    expect(operation.isComplete).toBe(false);
    expect(stream.isComplete).toBe(true);
    await settle(all.progress);
    expect(calls).toEqual(['called']);
    expect(operation.isComplete).toBe(true);
    await operation.done;
    expect(all.holds).toEqual([true, false]);
  });

  test('an unawaited error reaches errors$ once, at the latest when the device is closed', async () => {
    for (const isClosed of [false, true]) {
      const all = fixture();
      const { core, device } = all;
      const { stream } = device;
      const seen: MillraceError[] = [];
      core.errors.add({ next: (error) => seen.push(error) });
      const mine = new RangeError('mine');
      const operation = stream.host(
        () => {
          throw mine;
        },
        { label: 'note' },
      );
      const closing = isClosed ? device.close() : undefined;
      await reach(all, stream);
      await closing;
      expect(seen).toHaveLength(1);
      expect(seen[0]).toMatchObject({ code: 'ERR_MILLRACE_HOST', cause: mine, stream: 'default', operation: { id: operation.id } });
      expect(seen[0]?.message).toBe('The host function note on stream default of device cpu:0 failed: mine');
    }
  });

  test('an error reaches errors$ also if the device is destroyed right after it, unless its promise was read', async () => {
    for (const isAwaited of [false, true]) {
      const all = fixture();
      const { core, device } = all;
      const { stream } = device;
      const seen: (MillraceError | string)[] = [];
      core.errors.add({ next: (error) => seen.push(error), complete: () => seen.push('complete') });
      const mine = new RangeError('mine');
      const operation = stream.host(() => {
        // Before a turn of the loop has passed.
        queueMicrotask(() => void device.destroy());
        throw mine;
      });
      const done = isAwaited ? rejectionOf(operation.done) : undefined;
      await reach(all, stream);
      expect(device.state).toBe('closed');
      expect(await done).toBe(isAwaited ? mine : undefined);
      expect(seen).toEqual(isAwaited ? ['complete'] : [expect.objectContaining({ cause: mine }), 'complete']);
    }
  });

  test('thrown values that are not errors, and rejections of promises that it returned, are reported too', async () => {
    const all = fixture();
    const { core, device } = all;
    const { stream } = device;
    const seen: MillraceError[] = [];
    core.errors.add({ next: (error) => seen.push(error) });
    const thrower = stream.host(() => {
      // oxlint-disable-next-line no-throw-literal -- callers do.
      throw undefined;
    });
    const throwLate = async (): Promise<void> => {
      await turn();
      throw new Error('late');
    };
    const later = stream.host((() => throwLate()) as () => void);
    const [done, returned] = [rejectionOf(thrower.done), rejectionOf(later.done)];
    await reach(all, stream);
    expect(await done).toMatchObject({ code: 'ERR_MILLRACE_HOST' });
    expect(await returned).toMatchObject({ code: 'ERR_MILLRACE_ARGUMENT', argument: 'fn' });
    await settle(all.progress);
    expect(seen.map(({ message }) => message)).toEqual(['The host function on stream default of device cpu:0 failed: late']);
  });

  test('aborted before its call, it is not called and rejects at once; a later abort has no effect', async () => {
    const all = fixture();
    const { device, holds } = all;
    const { stream } = device;
    const calls: string[] = [];
    const [early, late] = [new AbortController(), new AbortController()];
    const reason = new Error('enough');
    const aborted = stream.host(() => calls.push('aborted'), { signal: AbortSignal.abort(reason) });
    const first = stream.host(() => calls.push('first'), { signal: early.signal });
    const second = stream.host(() => calls.push('second'), { signal: late.signal });
    const later = stream.host(() => calls.push('later'));
    for (const operation of [aborted, first]) {
      const done = rejectionOf(operation.done);
      if (operation === first) early.abort(reason);
      const error = await done;
      expect(error).toBeInstanceOf(AbortError);
      expect(error).toMatchObject({ code: 'ABORT_ERR', cause: reason });
    }
    expect(await rejectionOf(first.synchronize({ timeoutMs: 1000 }))).toBeInstanceOf(AbortError);
    await reach(all, stream);
    await Promise.all([second.done, later.done]);
    late.abort();
    await second.done;
    expect(calls).toEqual(['second', 'later']);
    expect(holds.at(-1)).toBe(false);
  });

  test('an aborted call delays neither the process nor the promises of later work', async () => {
    const all = fixture();
    const { device, holds } = all;
    const controller = new AbortController();
    device.stream.host(() => undefined, { signal: controller.signal });
    expect(holds).toEqual([true]);
    controller.abort();
    expect(holds).toEqual([true, false]);
    const fill = device.stream.fill(device.zeros(1), 1);
    await reach(all, device.stream);
    await fill.done;
  });

  test('of a lost device is not called, whether or not the device had reached it', async () => {
    const all = fixture();
    const { channel, device, progress } = all;
    const { stream } = device;
    const calls: number[] = [];
    const operations = [0, 1].map((n) => stream.host(() => calls.push(n)));
    const done = operations.map((operation) => rejectionOf(operation.done));
    channel.complete(stream.timeline.slot, stream.timeline.last - 1);
    progress.wake();
    await device.destroy();
    for (const error of await Promise.all(done)) expect(error).toBeInstanceOf(DeviceLostError);
    await settle(progress);
    expect(calls).toEqual([]);
    expect(all.holds.at(-1)).toBe(false);
  });

  test('is not called if its own record fails, and is called if only earlier work failed', async () => {
    const all = fixture();
    const { channel, device } = all;
    const { stream } = device;
    const calls: string[] = [];
    const fill = stream.fill(device.zeros(4), 1);
    const after = stream.host(() => calls.push('after'));
    const failed = stream.host(() => calls.push('failed'));
    const { slot, last } = stream.timeline;
    const waits = [fill, failed].map((operation) => rejectionOf(operation.done));
    channel.fail(slot, { id: 1, first: last - 2, last: last - 2, status: Status.LAUNCH_FAILED });
    channel.fail(slot, { id: 2, first: last, last, status: Status.LAUNCH_FAILED });
    await reach(all, stream);
    for (const error of await Promise.all(waits)) expect(error).toBeInstanceOf(LaunchError);
    await after.done;
    expect(calls).toEqual(['after']);
  });

  test('closing waits until it was called', async () => {
    for (const ofDevice of [false, true]) {
      const all = fixture();
      const { channel, device, progress } = all;
      const stream = device.createStream();
      const calls: string[] = [];
      stream.host(() => calls.push('called'));
      const closing = (ofDevice ? device : stream).close().then(() => calls.push('closed'));
      await turn();
      expect(calls).toEqual([]);
      channel.completeAll();
      progress.wake();
      for (let n = 0; n < 5; n++) {
        await turn();
        channel.completeAll();
        progress.wake();
      }
      await closing;
      expect(calls).toEqual(['called', 'closed']);
    }
  });

  test('is emitted to subscribers when it has been called, as failed if it threw', async () => {
    const all = fixture();
    const { device } = all;
    const { stream } = device;
    const finished: (string | undefined)[] = [];
    const failed: unknown[] = [];
    stream.hub.add({ next: ({ label }) => finished.push(label) });
    const mine = new Error('mine');
    stream.host(() => void finished.push('called'), { label: 'one' });
    const thrower = stream.host(
      () => {
        throw mine;
      },
      { label: 'two' },
    );
    thrower.done.catch((error: unknown) => failed.push(error));
    stream.fill(device.zeros(1), 1);
    await reach(all, stream);
    expect(finished).toEqual(['called', 'one', 'two', undefined, undefined, undefined]);
    expect(failed).toEqual([mine]);
  });

  test('has observed earlier operations as finished, which orders its own submissions on checked streams', async () => {
    for (const isHeld of [false, true]) {
      const all = fixture();
      const { device } = all;
      const [first, second] = [0, 1].map(() => device.createStream({ ordering: 'checked' }));
      const x = first!.zeros(4);
      expect(() => second!.fill(x, 1)).toThrow(/order/i);
      const use = (): void => void second!.fill(x, 2);
      const operation = isHeld ? first!.hold(use, { timeoutMs: 1000 }) : first!.host(use);
      await reach(all, first!, first!.timeline.last - (isHeld ? 1 : 0));
      await reach(all, first!);
      await operation.done;
    }
  });

  test('may submit operations and destroy its device', async () => {
    const all = fixture();
    const { device } = all;
    const { stream } = device;
    const calls: string[] = [];
    stream.host(() => {
      calls.push('outer');
      stream.host(() => calls.push('inner'));
    });
    await reach(all, stream);
    await reach(all, stream);
    expect(calls).toEqual(['outer', 'inner']);
    let ended: Promise<void> | undefined;
    stream.host(() => {
      ended = device.destroy();
    });
    const never = rejectionOf(stream.host(() => calls.push('never')).done);
    await reach(all, stream);
    await ended;
    expect(await never).toBeInstanceOf(DeviceLostError);
    expect(calls).toEqual(['outer', 'inner']);
  });

  test('10,000 that are reached at once are all called within the time limit of a test', async () => {
    const all = fixture();
    const { channel, device } = all;
    (channel as { maxPending: number }).maxPending = 2 ** 20;
    const { stream } = device;
    let calls = 0;
    const operations = Array.from({ length: 10_000 }, () => stream.host(() => calls++));
    const waits = Promise.all(operations.map(({ done }) => done));
    channel.completeAll();
    all.progress.wake();
    await waits;
    expect(calls).toBe(10_000);
  });

  test('bad arguments are refused and nothing is submitted', () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const before = channel.records.length;
    const bad: (() => unknown)[] = [
      () => stream.host('fn' as never),
      () => stream.host(() => undefined, null as never),
      () => stream.host(() => undefined, { label: 3 as never }),
      () => stream.host(() => undefined, { signal: {} as never }),
      () => stream.hold(3 as never, { timeoutMs: 1 }),
      () => stream.hold(() => undefined, undefined as never),
      () => stream.hold(() => undefined, {} as never),
      ...[-1, Number.NaN, '5', Number.POSITIVE_INFINITY, 2 ** 31].map(
        (timeoutMs) => () => stream.hold(() => undefined, { timeoutMs: timeoutMs as number }),
      ),
    ];
    for (const call of bad) expect(call).toThrow(TypeError);
    expect(channel.records).toHaveLength(before);
  });
});
