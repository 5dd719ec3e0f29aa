// Chapter 5: waiting, and what completion means.
import { concat, firstValueFrom, lastValueFrom, NEVER, observeOn, of } from 'rxjs';
import { describe, expect, vi } from 'vitest';
import { AbortError, batchFor, createBatcher, onStream, overlap, StateError, WaitTimeoutError, type Operation } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { runChild } from '../../support/child.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel, unbuiltKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { busyUntil, eventually, isSettled, rejectionOf } from '../../support/wait.js';

/** All but `nextTick`, on which Node's own streams rely. */
const TIMERS = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'queueMicrotask',
  'performance',
  'Date',
  'hrtime',
] as const;

defineChapter((target) => {
  describe('5 waiting and completion', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S501', 'done resolves when the operation finished on the device, not when it was accepted', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await using latch = await hold(target, stream);
      using x = device.zeros(1, 'i32');
      const fill = stream.fill(x, 1);
      const done = fill.done;
      await device.createStream().record().done;
      expect(await isSettled(done)).toBe(false);
      latch.open();
      const timing = await done;
      expect(timing.finishedAt).toBeGreaterThanOrEqual(timing.submittedAt);
      expect(fill.isComplete).toBe(true);
      expect(fill.done).toBe(done);
      await stream.close();
    });

    rule('S502', 'done resolves while slower work, queued before done was read, still runs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      await device.compile(mixKernel);
      const operations = Array.from({ length: 100 }, (_, k) => stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k }));
      await using latch = await hold(target, stream, mixKernel);
      for (const at of [99, 0, 50]) await operations[at]!.done;
      expect(latch.operation.isComplete).toBe(false);
      expect(operations.every((operation) => operation.isComplete)).toBe(true);
      latch.open();
      await stream.close();
    });

    rule('S502', 'promises settle in stream order, whichever was read first', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await using latch = await hold(target, stream);
      const operations = Array.from({ length: 5 }, (_, n) => stream.fill(x, n));
      const order: number[] = [];
      const waits = [3, 1, 4, 0, 2].map((n) => operations[n]!.done.then(() => order.push(n)));
      latch.open();
      await Promise.all(waits);
      expect(order).toEqual([0, 1, 2, 3, 4]);
      await stream.close();
    });

    rule('S503', 'isComplete becomes true while this thread is busy and never yields', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      await device.compile(mixKernel);
      await device.synchronize();
      const operation = stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 1 });
      busyUntil(() => false, 1000);
      expect(operation.isComplete).toBe(true);
      expect(stream.isComplete).toBe(true);
      await stream.close();
    });

    rule('S503', 'a launch whose kernel must be built completes without a yield as well', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await device.synchronize();
      const operation = stream.launch(unbuiltKernel(), { grid: 1, block: 1 }, { x });
      expect(busyUntil(() => operation.isComplete, 20_000)).toBe(true);
      await stream.close();
    });

    rule(
      'S503',
      'an event that another process may record completes without a yield too, after each record',
      async () => {
        const { device } = chapter;
        using x = device.zeros(1, 'u32');
        using event = device.createEvent({ interprocess: true });
        await event.ipcHandle();
        await device.compile(mixKernel);
        for (let round = 0; round < 2; round++) {
          device.stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 1 });
          device.stream.record(event);
          expect(busyUntil(() => event.isComplete, 20_000)).toBe(true);
        }
      },
      { unless: target.spec.startsWith('cpu') && 'a CPU device has no events for other processes' },
    );

    rule('S503', 'a copy into an ordinary array is complete on a later turn, with its bytes', async () => {
      const { device } = chapter;
      using x = device.full(4, 7, 'i32');
      const into = new Int32Array(4);
      await device.synchronize();
      const copy = device.stream.copy(into, x);
      const copied = device.stream.record();
      expect(busyUntil(() => copied.isComplete, 20_000)).toBe(true);
      expect([copy.isComplete, into[3]]).toEqual([false, 0]);
      await eventually('the bytes land', () => copy.isComplete);
      expect(into[3]).toBe(7);
    });

    rule('S504', 'synchronize of a stream, a device and an operation waits for everything before', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const waits = [() => stream.synchronize(), () => device.synchronize(), (last: Operation) => last.synchronize()];
      for (const wait of waits) {
        await using latch = await hold(target, stream);
        const last = stream.fill(x, 1);
        const waited = wait(last);
        expect(await isSettled(waited)).toBe(false);
        latch.open();
        await waited;
        expect(last.isComplete).toBe(true);
      }
      await stream.close();
    });

    rule('S505', 'an aborted wait rejects with AbortError and does not affect the work', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await using latch = await hold(target, stream);
      const fill = stream.fill(x, 3);
      const reason = new Error('no longer needed');
      const controller = new AbortController();
      const waits = [
        stream.synchronize({ signal: controller.signal }),
        device.synchronize({ signal: controller.signal }),
        fill.synchronize({ signal: controller.signal }),
        stream.record().synchronize({ signal: controller.signal }),
        x.read({ signal: controller.signal }),
      ].map((wait) => rejectionOf(wait));
      controller.abort(reason);
      for (const error of await Promise.all(waits)) {
        expect(error).toBeInstanceOf(AbortError);
        expect(error).toMatchObject({ name: 'AbortError', code: 'ABORT_ERR', cause: reason });
      }
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect(await x.read()).toEqual(new Int32Array([3]));
      await stream.close();
    });

    rule('S505', 'a signal that has aborted already rejects at once', async () => {
      const error = await rejectionOf(chapter.device.synchronize({ signal: AbortSignal.abort() }));
      expect(error).toBeInstanceOf(AbortError);
    });

    rule('S506', 'a wait that takes too long rejects with WaitTimeoutError and does not affect the work', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await using latch = await hold(target, stream);
      stream.fill(x, 6);
      for (const wait of [stream.synchronize({ timeoutMs: 20 }), stream.record().synchronize({ timeoutMs: 20 })]) {
        const error = await rejectionOf(wait);
        expect(error).toBeInstanceOf(WaitTimeoutError);
        expect(error).toMatchObject({ timeoutMs: 20 });
      }
      latch.open();
      await stream.synchronize({ timeoutMs: 20_000 });
      expect(await x.read()).toEqual(new Int32Array([6]));
      await stream.close();
    });

    rule('S507', 'a wait for a closed stream is a StateError and does not hang', async () => {
      const stream = chapter.device.createStream();
      await stream.close();
      expect(await rejectionOf((async () => stream.synchronize())())).toBeInstanceOf(StateError);
    });

    rule('S508', 'no call blocks the event loop while the device works', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1 << 20, 'u8');
      await using latch = await hold(target, stream);
      let turns = 0;
      const count = (): void => {
        turns++;
        ticking = setImmediate(count);
      };
      let ticking = setImmediate(count);
      stream.fill(x, 1);
      stream.copy(x, new Uint8Array(1 << 20));
      stream.waitEvent(stream.record());
      const read = x.read();
      const closing = stream.close();
      await eventually('the loop turns', () => turns >= 100);
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect((await read)[0]).toBe(0);
      await closing;
      clearImmediate(ticking);
    });

    rule(
      'S509',
      '2,000 launches can be awaited one by one',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = device.zeros(1, 'u32');
        for (let k = 0; k < 2000; k++) await stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k }).done;
        expect((await x.read())[0]).toBe(mixed(0, 0, 2000));
        await stream.close();
      },
      { timeoutMs: 120_000 },
    );

    rule('S509', 'a loop of waits that are over lets other work of the event loop run', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await stream.synchronize();
      for (const wait of [() => stream.ready(), () => stream.synchronize(), () => device.synchronize(), () => stream.record().done]) {
        let turns = 0;
        let next = setImmediate(function again() {
          turns++;
          next = setImmediate(again);
        });
        for (let n = 0; n < 2000; n++) await wait();
        clearImmediate(next);
        expect(turns).toBeGreaterThanOrEqual(20);
      }
      await stream.close();
    });

    rule('S510', 'a promise that was read keeps the process alive, and work without such a promise does not', async () => {
      const lines = `import { cudaKernel, inout, i32, openDevice } from 'millrace';
        const device = await openDevice(${JSON.stringify(target.spec)});
        const slow = cudaKernel('slow', { x: inout(i32) },
          'extern "C" __global__ void slow(int* x) { volatile int n = 0; while (n < 20000000) ++n; x[0] = 5; }');
        await device.compile(slow);
        const x = device.zeros(1, i32), host = new Int32Array(1);
        globalThis.kept = x; // Otherwise the library would warn when x is collected.
        device.stream.launch(slow, { grid: 1, block: 1 }, { x });
        const copy = device.stream.copy(host, x);`;
      const unread = await runChild(lines);
      expect([unread.code, unread.stderr]).toEqual([0, '']);
      // The device has finished before the promise is read, and nothing else runs, but the bytes have not reached the host yet.
      const read = await runChild(`${lines}
        const copied = device.stream.record();
        for (let n = 0; n < 3; n++) await new Promise((resolve) => setTimeout(resolve, 1));
        while (!copied.isComplete);
        await copy.done;
        console.log(host[0]);`);
      expect([read.code, read.stdout.trim(), read.stderr]).toEqual([0, '5', '']);
    });

    rule('S521', 'fake timers of a test stop nothing', async () => {
      const { setTimeout: later } = globalThis;
      vi.useFakeTimers({ toFake: [...TIMERS] });
      try {
        // A mock may also do nothing at all.
        for (const name of ['setTimeout', 'setImmediate', 'queueMicrotask'] as const)
          vi.spyOn(globalThis, name).mockReturnValue(undefined as never);
        await withDevice(target, {}, async (device) => {
          const { stream } = device;
          const kernel = unbuiltKernel();
          using x = device.zeros(1, 'i32');
          await stream.launch(kernel, { grid: 1, block: 1 }, { x }).done;
          expect((await x.read())[0]).toBe(1);
          let isCalled = false;
          await stream.host(() => void (isCalled = true)).done;
          expect(isCalled).toBe(true);
          let end = (): void => undefined;
          // Made here, because the wait may time out before the stream is there.
          const ended = new Promise<void>((resolve) => (end = resolve));
          const held = stream.hold(() => ended, { timeoutMs: 20_000 });
          const late = await rejectionOf(stream.synchronize({ timeoutMs: 5 }));
          expect(late).toBeInstanceOf(WaitTimeoutError);
          end();
          await held.done;
          expect(await rejectionOf(stream.hold(() => new Promise(() => undefined), { timeoutMs: 5 }).done)).toBeInstanceOf(
            WaitTimeoutError,
          );
          const graph = stream.capture(() => void stream.launch(kernel, { grid: 1, block: 1 }, { x }));
          await stream.launch(graph).done;
          await graph.close();
          await firstValueFrom(of(1).pipe(observeOn(onStream(stream), 5)));
          const onError = { retry: 2, delayMs: 3 };
          const run = overlap(device, [2], { onError }, async (n, lane) => {
            if (lane.attempt < 3) throw new Error('again');
            return lane.full(n, 7, 'i32').read();
          });
          expect(await lastValueFrom(run)).toEqual(new Int32Array([7, 7]));
          await using batcher = createBatcher(device, { maxItems: 2, maxWaitMs: 5, maxQueue: 2 }, (items: readonly number[]) =>
            Promise.resolve(items),
          );
          expect(await batcher.run(4)).toBe(4);
          expect(await firstValueFrom(concat(of(5), NEVER).pipe(batchFor({ maxItems: 2, maxWaitMs: 5 })))).toEqual([5]);
        });
      } finally {
        vi.restoreAllMocks();
        vi.useRealTimers();
      }
      expect(setTimeout).toBe(later);
    });
  });
});
