// Chapter 5, second part: host functions, holds, and the messages of timeouts.
import { describe, expect } from 'vitest';
import { AbortError, ArgumentError, StateError, synchronize, WaitTimeoutError, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold as latchOf } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, isSettled, rejectionOf, thrownBy, turn } from '../../support/wait.js';

const HOLD_MS = 20_000;

/** A promise that the test settles. */
function gate(): { readonly promise: Promise<void>; open(): void; fail(error: Error): void } {
  let open = (): void => undefined;
  let fail = (_error: Error): void => undefined;
  const promise = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open: () => open(), fail: (error) => fail(error) };
}

defineChapter((target) => {
  describe('5 waiting: host functions and holds', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S511', 'a host function runs on the loop after earlier work; later work does not wait', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(1, 'i32');
      await using latch = await latchOf(target, stream);
      const fill = stream.fill(x, 1);
      let called = 0;
      const operation = stream.host(() => {
        expect(fill.isComplete).toBe(true);
        called++;
      });
      expect(operation.kind).toBe('host');
      await witness(stream);
      expect([called, operation.isComplete]).toEqual([0, false]);
      latch.open();
      await operation.done;
      expect([called, operation.isComplete]).toEqual([1, true]);
      // Only the event loop may call it, and later operations continue while the loop is busy.
      const busy = stream.host(() => called++);
      const after = stream.fill(x, 2);
      const end = performance.now() + 20_000;
      while (!after.isComplete && performance.now() < end);
      expect([after.isComplete, called, busy.isComplete]).toEqual([true, 1, false]);
      await busy.done;
      await stream.close();
    });

    rule('S511', '100 host functions among 100 copies arrive in order', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      using pinned = device.pinned(100, 'i32');
      stream.waitStream(device.stream);
      const order: number[] = [];
      const seen: number[] = [];
      const done: Promise<unknown>[] = [];
      for (let n = 0; n < 100; n++) {
        stream.fill(x, n + 1);
        stream.copy(pinned, x, { dstOffset: n });
        done.push(
          stream.host(() => {
            order.push(n);
            seen.push(pinned.data[n]!);
          }).done,
        );
      }
      await Promise.all(done);
      expect(order).toEqual(Array.from({ length: 100 }, (_, n) => n));
      expect(seen).toEqual(order.map((n) => n + 1));
      await stream.close();
    });

    rule('S511', 'host functions and promises of one stream run in stream order, also while it closes', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const order: string[] = [];
      await using latch = await latchOf(target, stream);
      void stream.fill(x, 1).done.then(() => order.push('first'));
      stream.host(() => order.push('host'));
      const last = stream.fill(x, 2).done.then(() => order.push('last'));
      const closing = stream.close();
      latch.open();
      await closing;
      await last;
      expect(order).toEqual(['first', 'host', 'last']);
    });

    rule('S512', 'done rejects with the error that the function throws, and the stream continues', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const boom = new Error('boom');
      const reported: unknown[] = [];
      const subscription = device.errors$.subscribe((error) => reported.push(error));
      const failed = stream.host(() => {
        throw boom;
      });
      const after = stream.fill(x, 3);
      expect(await rejectionOf(failed.done)).toBe(boom);
      await after.done;
      subscription.unsubscribe();
      expect(reported).toEqual([]);
      expect(device.state).toBe('open');
      expect((await x.read())[0]).toBe(3);
      await stream.close();
    });

    rule('S512', 'a value that is not a function is refused', () => {
      const { stream } = chapter.device;
      expect(thrownBy(() => stream.host('x' as never))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => stream.hold(undefined as never, { timeoutMs: 1 }))).toBeInstanceOf(ArgumentError);
      for (const timeoutMs of [undefined, -1, Number.NaN, 'x']) {
        expect(
          thrownBy(() => stream.hold(() => undefined, { timeoutMs } as never)),
          String(timeoutMs),
        ).toBeInstanceOf(ArgumentError);
      }
    });

    rule('S513', 'a function that is aborted before its call is not called', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await using latch = await latchOf(target, stream);
      const controller = new AbortController();
      let isCalled = false;
      const operation = stream.host(() => void (isCalled = true), { signal: controller.signal });
      const rejected = rejectionOf(operation.done);
      controller.abort();
      latch.open();
      expect(await rejected).toBeInstanceOf(AbortError);
      await stream.synchronize();
      expect(isCalled).toBe(false);
      await stream.close();
    });

    rule('S514', 'a hold stops its stream and no other until its promise settles', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      using x = stream.zeros(1, 'i32');
      other.waitStream(stream);
      const opened = gate();
      let isCalled = false;
      const before = stream.fill(x, 1);
      const held = stream.hold(
        () => {
          isCalled = true;
          expect(before.isComplete).toBe(true);
          return opened.promise;
        },
        { timeoutMs: HOLD_MS },
      );
      const after = stream.fill(x, 2);
      await eventually('the function is called', () => isCalled);
      await other.fill(other.zeros(1), 1).done;
      await witness(stream);
      expect([held.isComplete, after.isComplete]).toEqual([false, false]);
      opened.open();
      await Promise.all([held.done, after.done]);
      expect((await x.read())[0]).toBe(2);
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S514', 'later work of the stream sees what a hold writes', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using pinned = device.pinned(4, 'i32');
      using x = device.zeros(4, 'i32');
      stream.hold(
        async () => {
          await turn();
          pinned.data.fill(12);
        },
        { timeoutMs: HOLD_MS },
      );
      stream.copy(x, pinned);
      expect([...(await x.read())]).toEqual([12, 12, 12, 12]);
      await stream.close();
    });

    rule('S514', 'several streams are held at once, and one stream waits for the hold of another', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 6 }, () => device.createStream({ ordering: 'explicit' }));
      const gates = streams.map(() => gate());
      let standing = 0;
      const held = streams.map((stream, n) =>
        stream.hold(
          () => {
            standing++;
            return gates[n]!.promise;
          },
          { timeoutMs: HOLD_MS },
        ),
      );
      const waiting = device.createStream({ ordering: 'explicit' });
      waiting.waitStream(streams[5]!);
      const behind = waiting.record();
      await eventually('all stand', () => standing === 6);
      for (const opened of gates.slice(0, 5)) opened.open();
      await Promise.all(held.slice(0, 5).map((operation) => operation.done));
      await witness({ device });
      expect(behind.isComplete).toBe(false);
      gates[5]!.open();
      await behind.done;
      await Promise.all([waiting, ...streams].map((stream) => stream.close()));
    });

    rule('S515', 'a hold that takes too long ends, and its stream continues', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(1, 'i32');
      let given: AbortSignal | undefined;
      const held = stream.hold(
        (signal) => {
          given = signal;
          return new Promise(() => undefined);
        },
        { timeoutMs: 30, label: 'slow' },
      );
      const after = stream.fill(x, 1);
      const error = await rejectionOf(held.done);
      expect(error).toBeInstanceOf(WaitTimeoutError);
      expect(error).toMatchObject({ timeoutMs: 30, waitingFor: [{ current: { label: 'slow' }, waitingFor: { kind: 'host' } }] });
      expect((error as Error).message).toMatch(/^The hold slow of stream .* took/);
      expect(given?.reason).toBe(error);
      await after.done;
      await stream.close();
    });

    rule('S516', 'done rejects with the error that a hold throws or rejects with, and its stream continues', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(1, 'i32');
      const boom = new Error('boom');
      const fail = (): never => {
        throw boom;
      };
      for (const fn of [fail, async (): Promise<void> => turn().then(fail)]) {
        const held = stream.hold(fn, { timeoutMs: HOLD_MS });
        const after = stream.fill(x, 5);
        expect(await rejectionOf(held.done)).toBe(boom);
        await after.done;
      }
      expect((await x.read())[0]).toBe(5);
      await stream.close();
    });

    const selfWaits: readonly (readonly [string, (stream: Stream) => unknown])[] = [
      ['stream.synchronize', (stream) => stream.synchronize()],
      ['device.synchronize', (stream) => stream.device.synchronize()],
      ['the done of a later operation', (stream) => stream.fill(stream.zeros(1), 1).done],
      ['the done of a later event', (stream) => stream.record().done],
      ['a read of what is written behind it', (stream) => stream.full(2, 1).read()],
      ['an item of that', (stream) => stream.full(2, 1).item(0)],
      ['stream.ready', (stream) => stream.ready({ below: 1 })],
      ['synchronize of a later operation', (stream) => stream.fill(stream.zeros(1), 1).synchronize({ timeoutMs: 5000 })],
      ['synchronize of a later event', (stream) => stream.record().synchronize()],
      ['the done of a later host function', (stream) => stream.host(() => undefined).done],
      ['stream.close', (stream) => stream.close()],
      ['device.close', (stream) => stream.device.close()],
    ];
    for (const [name, wait] of selfWaits) {
      rule('S517', `${name} inside the hold is refused at once`, async () => {
        const stream = chapter.device.createStream();
        let error: unknown;
        const held = stream.hold(
          async () => {
            error = await rejectionOf((async () => wait(stream))());
          },
          { timeoutMs: HOLD_MS },
        );
        await held.done;
        expect(error).toBeInstanceOf(StateError);
        expect((error as Error).message).toContain(stream.label);
        await stream.synchronize();
        await stream.close();
      });
    }

    rule('S517', 'a hold may wait for another stream', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      const held = stream.hold(async () => void (await other.full(2, 1).read()), { timeoutMs: HOLD_MS });
      await held.done;
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S518', 'host refuses an async function, and an operation whose function returned a promise rejects', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      let calls = 0;
      const count = async (): Promise<void> => void calls++;
      const refused = thrownBy(() => stream.host(count as () => void));
      expect(refused).toBeInstanceOf(ArgumentError);
      expect((refused as Error).message).toContain('stream.hold');
      expect(stream.isComplete).toBe(true);
      const hidden = (() => count()) as () => void;
      const error = await rejectionOf(stream.host(hidden).done);
      expect(error).toBeInstanceOf(ArgumentError);
      expect((error as Error).message).toContain('stream.hold');
      await stream.host(() => void calls++).done;
      await stream.hold(count, { timeoutMs: HOLD_MS }).done;
      expect(calls).toBe(3);
      await stream.close();
    });

    rule('S520', 'a timeout of each kind of wait names the stream and its operation', async () => {
      const { device } = chapter;
      const stream = device.createStream({ label: 'stuck one' });
      using x = stream.zeros(1, 'i32');
      await using latch = await latchOf(target, stream);
      const fill = stream.fill(x, 1);
      const event = stream.record();
      await latch.reached.done;
      const options = { timeoutMs: 25 };
      const waits = [
        () => fill.synchronize(options),
        () => event.synchronize(options),
        () => stream.synchronize(options),
        () => device.synchronize(options),
        () => synchronize(options),
        () => x.read(options),
        () => stream.ready({ ...options, below: 1 }),
      ];
      const errors = await Promise.all(waits.map((wait) => rejectionOf((async () => wait())())));
      for (const [n, error] of errors.entries()) {
        expect(error, String(waits[n])).toBeInstanceOf(WaitTimeoutError);
        expect(error.message).toContain('stuck one');
        const seen = (error as WaitTimeoutError).waitingFor.find((one) => one.stream === 'stuck one');
        expect(seen?.pending).toBeGreaterThan(0);
        expect(seen?.current).toMatchObject({ kind: 'launch', label: 'latch' });
      }
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      await Promise.all([fill.done, stream.close()]);
    });

    rule('S520', 'a chain of waits is shown up to the running stream', async () => {
      const { device } = chapter;
      const [first, second, third] = ['alpha', 'beta', 'gamma'].map((label) => device.createStream({ label, ordering: 'explicit' })) as [
        Stream,
        Stream,
        Stream,
      ];
      await using latch = await latchOf(target, first);
      second.waitStream(first);
      third.waitEvent(second.record());
      const error = (await rejectionOf(third.synchronize({ timeoutMs: 25 }))) as WaitTimeoutError;
      expect(error.waitingFor.map((one) => one.stream)).toEqual(expect.arrayContaining(['alpha', 'beta', 'gamma']));
      expect(error.waitingFor.find((one) => one.stream === 'gamma')?.waitingFor?.stream).toBe('beta');
      expect(error.waitingFor.find((one) => one.stream === 'beta')?.waitingFor?.stream).toBe('alpha');
      latch.open();
      await Promise.all([first.close(), second.close(), third.close()]);
    });

    rule('S811', 'inspect shows the operation of each stream and what the stream waits for', async () => {
      const { device } = chapter;
      const [busy, waiting, held] = ['busy', 'waiting', 'held'].map((label) => device.createStream({ label, ordering: 'explicit' })) as [
        Stream,
        Stream,
        Stream,
      ];
      const opened = gate();
      let isCalled = false;
      const stand = (): Promise<void> => {
        isCalled = true;
        return opened.promise;
      };
      const operation = held.hold(stand, { timeoutMs: HOLD_MS, label: 'the hold' });
      await using latch = await latchOf(target, busy);
      waiting.waitEvent(busy.record());
      await latch.reached.done;
      await eventually('the hold stands', () => isCalled);
      await witness({ device });
      const seen = (label: string) => device.inspect().streams.find((one) => one.stream === label);
      expect(seen('busy')?.current).toMatchObject({ kind: 'launch', label: 'latch' });
      expect(seen('waiting')?.current?.kind).toBe('wait');
      expect(seen('waiting')?.waitingFor).toMatchObject({ kind: 'event', stream: 'busy' });
      expect(seen('waiting')?.waitingFor?.operation).toMatchObject({ stream: 'busy' });
      expect(seen('waiting')?.waitingFor?.sinceMs).toBeGreaterThanOrEqual(0);
      expect(seen('held')?.current).toMatchObject({ kind: 'host', label: 'the hold' });
      expect(seen('held')?.waitingFor).toMatchObject({ kind: 'host' });
      expect(await isSettled(operation.done)).toBe(false);
      opened.open();
      latch.open();
      await Promise.all([operation.done, busy.close(), waiting.close(), held.close()]);
      expect(seen('busy')).toBeUndefined();
    });
  });
});
