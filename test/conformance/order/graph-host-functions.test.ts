// Chapter 10, eleventh part: host functions of graphs, and when launches have finished.
import { describe, expect } from 'vitest';
import { ArgumentError, BoundsError, i32, WaitTimeoutError, type MillraceError, type Operation } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, shiftKernel } from '../../support/graphs.js';
import { hold as latchOf } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { busyUntil, eventually, rejectionOf, turn } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: host functions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1024', 'done and isComplete of a launch wait for its host functions, and later operations do not', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const calls: string[] = [];
      const open: boolean[] = [];
      const launches: Operation[] = [];
      const graph = stream.capture((s) => {
        s.host(() => {
          calls.push('first');
          open.push(launches.at(-1)!.isComplete);
        });
        s.launch(mixKernel, ONE, { x, k: 1 });
        s.host(() => {
          calls.push('second');
          open.push(launches.at(-1)!.isComplete);
        });
      });
      for (let n = 1; n <= 3; n++) {
        const launched = stream.launch(graph);
        launches.push(launched);
        const after = stream.fill(x, 0);
        expect(busyUntil(() => after.isComplete, 20_000)).toBe(true);
        expect([calls.length, launched.isComplete, launched.status]).toEqual([2 * n - 2, false, 'pending']);
        const { submittedAt, finishedAt } = await launched.done;
        expect(calls.length).toBe(2 * n);
        expect([launched.isComplete, launched.status]).toEqual([true, 'finished']);
        expect(finishedAt).toBeGreaterThanOrEqual(submittedAt);
      }
      expect(open).toEqual([false, false, false, false, false, false]);
      await graph.close();
      await stream.close();
    });

    rule(
      'S1024',
      'done of a launch rejects with what a host function throws, the other functions are called, and arrays stay',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = device.zeros(1, 'u32');
        const [boom, second] = [new Error('boom'), new Error('second')];
        const calls: string[] = [];
        const graph = stream.capture((s) => {
          s.launch(mixKernel, ONE, { x, k: 1 });
          s.host(() => calls.push('a'));
          s.host(() => {
            calls.push('b');
            throw boom;
          });
          s.host(() => {
            calls.push('c');
            throw second;
          });
        });
        await device.synchronize();
        const seen: MillraceError[] = [];
        const subscription = device.errors$.subscribe((error) => void seen.push(error));
        const launched = stream.launch(graph);
        const done = launched.done;
        const after = stream.launch(mixKernel, ONE, { x, k: 1 });
        expect(await rejectionOf(done)).toBe(boom);
        expect(calls).toEqual(['a', 'b', 'c']);
        expect([launched.status, launched.error]).toEqual(['failed', boom]);
        await after.done;
        expect((await x.read())[0]).toBe(mixed(mixed(0, 1, 1), 1, 1));
        // `done` reports one error, so the other reaches errors$.
        await eventually('the second error is seen', () => seen.length > 0);
        await turn();
        expect(seen.map(({ cause }) => cause)).toEqual([second]);
        // Nobody awaits this one.
        stream.launch(graph);
        await stream.synchronize();
        await eventually('both errors are seen', () => seen.length >= 3);
        expect(seen.slice(1).map(({ cause }) => cause)).toEqual([boom, second]);
        subscription.unsubscribe();
        await graph.close();
        await stream.close();
      },
    );

    rule('S1024', 'after a node failed, done rejects with its error when the functions have been called', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      const calls: number[] = [];
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        s.launch(shiftKernel, 4, { x, y, by });
        s.host(() => calls.push(1));
        s.host(() => {
          calls.push(2);
          throw new Error('of the function');
        });
      });
      await device.synchronize();
      const seen: MillraceError[] = [];
      const subscription = device.errors$.subscribe((error) => void seen.push(error));
      for (let n = 1; n <= 3; n++) {
        const failed = stream.launch(graph, { by: 4 });
        const error = await rejectionOf(failed.done);
        expect(error).toBeInstanceOf(BoundsError);
        expect(calls.length).toBe(2 * n);
        expect([failed.status, failed.error]).toEqual(['failed', error]);
        expect(await rejectionOf(failed.synchronize({ timeoutMs: 20_000 }))).toBe(error);
        await eventually('the error of the function is seen', () => seen.length >= n);
      }
      await turn();
      expect(seen.map(({ cause }) => (cause as Error).message)).toEqual(['of the function', 'of the function', 'of the function']);
      subscription.unsubscribe();
      await graph.close();
      await stream.close();
    });

    rule('S1024', 'a timeout counts once for the nodes and the functions, also if a node failed', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      const calls: number[] = [];
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        s.launch(shiftKernel, 4, { x, y, by });
        // It ends after the timeout.
        s.host(() => {
          calls.push(1);
          busyUntil(() => false, 500);
        });
        s.host(() => calls.push(2));
      });
      await device.compile(shiftKernel);
      for (const by of [0, 4]) {
        calls.length = 0;
        await using latch = await latchOf(target, stream);
        const launched = stream.launch(graph, { by });
        const given = rejectionOf(launched.synchronize({ timeoutMs: 600 }));
        // Less than the timeout is left for the functions.
        setTimeout(() => latch.open(), 300);
        expect(await given).toBeInstanceOf(WaitTimeoutError);
        const [end] = await Promise.allSettled([launched.done]);
        expect(end.status).toBe(by === 0 ? 'fulfilled' : 'rejected');
        if (end.status === 'rejected') expect(end.reason).toBeInstanceOf(BoundsError);
        expect(calls).toEqual([1, 2]);
      }
      await graph.close();
      await stream.close();
    });

    rule('S1024', 'a function that returns a promise fails the launch, and observers see the launch after its functions', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      let calls = 0;
      const graph = stream.capture(
        (s) => {
          s.launch(mixKernel, ONE, { x, k: 1 });
          s.host((() => {
            calls++;
            return Promise.resolve();
          }) as () => void);
        },
        { label: 'promising' },
      );
      await device.synchronize();
      const seen: [kind: string, status: string, calls: number][] = [];
      const messages: string[] = [];
      const activity = stream.activity$.subscribe(({ phase, operation, error }) => {
        if (phase !== 'submitted') seen.push([operation.kind, operation.status, calls]);
        if (error !== undefined && operation.kind === 'graph') messages.push(error.message);
      });
      const launched = stream.launch(graph);
      expect(await rejectionOf(launched.done)).toBeInstanceOf(ArgumentError);
      await eventually('both are seen', () => seen.length >= 2);
      expect(seen).toEqual([
        ['graph', 'failed', 1],
        ['host', 'failed', 1],
      ]);
      expect(messages).toHaveLength(1);
      activity.unsubscribe();
      await graph.close();
      await stream.close();
    });

    rule('S1024', 'an embedded graph brings its functions along', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const calls: string[] = [];
      const inner = stream.capture((s) => {
        s.launch(mixKernel, ONE, { x, k: 1 });
        s.host(() => calls.push('inner'));
      });
      const outer = stream.capture((s) => {
        s.launch(inner);
        s.host(() => calls.push('outer'));
      });
      await stream.launch(outer).done;
      expect(calls).toEqual(['inner', 'outer']);
      await Promise.all([inner.close(), outer.close()]);
      await stream.close();
    });
  });
});
