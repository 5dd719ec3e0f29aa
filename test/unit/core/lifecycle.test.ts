// Opening and closing of streams and devices: a refused call changes nothing, a closed object keeps nothing.
import { describe, expect, test } from 'vitest';
import { DeviceLostError, LimitError } from '../../../src/core/base/errors.js';
import { MADE } from '../../../src/core/kernels/kernel.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { FakeChannel, fixture, turn } from './fake-channel.js';
import type { DeviceLoss } from '../../../src/protocol/reports.js';

const STREAMS = 16;

describe('stream slots', () => {
  test('a refused creation leaves its slot for the next one', () => {
    const { channel, device } = fixture();
    channel.refusal = Status.LIMIT;
    for (let n = 0; n < 2 * STREAMS; n++) expect(() => device.createStream()).toThrow(LimitError);
    channel.refusal = Status.OK;
    expect(device.createStream().timeline.slot).toBe(1);
    expect(device.inspect().streams).toHaveLength(2);
  });

  test('when all are taken, retryAfter resolves exactly when a stream was closed', async () => {
    const { channel, device, progress } = fixture();
    const streams = Array.from({ length: STREAMS - 1 }, () => device.createStream());
    let refused: unknown;
    try {
      device.createStream();
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(LimitError);
    let isResolved = false;
    const room = (refused as LimitError).retryAfter.then(() => {
      isResolved = true;
    });
    channel.completeAll();
    await turn();
    expect(isResolved).toBe(false);
    const done = Promise.all([streams[0]!.close(), room]).then(() => 'done');
    do {
      await turn();
      channel.completeAll();
      progress.wake();
    } while ((await Promise.race([done, turn()])) !== 'done');
  });
});

test('retryAfter of a full device leaves no waiter on streams that do not advance', async () => {
  const { channel, device, holds, progress } = fixture();
  const [stuck, moving] = [device.createStream(), device.createStream()];
  for (const stream of [stuck, moving]) stream.empty(4);
  const last = moving.timeline.last;
  channel.refusal = Status.LIMIT;
  let refused: unknown;
  try {
    moving.empty(4);
  } catch (error) {
    refused = error;
  }
  const room = (refused as LimitError).retryAfter;
  expect(holds).toEqual([true]);
  channel.complete(moving.timeline.slot, last);
  progress.wake();
  await room;
  await turn();
  expect(holds).toEqual([true, false]);
});

test('an array disposed while its stream closes is freed on the default stream', async () => {
  const { channel, device, progress } = fixture();
  const stream = device.createStream();
  const x = stream.zeros(4);
  channel.completeAll();
  const closing = stream.close();
  await turn();
  expect(channel.opcodes(stream.timeline.slot).at(-1)).toBe('STREAM_DESTROY');
  x[Symbol.dispose]();
  expect(channel.opcodes(stream.timeline.slot).at(-1)).toBe('STREAM_DESTROY');
  expect(channel.opcodes(device.defaultStream.timeline.slot).at(-1)).toBe('FREE');
  channel.completeAll();
  progress.wake();
  await closing;
});

describe('losing a device', () => {
  test('a worker that ended is reported as such, whether the port or the worker notices it first', async () => {
    class Ended extends FakeChannel {
      override loss(): DeviceLoss {
        return { status: Status.STATE, driverStatus: 0 };
      }
    }
    const { core, device } = fixture(new Ended());
    core.checkLost();
    expect(await device.lost).toMatchObject({ reason: 'worker-exit', restartNeeds: 'reopen' });
  });

  test('the operation that faulted has its own error, also if it does not count as complete', async () => {
    class Lost extends FakeChannel {
      isLost = false;
      override loss(): DeviceLoss | undefined {
        return this.isLost ? { status: Status.DEVICE_LOST, driverStatus: 719 } : undefined;
      }
    }
    const channel = new Lost();
    const { core, device } = fixture(channel);
    const stream = device.createStream();
    const x = stream.zeros(4);
    const faulted = stream.fill(x, 1);
    const { slot, last } = stream.timeline;
    const behind = stream.fill(x, 2);
    const dones = [faulted.done, faulted.synchronize({ timeoutMs: 10_000 }), behind.done];
    for (const done of dones) done.catch(() => undefined);
    channel.fail(slot, { id: 7, first: last, last, status: Status.DEVICE_LOST, note: 'it trapped' });
    channel.isLost = true;
    core.checkLost();
    const own = /^The fill on stream .* failed: it trapped/;
    await expect(dones[0]).rejects.toThrow(own);
    await expect(dones[1]).rejects.toThrow(own);
    await expect(dones[2]).rejects.toThrow(/is lost \(CUDA_ERROR_LAUNCH_FAILED\): one of its operations/);
    expect(faulted.error?.message).toMatch(own);
  });

  test('leaves nothing of it in objects that serve other devices of the thread', async () => {
    const { device, progress } = fixture();
    const { timeline } = device.createStream();
    const pending = device.stream.fill(device.zeros(4), 1).done;
    const destroyed = device.destroy();
    await expect(pending).rejects.toBeInstanceOf(DeviceLostError);
    await destroyed;
    expect(progress.drain()).toBe(false);
    let isUnknown = false;
    progress.add(timeline, { ticket: timeline.last + 1, keepsAlive: false, settle: () => (isUnknown = true), lose: () => undefined });
    await turn();
    expect(isUnknown).toBe(true);
  });

  test('closing its streams does not finish its unfinished operations', async () => {
    const { device } = fixture();
    const stream = device.createStream();
    const fill = stream.fill(stream.zeros(4), 1);
    await device.destroy();
    await stream.close();
    expect(fill.isComplete).toBe(false);
    await expect(fill.done).rejects.toBeInstanceOf(DeviceLostError);
  });

  test('destroy ends a pending close', async () => {
    const { channel, device } = fixture();
    const pending = device.stream.fill(device.zeros(4), 1).done;
    const closing = device.close();
    const reason = new Error('enough');
    const destroying = device.destroy(reason);
    await expect(pending).rejects.toMatchObject({ name: 'DeviceLostError', reason: 'closed', cause: reason });
    await Promise.all([closing, destroying]);
    expect(device.state).toBe('closed');
    expect(channel.isClosed).toBe(true);
  });
});

test('a first launch with bad arguments is refused with a message', () => {
  const { channel, device } = fixture();
  const records = channel.records.length;
  expect(() => device.stream.launch(undefined as never, 1, {} as never)).toThrow(/The kernel \(undefined\) was not made by kernel/);
  const kernel = { [MADE]: true, name: 'k', params: {}, build: {}, abi: 'plain', indexRank: 0 } as never;
  for (const threads of [null, {}]) {
    expect(() => device.stream.launch(kernel, { threads } as never, {} as never)).toThrow(/not a number or a list/);
  }
  expect(channel.records).toHaveLength(records);
});
