// S1310: the rules of queues on real servers. test/process/queue-fleet.test.ts kills workers.
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDevice, type Device, type Lane } from 'millrace';
import { bullmqSource, natsSink, natsSource, overlapQueue, type QueueRun } from 'millrace/queue';
import { freePort, queueCases, type TestQueue } from '../support/queue-servers.js';
import { rejectionOf } from '../support/wait.js';

let device: Device;
beforeAll(async () => {
  device = await openDevice('cpu');
});
afterAll(() => device.close());

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

/** As `eventually`, with pauses: the servers need the processor, too. */
async function until(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 25_000; !(await check()); await pause(5))
    if (performance.now() > end) throw new Error(`Not within 25 s: ${what}.`);
}
const square = async (data: string, lane: Lane): Promise<string> => String(await lane.full(8, Number(data) ** 2).item(7));
/** Ends items that have ended, and the run. */
async function finish(run: QueueRun, ended: number): ReturnType<QueueRun['drain']> {
  let failure: unknown;
  run.done.catch((error: unknown) => (failure = error));
  await until(`${ended} items have ended`, () => {
    if (failure !== undefined) throw failure;
    const { stored, duplicates, deadLettered } = run.report();
    return stored + duplicates + deadLettered >= ended;
  });
  return run.drain();
}

for (const { name, absent, open } of queueCases) {
  describe.skipIf(absent)(absent === undefined ? name : `${name}: ${absent}`, () => {
    let queue: TestQueue;
    beforeAll(async () => void (queue = await open()), 40_000);
    afterAll(() => queue?.close());
    const use = async (): Promise<TestQueue> => {
      await queue.close();
      return (queue = await open());
    };

    test('S1310 each item has one result, a failing one a dead letter with its error, and drain ends in 5 s', {
      timeout: 60_000,
    }, async () => {
      const COUNT = 200;
      await queue.publish(COUNT);
      let most = 0;
      const failing = (data: string, lane: Lane): Promise<string> => {
        if (data === '13') throw new RangeError('unlucky\nthirteen ü');
        return square(data, lane);
      };
      const opts = { depth: 3, onError: { retry: 1, delayMs: 20 } };
      const run = overlapQueue(device, queue.source(), opts, failing, queue.sink());
      const sample = async (): Promise<boolean> => {
        // An item that was given back still counts for JetStream.
        most = Math.max(most, (await queue.counts()).unacknowledged - 1);
        return run.report().stored + run.report().deadLettered >= COUNT;
      };
      await until('the consumer is there', () => run.report().unacknowledged > 0);
      await until('all have ended', sample);
      const began = performance.now();
      const report = await finish(run, COUNT);
      expect(performance.now() - began).toBeLessThan(5000);
      expect(report).toMatchObject({ stored: COUNT - 1, deadLettered: 1, redelivered: 1, givenBack: 1, unsettled: 0, unacknowledged: 0 });
      expect(report.mostUnacknowledged).toBeLessThanOrEqual(3);
      expect(most).toBeLessThanOrEqual(3);
      const results = await queue.results();
      expect(results.size).toBe(COUNT - 1);
      for (const [id, values] of results) expect([id, values]).toEqual([id, [String(Number(id.slice(1)) ** 2)]]);
      expect(await queue.dead()).toEqual([{ item: 'i13', data: '13', message: 'unlucky\nthirteen ü', deliveries: 2 }]);
      expect(await queue.counts()).toEqual({ unacknowledged: 0, waiting: 0 });
    });

    test('S1310 items that take longer than ackWaitMs are delivered once; those of a worker that is gone, again', {
      timeout: 60_000,
    }, async () => {
      await use();
      await queue.publish(3);
      const ackWaitMs = 1000;
      const gone = await queue.source(ackWaitMs).open();
      const first = await gone.next();
      expect([first!.id, first!.data, first!.deliveries]).toEqual(['i0', '0', 1]);
      // It had stored the result.
      const sink = await queue.sink().open();
      expect(await sink.store('i0', 'of the first', false)).toBe(true);
      expect(await sink.store('i0', 'of the first', true)).toBe(false);
      await Promise.all([gone.close(), sink.close()]);
      const long = async (data: string, lane: Lane): Promise<string> => {
        if (data === '1') await pause(3 * ackWaitMs);
        return square(data, lane);
      };
      const report = await finish(overlapQueue(device, queue.source(ackWaitMs), { depth: 2 }, long, queue.sink()), 3);
      expect(report).toMatchObject({ stored: 2, duplicates: 1, redelivered: 1 });
      expect(Object.fromEntries(await queue.results())).toEqual({ i0: ['of the first'], i1: ['1'], i2: ['4'] });
    });

    test('S1310 a server that restarts holds the run up, and nothing is lost', { timeout: 90_000 }, async () => {
      await use();
      const COUNT = 60;
      await queue.publish(COUNT);
      const run = overlapQueue(
        device,
        queue.source(2000),
        { depth: 2, onError: { retry: 50, delayMs: 10 } },
        async (data, lane) => {
          await pause(10);
          return square(data, lane);
        },
        queue.sink(),
      );
      run.done.catch(() => undefined);
      await until('some have ended', () => run.report().stored > 5);
      await queue.stop();
      await pause(300);
      const stored = run.report().stored;
      expect(stored).toBeLessThan(COUNT);
      await queue.start();
      // The server answers before its streams are there.
      const hasAll = async (): Promise<boolean> => (await queue.results()).size === COUNT;
      await until('all are stored', () => hasAll().catch(() => false));
      await run.drain();
      for (const values of (await queue.results()).values()) expect(values).toHaveLength(1);
      expect(await queue.dead()).toEqual([]);
    });
  });
}

