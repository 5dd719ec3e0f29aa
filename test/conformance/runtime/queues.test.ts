// Chapter 14: items of a queue, on a queue in memory. test/process/queues.test.ts has the servers.
import { from, of } from 'rxjs';
import { describe, expect } from 'vitest';
import { type ArgumentError, download, launch, UnavailableError, upload, WaitTimeoutError, type Lane } from 'millrace';
import { bullmqSink, bullmqSource, natsSink, natsSource, overlapQueue, type QueueFailure, type QueueRun } from 'millrace/queue';
import { defineChapter } from '../../support/chapter.js';
import { twice } from '../../support/kernels.js';
import { manualStage } from '../../support/manual-stage.js';
import { MemoryQueue } from '../../support/memory-queue.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

const doubled = (n: number, lane: Lane): Promise<number> => lane.full(4, 2 * n).item(3) as Promise<number>;

/** Waits until each item has ended, then drains. */
async function finish(queue: MemoryQueue, run: QueueRun): ReturnType<QueueRun['drain']> {
  run.done.catch(() => undefined);
  await eventually('each item has ended', () => queue.isEmpty);
  return run.drain();
}

defineChapter((target) => {
  describe('14 queues', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1301', 'an item is asked for only when a lane is free, and leaves its lane when it is acknowledged', async () => {
      const queue = new MemoryQueue([1, 2, 3, 4, 5]);
      const { stage, calls } = manualStage<number>();
      const run = overlapQueue(chapter.device, queue.source, { depth: 2 }, stage, queue.sink);
      await eventually('two items run', () => calls.length === 2);
      for (let n = 0; n < 3; n++) await new Promise((resolve) => void setTimeout(resolve, 5));
      expect(queue.calls).toEqual(['next', 'deliver i1', 'next', 'deliver i2']);
      calls[1]!.resolve(20);
      await eventually('a third one runs', () => calls.length === 3);
      expect(queue.calls.slice(4)).toEqual(['store i2', 'ack i2', 'next', 'deliver i3']);
      expect(run.report()).toMatchObject({ unacknowledged: 2, mostUnacknowledged: 2, depth: 2 });
      await eventually('the others end', () => {
        for (const { resolve, item } of calls) resolve(item);
        return queue.isEmpty;
      });
      expect(await run.drain()).toMatchObject({ items: 5, stored: 5, duplicates: 0, unacknowledged: 0, mostUnacknowledged: 2 });
      expect(queue.most).toBe(2);
      expect([queue.isSourceClosed, queue.isSinkClosed]).toEqual([true, true]);
    });

    rule('S1302', 'the result is stored before the item is acknowledged; a stage may return an Observable or nothing', async () => {
      const queue = new MemoryQueue([1, 2, 3]);
      const stage = (n: number, lane: Lane) =>
        n === 3
          ? of<number>()
          : of(new Float32Array([n, n])).pipe(
              upload(lane),
              launch(lane, twice, 2, (x) => ({ x })),
              download(lane),
            );
      const report = await finish(queue, overlapQueue(chapter.device, queue.source, { depth: 1 }, stage, queue.sink));
      expect(queue.calls.filter((call) => /^(?:store|ack)/.test(call))).toEqual(['store i1', 'ack i1', 'store i2', 'ack i2', 'ack i3']);
      expect([...queue.results.values()]).toEqual([Float32Array.of(2, 2), Float32Array.of(4, 4)]);
      expect(report).toMatchObject({ items: 3, stored: 2 });
    });

    rule('S1302', 'an item has one result, and none with memory of its lane', async () => {
      const queue = new MemoryQueue([1, 2]);
      const stage = (n: number, lane: Lane) => (n === 1 ? from([1, 2]) : Promise.resolve(lane.zeros(3)));
      const report = await finish(
        queue,
        overlapQueue<number, unknown>(chapter.device, queue.source, { onError: 'dead-letter' }, stage, queue.sink),
      );
      expect(queue.dead.map(({ id, error }) => [id, error.constructor.name, error.message.split(':')[0]])).toEqual([
        ['i1', 'ArgumentError', 'The stage emitted a second result of one item'],
        ['i2', 'ArgumentError', expect.stringContaining('The result of the stage is memory of lane')],
      ]);
      expect(report).toMatchObject({ deadLettered: 2, stored: 0 });
    });

    rule('S1303', 'an item of a worker that died is delivered again, and its result is stored once', async () => {
      const queue = new MemoryQueue([1, 2], 600);
      const delivery = await (await queue.source.open()).next();
      // The worker stored the result and died before the acknowledgement.
      await (await queue.sink.open()).store(delivery!.id, 'first', false);
      const report = await finish(queue, overlapQueue(chapter.device, queue.source, {}, doubled, queue.sink));
      expect(queue.results).toEqual(
        new Map<string, unknown>([
          ['i1', 'first'],
          ['i2', 4],
        ]),
      );
      expect(report).toMatchObject({ stored: 1, duplicates: 1, redelivered: 1, unsettled: 0 });
    });

    rule('S1303', 'a sink that forgets ids before items are delivered again is refused', async () => {
      const queue = new MemoryQueue([1], 1000, 1000);
      const run = overlapQueue(chapter.device, queue.source, doubled, queue.sink);
      expect(await rejectionOf(run.done)).toMatchObject({ name: 'ArgumentError', argument: 'sink', limit: 1000 });
      expect([queue.isSourceClosed, queue.isSinkClosed, queue.calls]).toEqual([true, true, []]);
    });

    rule('S1304', 'an item that takes longer than ackWaitMs is told to be in progress, and is delivered once', async () => {
      const queue = new MemoryQueue([1], 1500);
      const { stage, calls } = manualStage<number>();
      const run = overlapQueue(chapter.device, queue.source, { depth: 2 }, stage, queue.sink);
      await eventually('it was told often enough', () => queue.calls.filter((call) => call === 'working i1').length >= 6);
      calls[0]!.resolve(1);
      await finish(queue, run);
      expect(queue.items[0]!.deliveries).toBe(1);
    });

    rule('S1305', 'an item that fails is delivered again as onError says, and then becomes a dead letter with its error', async () => {
      const queue = new MemoryQueue([1, 2, 3]);
      const failures: QueueFailure[] = [];
      const stage = (n: number, lane: Lane, { deliveries }: { readonly deliveries: number }): Promise<number> => {
        if (n === 2 || (n === 1 && deliveries === 1)) throw new RangeError(`${n} at ${deliveries}`);
        return doubled(n, lane);
      };
      const onError = { retry: 2, delayMs: 10, backoff: 2 };
      const opts = { depth: 1, onError, onFailure: (failure: QueueFailure) => void failures.push(failure) };
      const report = await finish(queue, overlapQueue(chapter.device, queue.source, opts, stage, queue.sink));
      expect(queue.dead).toEqual([{ id: 'i2', error: expect.objectContaining({ message: '2 at 3' }) as unknown, deliveries: 3 }]);
      expect(queue.calls.filter((call) => call.startsWith('nak'))).toEqual(expect.arrayContaining(['nak i1 10', 'nak i2 10', 'nak i2 20']));
      expect(failures.map(({ item, isDead }) => `${item.id} ${item.deliveries} ${isDead}`).toSorted()).toEqual([
        'i1 1 false',
        'i2 1 false',
        'i2 2 false',
        'i2 3 true',
      ]);
      expect(report).toMatchObject({ stored: 2, givenBack: 3, deadLettered: 1, redelivered: 3 });
    });

    rule('S1305', "`when` and 'dead-letter' make dead letters at once", async () => {
      for (const onError of ['dead-letter', { retry: 5, when: (error: unknown) => !(error instanceof RangeError) }] as const) {
        const queue = new MemoryQueue([1]);
        const run = overlapQueue(chapter.device, queue.source, { onError }, () => Promise.reject(new RangeError('no')), queue.sink);
        expect(await finish(queue, run)).toMatchObject({ deadLettered: 1, givenBack: 0 });
      }
    });

    rule('S1305', 'an item that killed its workers becomes a dead letter without another attempt', async () => {
      const queue = new MemoryQueue([1]);
      queue.items[0]!.deliveries = 3;
      const { stage, calls } = manualStage<number>();
      await finish(queue, overlapQueue(chapter.device, queue.source, { onError: { retry: 2 } }, stage, queue.sink));
      expect(calls).toEqual([]);
      expect(queue.dead[0]!.error.message).toBe('The item i1 was delivered 3 times, and no worker has finished it.');
    });

    rule('S1305', 'a stage that exceeds stageTimeoutMs has failed; its late result is not stored', async () => {
      const queue = new MemoryQueue([1]);
      const { stage, calls } = manualStage<number>();
      const run = overlapQueue(chapter.device, queue.source, { depth: 1, stageTimeoutMs: 20, onError: 'dead-letter' }, stage, queue.sink);
      await finish(queue, run);
      calls[0]!.resolve(1);
      await new Promise((resolve) => void setTimeout(resolve, 5));
      expect(queue.dead[0]!.error).toBeInstanceOf(WaitTimeoutError);
      expect([queue.results.size, queue.most]).toEqual([0, 1]);
    });

    rule('S1306', 'drain takes no further item, lets those in lanes end and resolves', async () => {
      const stop = new AbortController();
      const drains: readonly ((run: QueueRun) => unknown)[] = [
        (run) => run.drain(),
        () => stop.abort(),
        () => process.emit('SIGUSR2'),
        (run) => run[Symbol.asyncDispose](),
      ];
      for (const drain of drains) {
        const queue = new MemoryQueue([1, 2, 3, 4]);
        const { stage, calls } = manualStage<number>();
        const opts = { depth: 2, signal: stop.signal.aborted ? new AbortController().signal : stop.signal, drainOn: 'SIGUSR2' } as const;
        const run = overlapQueue(chapter.device, queue.source, opts, stage, queue.sink);
        await eventually('two items run', () => calls.length === 2);
        void drain(run);
        calls[0]!.resolve(1);
        await eventually('its result is stored', () => queue.results.size === 1);
        calls[1]!.resolve(2);
        expect(await run.done).toMatchObject({ stored: 2, givenBack: 0, unacknowledged: 0 });
        expect(queue.items.map(({ state }) => state)).toEqual(['done', 'done', 'waiting', 'waiting']);
        expect(process.listenerCount('SIGUSR2')).toBe(0);
      }
      const aborted = new MemoryQueue([1]);
      await overlapQueue(chapter.device, aborted.source, { signal: stop.signal }, doubled, aborted.sink).done;
      expect(aborted.results.size).toBe(0);
    });

    rule('S1306', 'after drainTimeoutMs, items are given back, and their lanes are aborted', async () => {
      const queue = new MemoryQueue([1, 2]);
      const lanes: Lane[] = [];
      const stage = (_: number, lane: Lane): Promise<number> => {
        lanes.push(lane);
        // One that ignores its signal.
        return new Promise(() => undefined);
      };
      const run = overlapQueue(chapter.device, queue.source, { depth: 2, drainTimeoutMs: 20 }, stage, queue.sink);
      await eventually('both run', () => lanes.length === 2);
      expect(await run.drain()).toMatchObject({ givenBack: 2, unacknowledged: 0, unsettled: 0 });
      expect(lanes.map(({ signal }) => signal.aborted)).toEqual([true, true]);
      expect(queue.items.map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    });

    rule('S1307', 'options and adapters are checked at the call', () => {
      const { source, sink } = new MemoryQueue([]);
      const { device } = chapter;
      const connection = {};
      const wrong: readonly (readonly [string, () => unknown])[] = [
        ['source', () => overlapQueue(device, [1] as never, doubled, sink)],
        ['sink', () => overlapQueue(device, source, doubled, undefined as never)],
        ['stage', () => overlapQueue(device, source, {}, 1 as never, sink)],
        ['depth', () => overlapQueue(device, source, { depth: 0 }, doubled, sink)],
        ['opts', () => overlapQueue(device, source, { ordered: true } as never, doubled, sink)],
        ['onError', () => overlapQueue(device, source, { onError: 'skip' as never }, doubled, sink)],
        ['onError', () => overlapQueue(device, source, { onError: { retry: 1, then: 'skip' } as never }, doubled, sink)],
        ['onError.retry', () => overlapQueue(device, source, { onError: {} as never }, doubled, sink)],
        ['signal', () => overlapQueue(device, source, { signal: 1 as never }, doubled, sink)],
        ['drainOn', () => overlapQueue(device, source, { drainOn: 'SIGKILL' }, doubled, sink)],
        ['drainTimeoutMs', () => overlapQueue(device, source, { drainTimeoutMs: -1 }, doubled, sink)],
        ['onFailure', () => overlapQueue(device, source, { onFailure: 1 as never }, doubled, sink)],
        ['connection', () => natsSource({ connection: 'x' as never, stream: 's', consumer: 'c', deadLetter: 'd' })],
        ['deadLetter', () => natsSource({ connection, stream: 's', consumer: 'c' } as never)],
        ['opts', () => natsSource({ connection, stream: 's', consumer: 'c', deadLetter: 'd', durable: 'c' } as never)],
        ['subject', () => natsSink({ connection, subject: '' })],
        ['subject', () => natsSink({ connection, subject: 'results', once: 'subject' })],
        ['once', () => natsSink({ connection, subject: 'results', once: true as never })],
        ['name', () => bullmqSource({ connection, name: 'a:b' })],
        ['ackWaitMs', () => bullmqSource({ connection, name: 'a', ackWaitMs: Number.NaN })],
        ['connection', () => bullmqSink({ connection: 'redis://x' as never, name: 'a' })],
      ];
      for (const [argument, call] of wrong) {
        const error = thrownBy(call);
        expect([error.name, (error as ArgumentError).argument], error.message).toEqual(['ArgumentError', argument]);
      }
    });

    rule('S1308', 'a lost or closed device ends the run with its error, after the items were given back', async () => {
      await withDevice(target, {}, async (device) => {
        const queue = new MemoryQueue([1, 2]);
        const { stage, calls } = manualStage<number>();
        const run = overlapQueue(device, queue.source, { depth: 2 }, stage, queue.sink);
        const ended = rejectionOf(run.done);
        await eventually('both run', () => calls.length === 2);
        await device.close();
        for (const { reject } of calls) reject(new Error('no device'));
        expect(await ended).toMatchObject({ message: 'no device' });
        expect([queue.dead, queue.unacknowledged, queue.isSourceClosed]).toEqual([[], 0, true]);
      });
    });

    rule('S1308', 'an error that onFailure throws ends the run', async () => {
      const queue = new MemoryQueue([1, 2, 3]);
      const onFailure = (): void => {
        throw new SyntaxError('mine');
      };
      const run = overlapQueue(chapter.device, queue.source, { depth: 1, onFailure }, () => Promise.reject(new Error('stage')), queue.sink);
      expect(await rejectionOf(run.done)).toBeInstanceOf(SyntaxError);
      expect(queue.unacknowledged).toBe(0);
    });

    rule('S1309', 'while the server does not answer, results wait in their lanes and nothing is lost', async () => {
      const queue = new MemoryQueue([1, 2, 3, 4]);
      const { stage, calls } = manualStage<number>();
      const run = overlapQueue(chapter.device, queue.source, { depth: 2 }, stage, queue.sink);
      await eventually('two items run', () => calls.length === 2);
      queue.isAway = true;
      calls[0]!.resolve(10);
      await new Promise((resolve) => void setTimeout(resolve, 20));
      expect([queue.results.size, calls.length, run.report().unacknowledged]).toEqual([0, 2, 2]);
      queue.isAway = false;
      await eventually('the result is stored', () => queue.results.size === 1);
      await eventually('the others end', () => {
        for (const { resolve, item } of calls) resolve(item);
        return queue.isEmpty;
      });
      expect(await run.drain()).toMatchObject({ stored: 4, deadLettered: 0, givenBack: 0 });
    });

    rule('S1309', 'a source that cannot be opened rejects the run, and closes the sink', async () => {
      const queue = new MemoryQueue([1]);
      const failure = new UnavailableError('ERR_MILLRACE_UNAVAILABLE', 'away', []);
      const run = overlapQueue(chapter.device, { open: () => Promise.reject(failure) }, doubled, queue.sink);
      expect(await rejectionOf(run.done)).toBe(failure);
      expect(queue.isSinkClosed).toBe(true);
    });
  });
});
