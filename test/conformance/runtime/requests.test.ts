// Chapter 9: requests on lanes.
import { EMPTY, of, throwError } from 'rxjs';
import { describe, expect } from 'vitest';
import { AbortError, ArgumentError, createLanes, i32, LimitError, StateError, WaitTimeoutError, type LanesOptions } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { increased } from '../../support/kernels.js';
import { manualStage } from '../../support/manual-stage.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, isSettled, rejectionOf, thrownBy, turn } from '../../support/wait.js';

defineChapter((target) => {
  describe('9 requests', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S918', 'each request gets the result of its own item, in whatever order they end', async () => {
      await using lanes = createLanes(chapter.device, { depth: 4, maxQueue: 100 }, async (item: number, lane) => {
        for (let n = (item * 7) % 5; n > 0; n--) await turn();
        const x = lane.full(8, item, i32);
        lane.stream.launch(increased, 8, { x, by: 10 });
        return x.read();
      });
      const results = await Promise.all(Array.from({ length: 60 }, (_, item) => lanes.run(item)));
      expect(results).toEqual(Array.from({ length: 60 }, (_, item) => new Int32Array(8).fill(item + 10)));
      expect([lanes.waiting, lanes.busy]).toEqual([0, 0]);
      expect(lanes.report()).toMatchObject({ items: 60, depth: 4 });
    });

    rule('S918', 'one request too many is refused at once, and retryAfter resolves when there is room', async () => {
      const manual = manualStage<number>();
      await using lanes = createLanes(chapter.device, { depth: 1, maxQueue: 2 }, manual.stage);
      const accepted = [lanes.run(0), lanes.run(1), lanes.run(2)];
      const refused = await rejectionOf(lanes.run(3));
      expect(refused).toBeInstanceOf(LimitError);
      expect(refused).toMatchObject({ limit: 2 });
      const room = (refused as LimitError).retryAfter;
      expect([lanes.waiting, lanes.busy, await isSettled(room)]).toEqual([2, 1, false]);
      manual.calls[0]!.resolve(0);
      await room;
      const late = lanes.run(4);
      for (const at of [1, 2, 3]) {
        await eventually('the next item is on the lane', () => manual.calls.length === at + 1);
        manual.calls[at]!.resolve(manual.calls[at]!.item);
      }
      expect(await Promise.all([...accepted, late])).toEqual([0, 1, 2, 4]);
      expect(manual.items()).toEqual([0, 1, 2, 4]);
    });

    rule('S918', 'maxQueue 0 serves a request at once or refuses it', async () => {
      const manual = manualStage<number>();
      await using lanes = createLanes(chapter.device, { depth: 2, maxQueue: 0 }, manual.stage);
      const served = [lanes.run(0), lanes.run(1)];
      expect(await rejectionOf(lanes.run(2))).toMatchObject({ limit: 0 });
      await eventually('both run', () => manual.calls.length === 2);
      for (const call of manual.calls) call.resolve(call.item);
      expect(await Promise.all(served)).toEqual([0, 1]);
    });

    rule('S918', 'a request that is aborted while it waits is dropped; one that runs has its signal aborted', async () => {
      const manual = manualStage<number>();
      await using lanes = createLanes(chapter.device, { depth: 1, maxQueue: 3 }, manual.stage);
      const [running, waiting] = [new AbortController(), new AbortController()];
      const first = lanes.run(0, { signal: running.signal });
      const dropped = lanes.run(1, { signal: waiting.signal });
      const timedOut = lanes.run(2, { timeoutMs: 1 });
      const last = lanes.run(3);
      waiting.abort('no need');
      expect(await rejectionOf(dropped)).toMatchObject({ name: 'AbortError', cause: 'no need' });
      expect(await rejectionOf(timedOut)).toBeInstanceOf(WaitTimeoutError);
      expect(lanes.waiting).toBe(1);
      await eventually('the first runs', () => manual.calls.length === 1);
      expect(manual.calls[0]!.lane.signal.aborted).toBe(false);
      running.abort();
      expect(await rejectionOf(first)).toBeInstanceOf(AbortError);
      expect(manual.calls[0]!.lane.signal.aborted).toBe(true);
      manual.calls[0]!.resolve(0);
      await eventually('the last runs', () => manual.calls.length === 2);
      manual.calls[1]!.resolve(3);
      expect([await last, manual.items()]).toEqual([3, [0, 3]]);
      expect(await rejectionOf(lanes.run(4, { signal: AbortSignal.abort() }))).toBeInstanceOf(AbortError);
      expect(manual.calls).toHaveLength(2);
    });

    rule('S918', 'a failure rejects its own request only; an Observable answers with its last value', async () => {
      await using lanes = createLanes(chapter.device, { depth: 2, maxQueue: 9 }, (item: number) =>
        item === 1 ? throwError(() => new Error('mine')) : item === 2 ? EMPTY : of(item, item * 2),
      );
      const results = await Promise.allSettled([0, 1, 2, 3].map((item) => lanes.run(item)));
      expect(results).toEqual([
        { status: 'fulfilled', value: 0 },
        { status: 'rejected', reason: new Error('mine') },
        { status: 'fulfilled', value: undefined },
        { status: 'fulfilled', value: 6 },
      ]);
    });

    rule('S918', 'close finishes accepted requests, destroy rejects them, and both close the streams', async () => {
      const { device } = chapter;
      const before = device.inspect().streams.length;
      for (const way of ['close', 'destroy'] as const) {
        const manual = manualStage<number>();
        const lanes = createLanes(device, { depth: 1, maxQueue: 2 }, manual.stage);
        const accepted = Promise.allSettled([lanes.run(0), lanes.run(1)]);
        await eventually('the first runs', () => manual.calls.length === 1);
        const closing = lanes[way]();
        expect(await rejectionOf(lanes.run(2))).toBeInstanceOf(StateError);
        await eventually('both end', () => {
          for (const call of manual.calls) call.resolve(call.item);
          return manual.calls.length === (way === 'close' ? 2 : 1);
        });
        for (const call of manual.calls) call.resolve(call.item);
        await closing;
        const states = await accepted;
        if (way === 'close') expect(states.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
        else {
          expect(manual.calls[0]!.lane.signal.aborted).toBe(true);
          expect(states[1]).toMatchObject({ status: 'rejected', reason: expect.any(AbortError) as unknown });
        }
        expect(device.inspect().streams).toHaveLength(before);
      }
    });

    rule('S918', 'a stage may close and destroy its lanes, which end after it', async () => {
      const { device } = chapter;
      for (const way of ['close', 'destroy'] as const) {
        let [closing, isClosed] = [Promise.resolve(), false];
        const lanes = createLanes(device, { depth: 1, maxQueue: 1 }, async (n: number, lane) => {
          closing = lanes[way]().then(() => void (isClosed = true));
          await lane.full(2, n, 'i32').read();
          // The lane is open as long as its stage runs.
          return lane.full(2, n, 'i32').read();
        });
        const answer = lanes.run(4);
        expect(await answer).toEqual(new Int32Array([4, 4]));
        await closing;
        expect([isClosed, lanes.busy]).toEqual([true, 0]);
      }
    });

    const badLanes: readonly [Partial<LanesOptions>, object][] = [
      [{}, { argument: 'maxQueue' }],
      [{ maxQueue: -1 }, { argument: 'maxQueue', value: -1 }],
      [{ maxQueue: 0.5 }, { argument: 'maxQueue', value: 0.5 }],
      [
        { maxQueue: 1, depth: 1025 },
        { argument: 'depth', value: 1025, limit: 1024 },
      ],
      [
        { maxQueue: 1, maxQueueMs: -1 },
        { argument: 'maxQueueMs', value: -1 },
      ],
      [
        { maxQueue: 1, onError: 'never' as 'fail' },
        { argument: 'onError', value: 'never' },
      ],
    ];
    for (const [options, facts] of badLanes) {
      rule('S918', `the call refuses ${JSON.stringify(options)}`, () => {
        const error = thrownBy(() => createLanes(chapter.device, options as LanesOptions, (item) => Promise.resolve(item)));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject(facts);
      });
    }
  });
});