describe.skipIf(queueCases[0]!.absent)('what NATS lacks', () => {
  let queue: TestQueue;
  beforeAll(async () => void (queue = await queueCases[0]!.open()), 40_000);
  afterAll(() => queue?.close());

  test('S1307 streams and consumers that cannot serve are named with the remedy', { timeout: 60_000 }, async () => {
    const sink = queue.sink();
    const { port } = queue;
    const connection = { servers: `127.0.0.1:${port}` };
    const names = { connection, stream: 'items', consumer: 'other', deadLetter: 'dead.items' };
    const own = await connect(connection);
    const manager = await jetstreamManager(own);
    await manager.consumers.add('items', { durable_name: 'few', ack_policy: 'explicit', max_deliver: 3 });
    const wrong = [
      [natsSource({ ...names, stream: 'none' }), sink, 'UnavailableError', 'The NATS server has no stream none.'],
      [
        natsSource({ ...names, deadLetter: 'nowhere' }),
        sink,
        'UnavailableError',
        'No stream of the NATS server keeps the subject nowhere.',
      ],
      [natsSource({ ...names, consumer: 'few' }), sink, 'StateError', 'The consumer few of the stream items has max_deliver 3'],
      [natsSource({ ...names, consumer: 'few' }), natsSink({ connection, subject: 'x' }), 'StateError', 'The consumer few'],
    ] as const;
    for (const [source, to, kind, message] of wrong)
      expect(await rejectionOf(overlapQueue(device, source, async () => '', to).done)).toMatchObject({
        name: kind,
        message: expect.stringContaining(message) as unknown,
      });
    await own.close();
  });
});

test('S1307 a server that does not answer at the start is an UnavailableError that names what to start', { timeout: 60_000 }, async () => {
  const port = await freePort();
  const nats = natsSource({ connection: { servers: `127.0.0.1:${port}` }, stream: 's', consumer: 'c', deadLetter: 'd' });
  const redis = bullmqSource({ connection: { host: '127.0.0.1', port }, name: 'items' });
  for (const [source, help] of [
    [nats, 'nats-server -js'],
    [redis, 'redis-server'],
  ] as const) {
    const sink = { open: () => Promise.resolve({ remembersMs: Infinity, store: async () => true, close: async () => undefined }) };
    const error = await rejectionOf(overlapQueue<unknown, string>(device, source, async () => '', sink).done);
    expect(error).toMatchObject({ name: 'UnavailableError', help: [expect.stringContaining(help)] });
  }
});
