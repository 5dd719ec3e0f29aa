// Chapter 12: tracing channels.
import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { describe, expect } from 'vitest';
import {
  type CompileMessage,
  createLanes,
  f32,
  inout,
  type ItemMessage,
  kernel,
  launch,
  openDevice,
  type Operation,
  type OperationMessage,
  overlap,
  type StageMessage,
  UpstreamError,
} from 'millrace';
import { lastValueFrom, mergeMap, of, toArray } from 'rxjs';
import { defineChapter } from '../../support/chapter.js';
import { twice } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

interface Told<M> {
  readonly event: (typeof EVENTS)[number];
  readonly message: M;
  /** At that time. */
  readonly hasResult: boolean;
  readonly store: unknown;
}

const store: AsyncLocalStorage<string> = new AsyncLocalStorage();

/** What is published while `fn` runs. */
async function listening<M extends object>(name: string, fn: (told: readonly Told<M>[]) => Promise<void>): Promise<void> {
  const told: Told<M>[] = [];
  const channel = tracingChannel<unknown, M>(name);
  const hear = (event: Told<M>['event']) => (message: unknown) =>
    void told.push({ event, message: message as M, hasResult: 'result' in (message as M), store: store.getStore() });
  const listeners = Object.fromEntries(EVENTS.map((event) => [event, hear(event)])) as never;
  channel.subscribe(listeners);
  try {
    await fn(told);
  } finally {
    channel.unsubscribe(listeners);
  }
}

