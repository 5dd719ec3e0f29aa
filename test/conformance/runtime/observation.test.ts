// Chapter 9: observing streams: Observables, async iteration, and the values that a slow reader loses.
import { describe, expect } from 'vitest';
import { filter, firstValueFrom, from, take, toArray } from 'rxjs';
import { cudaKernel, i32, inout, operationsOf, overlap, type Activity, type Operation } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, turn } from '../../support/wait.js';

const increment = cudaKernel('increment', { x: inout(i32) }, 'extern "C" __global__ void increment(int* x) { x[0] += 1; }');
defineChapter((target) => {
  describe('9 observation', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S901', 'operations$ emits each finished operation once, in stream order', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      const seen: Operation[] = [];
      const subscription = stream.operations$
        .pipe(filter(({ kind }) => kind === 'fill' || kind === 'launch' || kind === 'copy'))
        .subscribe((operation) => void seen.push(operation));
      const issued = [
        stream.fill(x, 1),
        stream.launch(increment, { grid: 1, block: 1 }, { x }),
        stream.copy(x, new Int32Array(4), { label: 'last' }),
      ];
      await stream.synchronize();
      await eventually('all operations are seen', () => seen.length >= 3);
      expect(seen.map(({ id }) => id)).toEqual(issued.map(({ id }) => id));
      expect(seen.map(({ kind }) => kind)).toEqual(['fill', 'launch', 'copy']);
      expect(seen[2]).toMatchObject({ label: 'last', bytes: 16, isComplete: true, device: device.info.id });
      subscription.unsubscribe();
      await stream.close();
    });

    rule('S902', 'operations$ is hot: a late subscriber misses earlier operations', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await stream.fill(x, 1).done;
      const first = firstValueFrom(stream.operations$);
      const late = stream.fill(x, 2);
      expect((await first).id).toBe(late.id);
      await stream.close();
    });

    rule('S902', 'unsubscribing stops the notifications, not the work', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await using latch = await hold(target, stream);
      let seen = 0;
      const subscription = stream.operations$.subscribe(() => void seen++);
      const fill = stream.fill(x, 9);
      subscription.unsubscribe();
      latch.open();
      await fill.done;
      await turn();
      expect(seen).toBe(0);
      expect((await x.read())[0]).toBe(9);
      await stream.close();
    });

    rule('S903', 'RxJS from(stream) emits its operations', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const seen = firstValueFrom(
        from(stream).pipe(
          filter(({ kind }) => kind === 'launch'),
          take(2),
          toArray(),
        ),
      );
      stream.launch(increment, { grid: 1, block: 1 }, { x });
      stream.fill(x, 4);
      stream.launch(increment, { grid: 1, block: 1 }, { x });
      expect((await seen).map(({ kind }) => kind)).toEqual(['launch', 'launch']);
      await stream.close();
    });

    rule('S904', 'activity$ shows submission and end of an operation', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const seen: Activity[] = [];
      const subscription = stream.activity$.subscribe((activity) => void seen.push(activity));
      const fill = stream.fill(x, 1);
      await fill.done;
      const phases = (): string[] => seen.filter(({ operation }) => operation.id === fill.id).map(({ phase }) => phase);
      await eventually('both phases are seen', () => phases().length >= 2);
      expect(phases()).toEqual(['submitted', 'finished']);
      const [submitted, finished] = seen.filter(({ operation }) => operation.id === fill.id);
      expect(finished!.atMs).toBeGreaterThanOrEqual(submitted!.atMs);
      subscription.unsubscribe();
      await stream.close();
    });

    rule('S905', 'for await yields the operations of a stream and ends when the loop is left', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      const ids: number[] = [];
      const reading = (async () => {
        for await (const operation of stream) {
          if (operation.kind !== 'fill') continue;
          ids.push(operation.id);
          if (ids.length === 3) break;
        }
      })();
      const issued = [1, 2, 3, 4].map((n) => stream.fill(x, n).id);
      await reading;
      expect(ids).toEqual(issued.slice(0, 3));
      await stream.close();
    });

    rule('S906', 'an iterator buffers at most its limit and drops the oldest operations', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await device.synchronize();
      const iterator = operationsOf(stream, { every: 4, overflow: 'drop-oldest' })[Symbol.asyncIterator]();
      const first = iterator.next();
      const issued = Array.from({ length: 20 }, (_, n) => stream.fill(x, n).id);
      await stream.synchronize();
      await turn();
      expect((await first).value?.id).toBe(issued[0]);
      const rest: number[] = [];
      for (let n = 0; n < 4; n++) rest.push((await iterator.next()).value!.id);
      expect(rest).toEqual(issued.slice(-4));
      await iterator.return?.();
      await stream.close();
    });

    rule('S906', "an iterator with overflow 'error' fails", async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'i32');
      await device.synchronize();
      const iterator = operationsOf(stream, { every: 2, overflow: 'error' })[Symbol.asyncIterator]();
      const first = iterator.next();
      for (let n = 0; n < 20; n++) stream.fill(x, n);
      await stream.synchronize();
      await first;
      const error = await rejectionOf(
        (async () => {
          for (let n = 0; n < 20; n++) await iterator.next();
        })(),
      );
      expect(error.message).toMatch(/2/);
      await stream.close();
    });

    rule('S907', 'overlap yields results in order and takes an item only when a lane is free', async () => {
      const { device } = chapter;
      let taken = 0;
      let finished = 0;
      let widest = 0;
      function* items(): Generator<number> {
        for (let n = 0; n < 20; n++) {
          taken++;
          widest = Math.max(widest, taken - finished);
          yield n;
        }
      }
      const results: number[] = [];
      for await (const value of overlap(device, items(), { depth: 3 }, async (n, lane) => {
        const x = lane.empty(1, 'i32');
        lane.stream.fill(x, n);
        lane.stream.launch(increment, { grid: 1, block: 1 }, { x });
        const [result] = await x.read();
        finished++;
        return result!;
      })) {
        results.push(value);
      }
      expect(results).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
      expect(widest).toBeLessThanOrEqual(3);
    });

    rule('S908', 'leaving an overlap takes no further items', async () => {
      const { device } = chapter;
      let taken = 0;
      function* items(): Generator<number> {
        for (;;) yield taken++;
      }
      for await (const value of overlap(device, items(), { depth: 2 }, async (n, lane) => {
        await lane.stream.record().done;
        return n;
      })) {
        if (value === 5) break;
      }
      const atBreak = taken;
      await device.synchronize();
      await turn();
      expect(taken).toBe(atBreak);
      expect(taken).toBeLessThanOrEqual(8);
    });
  });
});
