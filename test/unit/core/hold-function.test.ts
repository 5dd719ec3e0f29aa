// Holds: when the stream continues, and the waits that are refused meanwhile.
import { describe, expect, test } from 'vitest';
import { AbortError, DeviceLostError, StateError } from '../../../src/core/base/errors.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import { rejectionOf } from '../../support/wait.js';
import { type Fixture, fixture, reach, settle, turn } from './fake-channel.js';

describe('hold', () => {
  test('is a record; fn is called when earlier operations have finished, and the stream continues when its promise settles', async () => {
    const all = fixture();
    const { channel, device, holds } = all;
    const { stream } = device;
    stream.fill(device.zeros(4), 1);
    let open: (value?: unknown) => void = () => undefined;
    const states: string[] = [];
    const operation = stream.hold(
      () => {
        states.push('called');
        return new Promise<void>((resolve) => (open = resolve as () => void));
      },
      { timeoutMs: 10_000, label: 'gate' },
    );
    const { slot, last } = stream.timeline;
    expect(channel.opcodes(slot).at(-1)).toBe('HOLD');
    void operation.done.then(() => states.push('done'));
    await reach(all, stream, last - 2);
    expect(states).toEqual([]);
    await reach(all, stream, last - 1);
    expect([states, channel.released]).toEqual([['called'], []]);
    const snapshot = device.inspect().streams[0]!;
    expect(snapshot.current).toMatchObject({ id: operation.id, kind: 'host', label: 'gate' });
    expect(snapshot.waitingFor).toMatchObject({ kind: 'host', operation: { id: operation.id } });
    open();
    await settle(all.progress);
    expect([states, channel.released]).toEqual([['called'], [`${slot}:${last}`]]);
    expect(operation.isComplete).toBe(false);
    await reach(all, stream);
    expect([states, operation.isComplete]).toEqual([['called', 'done'], true]);
    expect(holds).toEqual([true, false]);
  });

  test('aborted before its call, it continues the stream at once; aborted later, its signal aborts', async () => {
    const all = fixture();
    const { channel, device } = all;
    const { stream } = device;
    stream.fill(device.zeros(1), 1);
    const calls: string[] = [];
    const [early, late] = [new AbortController(), new AbortController()];
    const first = stream.hold(() => void calls.push('first'), { timeoutMs: 1000, signal: early.signal });
    const second = stream.hold(
      (signal) =>
        new Promise((_, reject) => {
          calls.push('second');
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
      { timeoutMs: 10_000, signal: late.signal },
    );
    const { slot, last } = stream.timeline;
    const done = [first, second].map((operation) => rejectionOf(operation.done));
    early.abort();
    expect(await done[0]).toBeInstanceOf(AbortError);
    expect(channel.released).toEqual([`${slot}:${last - 1}`]);
    await reach(all, stream, last - 1);
    expect(calls).toEqual(['second']);
    const reason = new Error('enough');
    late.abort(reason);
    await settle(all.progress);
    expect(channel.released).toHaveLength(2);
    await reach(all, stream);
    expect(await done[1]).toBe(reason);
  });

  test("of a destroyed device: the signal aborts, and the device's remaining operations are not held", async () => {
    const all = fixture();
    const { channel, device } = all;
    const stream = device.createStream();
    let signal: AbortSignal | undefined;
    const running = stream.hold(
      (given) => {
        signal = given;
        return new Promise(() => undefined);
      },
      { timeoutMs: 10_000 },
    );
    const waiting = stream.hold(() => undefined, { timeoutMs: 10_000 });
    const done = [running, waiting].map((operation) => rejectionOf(operation.done));
    await settle(all.progress);
    expect(signal?.aborted).toBe(false);
    await device.destroy(new Error('over'));
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toBeInstanceOf(DeviceLostError);
    for (const error of await Promise.all(done)) expect(error).toBeInstanceOf(DeviceLostError);
    const { slot, last } = stream.timeline;
    expect(channel.released.toSorted()).toEqual([`${slot}:${last - 1}`, `${slot}:${last}`]);
    expect(all.holds.at(-1)).toBe(false);
  });

  test('no wait outside of a hold is refused', async () => {
    const all = fixture();
    const { device } = all;
    const { stream } = device;
    const operation = stream.hold(() => turn(), { timeoutMs: 1000 });
    const waits = [stream.synchronize(), device.synchronize(), operation.done, stream.record().done];
    await settle(all.progress);
    await reach(all, stream);
    await Promise.all(waits);
  });
});

describe('a wait inside of a hold', () => {
  async function inside(body: (scene: Fixture & { held: Stream; other: Stream }) => Promise<void>): Promise<void> {
    const all = fixture();
    const { channel, device, progress } = all;
    const [held, other] = [device.createStream({ label: 'held' }), device.createStream({ label: 'other' })];
    channel.completeAll();
    const operation = held.hold(() => body({ ...all, held, other }), { timeoutMs: 3000 });
    const { done } = operation;
    // An error of the body is thrown below.
    done.catch(() => undefined);
    await settle(progress);
    while (channel.released.length === 0) {
      progress.wake();
      await turn();
    }
    channel.completeAll();
    progress.wake();
    await done;
  }

  test('for a promise of it that was read before is refused too', async () => {
    const all = fixture();
    const { device, channel } = all;
    const held = device.createStream();
    channel.completeAll();
    const laters: ReturnType<Stream['fill']>[] = [];
    const operation = held.hold(async () => void (await laters[0]?.done), { timeoutMs: 1000 });
    const later = held.fill(held.zeros(1), 1);
    laters.push(later);
    void later.done;
    const done = rejectionOf(operation.done);
    await settle(all.progress);
    await reach(all, held);
    expect(await done).toBeInstanceOf(StateError);
    await later.done;
  });

  test('for a stream that waits for it is refused, through any number of streams', async () => {
    await inside(async ({ device, held, other }) => {
      const third = device.createStream({ label: 'third' });
      const early = third.fill(third.zeros(1), 1);
      other.waitEvent(held.record());
      third.waitStream(other);
      const refused = await rejectionOf(third.synchronize());
      expect(refused).toBeInstanceOf(StateError);
      expect(String(refused)).toMatch(/Stream third waits for stream other, which waits for stream held, which is held by the function/);
      expect(await rejectionOf(other.record().done)).toBeInstanceOf(StateError);
      // Operations before the wait finish without it.
      const done = early.done;
      expect(await Promise.race([done.then(() => 'done'), turn().then(() => 'pending')])).toBe('pending');
      const x = held.zeros(1);
      third.fill(x, 1);
      expect(await rejectionOf(x.read())).toBeInstanceOf(StateError);
    });
  });

  test('is detected in everything that fn calls and awaits, also in a nested hold, until the hold ends', async () => {
    const all = fixture();
    const { channel, device, progress } = all;
    const [outer, inner] = [device.createStream(), device.createStream()];
    channel.completeAll();
    const seen: unknown[] = [];
    let later: Promise<unknown> = Promise.resolve();
    const operation = outer.hold(
      async () => {
        await turn();
        const nested = inner.hold(
          async () => {
            seen.push(await rejectionOf(outer.synchronize()), await rejectionOf(inner.synchronize()));
          },
          { timeoutMs: 3000 },
        );
        while (channel.released.length === 0) {
          progress.wake();
          await turn();
        }
        channel.complete(inner.timeline.slot, inner.timeline.last);
        progress.wake();
        await nested.done;
        later = (async () => {
          while (channel.released.length < 2) await turn();
          await outer.synchronize();
        })();
      },
      { timeoutMs: 3000 },
    );
    await settle(progress);
    while (channel.released.length < 2) await turn();
    channel.complete(outer.timeline.slot, outer.timeline.last);
    progress.wake();
    await operation.done;
    await later;
    expect(seen).toHaveLength(2);
    for (const error of seen) expect(error).toBeInstanceOf(StateError);
  });

  test('for retryAfter of a full device is refused if only held streams have operations', async () => {
    await inside(async ({ channel, held }) => {
      held.fill(held.zeros(1), 1);
      channel.refusal = Status.LIMIT;
      let refused: { readonly retryAfter?: Promise<void> } = {};
      try {
        held.record();
        held.empty(1);
      } catch (thrown) {
        refused = thrown as typeof refused;
      }
      channel.refusal = Status.OK;
      expect(await rejectionOf(refused.retryAfter as Promise<void>)).toBeInstanceOf(StateError);
    });
  });
});
