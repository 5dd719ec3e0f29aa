// The wait at the end of a run when the device is full: neither the result or error of the function is lost, nor
// the order.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { LimitError } from '../../../src/core/base/errors.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { entryOf } from '../../../src/core/ordering/vector-clock.js';
import { isSettled } from '../../support/wait.js';
import { finish, type Fixture } from './fake-channel.js';
import { open, waitsOf } from './opened.js';

/** The device is full when `fn` has submitted something to the stream. */
function owing(fn: () => unknown = () => 7): Fixture & { readonly stream: Stream; readonly given: () => unknown } {
  const all = open();
  const stream = all.device.createStream({ label: 'inner' });
  const given = (): unknown =>
    stream.run(
      () => {
        stream.zeros(4);
        all.channel.refusal = Status.LIMIT;
        return fn();
      },
      { syncExit: true },
    );
  return { ...all, stream, given };
}

const mine = new RangeError('mine');
const fail = (): never => {
  throw mine;
};

describe('a wait at the end of a run that was refused for lack of room', () => {
  test('does not change the result or the error of the function', async () => {
    expect(owing().given()).toBe(7);
    expect(owing(fail).given).toThrow(mine);
    expect(await owing(async () => nextTurn(8)).given()).toBe(8);
    await expect(
      owing(async () => {
        await nextTurn();
        fail();
      }).given(),
    ).rejects.toBe(mine);
  });

  test.each([['gave'], ['threw']])('precedes the next submission, if the function %s something', (what) => {
    const { channel, device, stream, given } = owing(what === 'threw' ? fail : undefined);
    const { defaultStream } = device;
    try {
      given();
    } catch {}
    const { last } = stream.timeline;
    // Refused like any call, and nothing precedes the wait.
    expect(() => defaultStream.empty(4)).toThrow(LimitError);
    expect(() => defaultStream.record()).toThrow(LimitError);
    channel.refusal = Status.OK;
    // Not later operations of the awaited stream.
    stream.zeros(4);
    defaultStream.record();
    defaultStream.empty(4);
    expect(channel.opcodes(defaultStream.timeline.slot)).toEqual(['STREAM_CREATE', 'WAIT', 'ALLOC']);
    expect(waitsOf(channel, defaultStream)).toEqual([stream.timeline.slot]);
    expect(entryOf(defaultStream.timeline).hasWaited(entryOf(stream.timeline), last)).toBe(true);
    expect(entryOf(defaultStream.timeline).hasWaited(entryOf(stream.timeline), last + 1)).toBe(false);
  });

  test('is included in waits for the outer stream', async () => {
    const all = owing();
    const { channel, device, stream, given } = all;
    const [other, { defaultStream }] = [device.createStream(), device];
    given();
    expect(() => other.waitStream(defaultStream)).toThrow(LimitError);
    channel.refusal = Status.OK;
    other.waitStream(defaultStream);
    expect(waitsOf(channel, other)).toEqual([stream.timeline.slot]);
    channel.complete(defaultStream.timeline.slot, defaultStream.timeline.last);
    expect([defaultStream.isComplete, defaultStream.pending]).toEqual([false, 0]);
    const synchronized = defaultStream.synchronize();
    expect(await isSettled(synchronized)).toBe(false);
    finish(all);
    await synchronized;
    expect(defaultStream.isComplete).toBe(true);
  });

  test('orders checked streams', () => {
    const { channel, device } = open();
    const [before, stream] = [0, 1].map(() => device.createStream({ ordering: 'checked' })) as [Stream, Stream];
    const x = stream.zeros(4);
    device.setCurrentStream(before);
    stream.run(
      () => {
        stream.fill(x, 1);
        channel.refusal = Status.LIMIT;
      },
      { syncEnter: false, syncExit: true },
    );
    channel.refusal = Status.OK;
    expect(() => before.fill(x, 2)).not.toThrow();
  });

  test('of nested runs is kept for each outer stream', () => {
    const { channel, device } = open();
    const [outer, inner] = [device.createStream(), device.createStream()];
    const seen = outer.run(
      () =>
        inner.run(
          () => {
            inner.zeros(4);
            channel.refusal = Status.LIMIT;
            return 'both';
          },
          { syncExit: true },
        ),
      { syncExit: true },
    );
    expect(seen).toBe('both');
    channel.refusal = Status.OK;
    device.defaultStream.fill(device.zeros(4), 1);
    expect(waitsOf(channel, device.defaultStream)).toEqual([inner.timeline.slot]);
    outer.zeros(4);
    expect(waitsOf(channel, outer)).toEqual([inner.timeline.slot]);
  });
});