defineChapter((target) => {
  describe('12 tracing channels', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1235', 'a launch and a copy tell of their call and of their end, with one message each', async () => {
      const { device } = chapter;
      await device.compile(twice);
      await using stream = device.createStream({ label: 'traced', timing: true });
      using x = stream.zeros([64]);
      let launched: Operation | undefined;
      await listening<OperationMessage>('millrace:launch', async (told) => {
        launched = store.run('request', () => stream.launch(twice, { threads: 64, label: 'labelled' }, { x }));
        expect(told.map(({ event }) => event)).toEqual(['start', 'end']);
        await launched.done;
        await eventually('the end is told', () => told.length === 4);
        expect(told.map(({ event, hasResult, store: at }) => [event, hasResult, at])).toEqual([
          ['start', false, 'request'],
          ['end', true, 'request'],
          ['asyncStart', true, 'request'],
          ['asyncEnd', true, 'request'],
        ]);
        expect(new Set(told.map(({ message }) => message)).size).toBe(1);
        const { message } = told[0]!;
        expect(message).toMatchObject({ device: device.info.id, stream: 'traced', name: 'labelled', deviceMs: expect.any(Number) });
        expect(message.result).toBe(launched);
        expect(message.error).toBeUndefined();

        const graph = stream.capture((s) => s.launch(twice, 64, { x }), { label: 'doubling' });
        expect(told).toHaveLength(4);
        await stream.launch(graph).done;
        await eventually('the end is told', () => told.length === 8);
        expect(told[7]!.message.name).toBe('doubling');
        await graph.close();
      });
      await listening<OperationMessage>('millrace:copy', async (told) => {
        await stream.copy(new Float32Array(64), x).done;
        await x.read();
        await stream.copyBatch([[x, new Float32Array(64)]]).done;
        await eventually('three ends are told', () => told.filter(({ event }) => event === 'asyncEnd').length === 3);
        expect(told.filter(({ event }) => event === 'asyncEnd').map(({ message }) => message.result!.bytes)).toEqual([256, 256, 256]);
      });
      // Nobody listens any more.
      await stream.launch(twice, 64, { x }).done;
    });

    rule('S1235', 'a call that throws and an operation that fails tell their errors, and errors$ still has the failure', async () => {
      const { device } = chapter;
      const failures: Error[] = [];
      const subscription = device.errors$.subscribe((error) => failures.push(error));
      await using stream = device.createStream();
      using x = stream.zeros([4]);
      await device.compile(twice);
      await listening<OperationMessage>('millrace:launch', async (told) => {
        const thrown = thrownBy(() => stream.launch(twice, 4, {} as never));
        expect(told.map(({ event }) => event)).toEqual(['start', 'error', 'end']);
        expect(told[1]!.message.error).toBe(thrown);
        const failing = stream.external({ writes: { x } }, () => {
          throw new RangeError('planned');
        });
        stream.launch(twice, 4, { x });
        expect((await rejectionOf(failing.done)).message).toBe('planned');
        await eventually('the end is told', () => told.length === 8);
        expect(told.slice(3).map(({ event }) => event)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
        expect(told[5]!.message.error).toBeInstanceOf(UpstreamError);
        await eventually('the failure reaches errors$', () => failures.some((error) => error instanceof UpstreamError));
      });
      subscription.unsubscribe();
    });

    rule('S1236', 'builds of kernels and openings of devices tell what became of them', async () => {
      const { device } = chapter;
      const fresh = kernel('traced', { x: inout(f32) }, ({ x }, { i }) => {
        x[i] = x[i]! + 0.1875;
      });
      await listening<CompileMessage>('millrace:compile', async (told) => {
        using x = device.zeros([4]);
        await device.stream.launch(fresh, 4, { x }).done;
        await eventually('the end is told', () => told.length === 4);
        expect(told.map(({ event }) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
        const result = { compiler: expect.any(String), fromCache: expect.any(Boolean), ms: expect.any(Number) };
        expect(told[3]!.message).toMatchObject({ device: device.info.id, kernel: 'traced', result });
      });
      await listening('millrace:open', async (told) => {
        const opened = await openDevice(device.info.id);
        expect(told.map(({ event }) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
        expect(told[3]!.message).toMatchObject({ device: device.info.id, result: opened });
        await opened.close();
        const refused = await rejectionOf(openDevice('cuda:99' as never));
        expect(told.slice(4).map(({ event }) => event)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
        expect(told[6]!.message).toMatchObject({ device: 'cuda:99', error: refused });
      });
    });

    rule('S1236', 'items and stages tell of themselves, and operations are submitted in the stores of their item', async () => {
      const { device } = chapter;
      await device.compile(twice);
      const items: AsyncLocalStorage<ItemMessage> = new AsyncLocalStorage();
      const { start } = tracingChannel<ItemMessage, ItemMessage>('millrace:item');
      start.bindStore(items, (message) => message);
      try {
        await listening<ItemMessage>('millrace:item', (ofItems) =>
          listening<StageMessage>('millrace:stage', (ofStages) =>
            listening<OperationMessage>('millrace:launch', async () => {
              const seen: (ItemMessage | undefined)[] = [];
              const { start: launches } = tracingChannel('millrace:launch');
              const hear = (): void => void seen.push(items.getStore());
              launches.subscribe(hear);
              const results$ = overlap(device, [1, 2, 3], { depth: 2 }, (value, lane) =>
                of(lane.full([16], value)).pipe(
                  launch(lane, twice, 16, (x) => ({ x })),
                  mergeMap((x) => lane.time('read', x.read())),
                ),
              );
              await lastValueFrom(results$.pipe(toArray()));
              launches.unsubscribe(hear);
              const ended = ofItems.filter(({ event }) => event === 'asyncEnd').map(({ message }) => message);
              expect(ended).toHaveLength(3);
              expect(new Set(seen)).toEqual(new Set(ended));
              expect(new Set(ended.map(({ item }) => item))).toEqual(new Set([0, 1, 2]));
              for (const message of ended) expect(message).toMatchObject({ device: device.info.id, lane: expect.any(Number), attempt: 1 });
              expect(ofStages.filter(({ event, message }) => event === 'asyncEnd' && message.name === 'read')).toHaveLength(3);
            }),
          ),
        );
      } finally {
        start.unbindStore(items);
      }

      await listening<ItemMessage>('millrace:item', async (told) => {
        await using lanes = createLanes(device, { depth: 1, maxQueue: 1, onError: { retry: 1 } }, async () => {
          throw new RangeError('planned');
        });
        const failed = await rejectionOf(lanes.run(1));
        const errors = told.filter(({ event }) => event === 'error').map(({ message }) => [message.item, message.attempt, message.error]);
        expect(errors).toEqual([
          [0, 1, expect.any(RangeError)],
          [0, 2, failed],
        ]);
      });
    });
  });
});
