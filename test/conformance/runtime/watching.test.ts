// Chapter 9: what subscribers get when they begin, unsubscribe or throw, and how long they keep the process alive.
import { describe, expect } from 'vitest';
import { filter, from, lastValueFrom, observeOn, take, tap, toArray } from 'rxjs';
import { i32, inout, kernel, onStream, operationsOf, type Operation } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { runChild } from '../../support/child.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, turn } from '../../support/wait.js';

const increment = kernel('increment', { x: inout(i32) }, ({ x }, { i }) => {
  x[i]! += 1;
});
const outside = kernel('outside', { x: inout(i32), by: i32 }, ({ x, by }, { i }) => {
  x[i + by]! += 1;
});

defineChapter((target) => {
  describe('9 subscriptions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S920', 'operations submitted during a subscription are emitted before its end', async () => {
      const { device } = chapter;
      for (let round = 0; round < 10; round++) {
        const stream = device.createStream();
        using x = stream.zeros(1, 'i32');
        await stream.synchronize();
        const observed = lastValueFrom(stream.operations$.pipe(toArray()));
        const phases = lastValueFrom(stream.activity$.pipe(toArray()));
        const iterated = (async () => {
          const ids: number[] = [];
          for await (const { id } of operationsOf(stream, { every: 9 })) ids.push(id);
          return ids;
        })();
        const issued = [1, 2, 3].map((value) => stream.fill(x, value));
        const ids = issued.map(({ id }) => id);
        if (round % 2 === 0) await issued[2]!.done;
        await stream.close();
        expect((await observed).map(({ id }) => id)).toEqual(ids);
        expect(await iterated).toEqual(ids);
        expect((await phases).filter(({ phase }) => phase === 'finished').map(({ operation: { id } }) => id)).toEqual(ids);
      }
    });

    rule(
      'S921',
      'a waiting reader keeps the process alive exactly while operations are pending',
      async () => {
        const lines = `import { cudaKernel, inout, i32, openDevice } from 'millrace';
        const device = await openDevice(${JSON.stringify(target.spec)});
        const slow = cudaKernel('slow', { x: inout(i32) },
          'extern "C" __global__ void slow(int* x) { volatile int n = 0; while (n < 20000000) ++n; x[0] = 5; }');
        await device.compile(slow);
        const stream = device.createStream();
        const x = stream.zeros(1, i32);
        globalThis.kept = x; // Otherwise the library would warn when x is collected.
        await stream.synchronize();
        void (async () => { for await (const { kind } of stream) console.log(kind); })();`;
        const subscribed = (members: string): string =>
          lines.replace(
            /void \(async.*$/,
            `${members}.subscribe(({ kind, phase }) => { if (phase !== 'submitted') console.log(kind ?? phase); });`,
          );
        const ways = [
          [lines, 'launch'],
          [subscribed('stream.operations$'), 'launch'],
          [subscribed('device.activity$'), 'finished'],
        ] as const;
        await Promise.all(
          ways.map(async ([way, told]) => {
            const idle = await runChild(way);
            expect([idle.code, idle.stdout, idle.stderr]).toEqual([0, '', '']);
            const busy = await runChild(`${way}\n stream.launch(slow, { grid: 1, block: 1 }, { x });`);
            expect([busy.code, busy.stdout.trim(), busy.stderr]).toEqual([0, told, '']);
          }),
        );
      },
      { timeoutMs: 120_000 },
    );

    rule('S922', 'operations pending at the start of a subscription are emitted, for every kind of subscription', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      const latch = await hold(target, stream, increment);
      await latch.reached.done;
      const issued = [
        latch.operation,
        stream.fill(x, 1),
        stream.launch(increment, { threads: 1, label: 'later' }, { x }),
        stream.host(() => undefined, { label: 'call' }),
        stream.copy(x, new Int32Array(4), { label: 'up' }),
        stream.waitStream(stream.device.defaultStream),
      ];
      const ids = issued.map(({ id }) => id);
      const isOurs = (operation: Operation): boolean => operation.stream === stream.label;
      const ends: Promise<readonly Operation[]>[] = [
        lastValueFrom(stream.operations$.pipe(toArray())),
        lastValueFrom(device.operations$.pipe(filter(isOurs), take(ids.length), toArray())),
      ];
      for (const activity$ of [stream.activity$, device.activity$]) {
        const ended$ = activity$.pipe(filter(({ phase, operation }) => phase !== 'submitted' && isOurs(operation)));
        ends.push(lastValueFrom(ended$.pipe(take(ids.length), toArray())).then((all) => all.map(({ operation }) => operation)));
      }
      for (const operations of [stream, operationsOf(stream, { every: 99 })]) ends.push(collect(operations));
      latch.open();
      await stream.close();
      await latch[Symbol.asyncDispose]();
      for (const seen of await Promise.all(ends)) {
        expect(seen.map(({ id }) => id)).toEqual(ids);
        expect(seen.map(({ kind, label, bytes, status }) => ({ kind, label, bytes, status }))).toEqual(
          issued.map(({ kind, label, bytes }) => ({ kind, label, bytes, status: 'finished' })),
        );
      }
    });

    rule('S923', 'an emitted operation has its status and error', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const mine = new RangeError('mine');
      const told: { readonly operation: Operation; readonly status: string; readonly error: Error | undefined }[] = [];
      stream.operations$.subscribe((operation) => {
        const { status, error } = operation;
        told.push({ operation, status, error });
      });
      using x = stream.zeros(4, 'i32');
      const bad = stream.host(() => {
        throw mine;
      });
      const launch = stream.launch(outside, 1, { x, by: 4 });
      const copy = stream.copy(new Int32Array(4), x);
      expect(bad.status).toBe('pending');
      expect(bad.error).toBeUndefined();
      const reasons = await Promise.all([bad, launch, copy].map(async ({ done }) => rejectionOf(done)));
      await stream.close();
      expect(reasons[0]).toBe(mine);
      const ends = [bad, launch, copy].map((operation) => told.find((each) => each.operation.id === operation.id));
      for (const [at, end] of ends.entries()) {
        expect(end?.status).toBe('failed');
        expect(end!.error).toBe(reasons[at]);
      }
      expect([bad, launch, copy].map(({ error }) => error)).toEqual(reasons);
      const others = told.filter(({ operation }) => ![bad, launch, copy].some(({ id }) => id === operation.id));
      expect(others.length).toBeGreaterThan(0);
      for (const { status, error } of others) expect([status, error]).toEqual(['finished', undefined]);
    });

    rule('S924', 'a listener that unsubscribes, submits or destroys during an emission hides no value from the others', async () => {
      const { code, stdout, stderr } = await runChild(`import { DeviceLostError, openDevice } from 'millrace';
        const device = await openDevice(${JSON.stringify(target.spec)});
        const stream = device.createStream();
        const x = stream.zeros(1, 'i32');
        await stream.synchronize();
        const seen = [[], [], []];
        const leaving = stream.operations$.subscribe(({ id }) => {
          seen[0].push(id);
          leaving.unsubscribe();
          stream.fill(x, 3);
        });
        stream.operations$.subscribe({
          next: ({ id }) => { if (seen[1].push(id) === 3) void device.destroy(); },
          error: () => undefined,
        });
        stream.operations$.subscribe({
          next: () => { throw new Error('mine'); },
          error: () => undefined,
        });
        const thrown = [];
        process.on('uncaughtException', ({ message }) => thrown.push(message));
        const end = new Promise((resolve) => {
          stream.operations$.subscribe({ next: ({ id }) => seen[2].push(id), error: resolve });
        });
        const issued = [stream.fill(x, 1), stream.fill(x, 2)].map(({ id }) => id);
        const isLost = (await end) instanceof DeviceLostError;
        process.on('exit', () => console.log(JSON.stringify({ issued, seen, isLost, thrown })));`);
      expect([code, stderr]).toEqual([0, '']);
      const { issued, seen, isLost, thrown } = JSON.parse(stdout) as {
        readonly issued: number[];
        readonly seen: number[][];
        readonly isLost: boolean;
        readonly thrown: string[];
      };
      expect(seen[0]).toEqual(issued.slice(0, 1));
      expect(seen[1]).toHaveLength(3);
      expect(seen[1]!.slice(0, 2)).toEqual(issued);
      expect(seen[2]).toEqual(seen[1]);
      expect(isLost).toBe(true);
      expect(new Set(thrown)).toEqual(new Set(['mine']));
    });

    rule('S925', 'onStream runs actions after the work of the stream, in order', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const out = device.pinned(1, 'i32');
      using x = device.zeros(1, 'i32');
      const latch = await hold(target, stream, increment);
      const seen: string[] = [];
      const scheduler = onStream(stream);
      scheduler.schedule(() => void seen.push('dropped')).unsubscribe();
      const values = lastValueFrom(
        from([5, 6]).pipe(
          tap((value) => {
            stream.fill(x, value);
            stream.copy(out, x);
          }),
          observeOn(scheduler),
          tap((value) => void seen.push(`${value}`)),
          toArray(),
        ),
      );
      const late = new Promise<void>((resolve) => {
        scheduler.schedule(() => {
          seen.push(`late ${out.data[0]}`);
          resolve();
        }, 1);
      });
      await turn();
      expect(seen).toEqual([]);
      await latch[Symbol.asyncDispose]();
      expect(await values).toEqual([5, 6]);
      await late;
      expect(seen).toEqual(['5', '6', 'late 6']);
      await stream.close();
      await new Promise<void>((resolve) => void scheduler.schedule(() => resolve()));
      out[Symbol.dispose]();
    });
  });
});

async function collect(operations: AsyncIterable<Operation>): Promise<readonly Operation[]> {
  const all: Operation[] = [];
  for await (const operation of operations) all.push(operation);
  return all;
}
