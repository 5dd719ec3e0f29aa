// Chapter 12: what a function costs.
import { describe, expect } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { ArgumentError, createBatcher, createLanes, f32, inout, kernel, launch, overlap } from 'millrace';
import { type RecordedOperation, recordTimeline, type Usage, usage } from 'millrace/timeline';
import { lastValueFrom, map, mergeMap, of, toArray } from 'rxjs';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const twice = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = 2 * x[i]!;
});

const PROGRAM = new URL('../../process/programs/used-in-thread.mjs', import.meta.url);
const WORK = ['launch', 'copy', 'fill', 'graph'];

function deviceMsOf(operations: readonly RecordedOperation[]): number {
  const ran = operations.filter(({ kind }) => WORK.includes(kind));
  return ran.reduce((sum, { startMs, endMs }) => sum + (endMs! - startMs!), 0);
}

function countsOf({ operations, launches, bytesToDevice, bytesToHost, allocatedBytes }: Usage): readonly number[] {
  return [operations, launches, bytesToDevice, bytesToHost, allocatedBytes];
}

defineChapter((target) => {
  describe('12 usages', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1230', 'a usage has the operations, bytes and device times of what a function did, as a recording has them', async () => {
      const { device } = chapter;
      await device.compile(twice);
      const stream = device.createStream({ label: 'used' });
      using recording = recordTimeline(device);
      const { value, used } = usage(async () => {
        using x = stream.from(new Float32Array(1024).fill(3));
        using y = stream.empty([2048]);
        stream.copy(y.subarray(0, 1024), x);
        stream.launch(twice, 1024, { x });
        await stream.launch(twice, 1024, { x: y.subarray(0, 1024) }).done;
        return (await x.read())[7];
      });
      expect(await value).toBe(6);
      const cost = await used;
      await recording.stop();
      expect(cost.devices.map(({ device: name }) => name)).toEqual([device.info.id]);
      expect(cost.devices[0]).toMatchObject({ launches: 2, bytesToHost: 4096, bytesToDevice: 4096, bytesOnDevice: 4096 });
      expect(cost).toMatchObject({ launches: 2, bytesBetweenDevices: 0, peakBytes: cost.allocatedBytes });
      expect(cost.allocatedBytes).toBe(4096 + 8192);
      const own = recording.operations.filter(
        ({ label, stream: on }) => on === stream.label || label !== undefined || on.startsWith('readback'),
      );
      expect(cost.deviceMs).toBeGreaterThan(0);
      expect(cost.deviceMs).toBeCloseTo(deviceMsOf(own), 6);
      expect(cost.elapsedMs).toBeGreaterThan(0);
      await stream.close();
    });

    rule('S1230', 'peakBytes is the most that was allocated at one time', async () => {
      const { device } = chapter;
      const { used } = usage(() => {
        for (let n = 0; n < 4; n++) {
          using x = device.stream.empty([256]);
          device.stream.fill(x, n);
        }
      });
      expect(await used).toMatchObject({ allocatedBytes: 4096, peakBytes: 1024 });
    });

    rule(
      'S1231',
      'usages side by side have each their own, an outer one has the inner ones too, across awaits and items of overlap',
      async () => {
        const { device } = chapter;
        await device.compile(twice);
        const inner: Usage[] = [];
        const launches = async (count: number): Promise<void> => {
          using x = device.createStream().zeros([64]);
          for (let n = 0; n < count; n++) {
            await pause(1);
            device.stream.launch(twice, 64, { x });
          }
          await x.read();
        };
        const outer = usage(async () => {
          const both = [1, 5].map((count) => usage(() => launches(count)));
          inner.push(...(await Promise.all(both.map(({ used }) => used))));
          await launches(2);
        });
        const other = usage(() => launches(3));
        expect((await outer.used).launches).toBe(8);
        expect(inner.map((each) => each.launches)).toEqual([1, 5]);
        expect((await other.used).launches).toBe(3);

        const items: Promise<Usage>[] = [];
        const whole = usage(() =>
          lastValueFrom(
            overlap(device, [1, 2, 3, 4], { depth: 2 }, (count, lane) => {
              const { value, used } = usage(() => {
                const x = lane.full([64], 1);
                for (let n = 1; n < count; n++) lane.stream.launch(twice, 64, { x });
                const last$ = of(x).pipe(
                  launch(lane, twice, 64, (y) => ({ x: y })),
                  mergeMap((y) => y.read()),
                  map((read) => read[5]),
                );
                return lastValueFrom(last$);
              });
              items.push(used);
              return value;
            }).pipe(toArray()),
          ),
        );
        expect(await whole.value).toEqual([2, 4, 8, 16]);
        const costs = await Promise.all(items);
        expect(costs.map((cost) => cost.launches)).toEqual([1, 2, 3, 4]);
        expect(costs.map((cost) => cost.bytesToHost)).toEqual([256, 256, 256, 256]);
        const total = await whole.used;
        expect(total.launches).toBe(10);
        expect(total.deviceMs).toBeCloseTo(
          costs.reduce((sum, cost) => sum + cost.deviceMs!, 0),
          6,
        );
      },
    );

    rule('S1232', 'requests of a batch share its cost, and a request of lanes has its own', async () => {
      const { device } = chapter;
      await device.compile(twice);
      await using batcher = createBatcher(
        device,
        { maxItems: 4, maxWaitMs: 1000, maxQueue: 10 },
        async (items: readonly number[], lane) => {
          const x = lane.from(new Float32Array(items));
          lane.stream.launch(twice, items.length, { x });
          return x.read();
        },
      );
      const requests = [1, 2, 3].map((item) => usage(() => batcher.run(item)));
      const unmeasured = batcher.run(4);
      expect(await Promise.all([...requests.map(({ value }) => value), unmeasured])).toEqual([2, 4, 6, 8]);
      const costs = await Promise.all(requests.map(({ used }) => used));
      for (const cost of costs) {
        expect(cost).toMatchObject({ launches: 1 / 4, bytesToHost: 4, bytesToDevice: 4 });
        expect(cost.deviceMs).toBeCloseTo(costs[0]!.deviceMs!, 9);
        expect(cost.deviceMs).toBeGreaterThan(0);
      }
      const { used } = usage(() => Promise.all([5, 6, 7, 8].map((item) => batcher.run(item))));
      expect(await used).toMatchObject({ launches: 1, bytesToHost: 16 });

      await using lanes = createLanes(device, { depth: 2, maxQueue: 10 }, async (count: number, lane) => {
        const x = lane.zeros([64]);
        for (let n = 0; n < count; n++) lane.stream.launch(twice, 64, { x });
        return x.read();
      });
      const each = [1, 2, 3, 4, 5].map((count) => usage(() => lanes.run(count)));
      expect((await Promise.all(each.map((one) => one.used))).map((cost) => cost.launches)).toEqual([1, 2, 3, 4, 5]);
    });

    rule('S1233', 'a usage is final when its operations have ended, also of a function that fails', async () => {
      const { device } = chapter;
      await device.compile(twice);
      const stream = device.createStream();
      using x = stream.zeros([64]);
      let release: () => void = () => undefined;
      const failing = usage(async () => {
        const until = new Promise<void>((resolve) => (release = resolve));
        stream.hold(() => until, { timeoutMs: 10_000 });
        stream.launch(twice, 64, { x });
        await pause(1);
        throw new RangeError('planned');
      });
      expect(await failing.value.catch((error: unknown) => error)).toBeInstanceOf(RangeError);
      let isFinal = false;
      void failing.used.then(() => (isFinal = true));
      await pause(5);
      expect(isFinal).toBe(false);
      release();
      expect(await failing.used).toMatchObject({ launches: 1, deviceMs: expect.any(Number) });

      const thrown = usage((): number => {
        stream.launch(twice, 64, { x });
        throw new RangeError('planned');
      });
      expect(await thrown.value.catch((error: unknown) => error)).toBeInstanceOf(RangeError);
      expect(await thrown.used).toMatchObject({ launches: 1 });

      // What the function left behind counts no more.
      let later: Promise<void> = Promise.resolve();
      const early = usage(() => {
        later = pause(5).then(() => void stream.launch(twice, 64, { x }));
      });
      const cost = await early.used;
      await later;
      expect(countsOf(cost)).toEqual([0, 0, 0, 0, 0]);
      expect(cost).toMatchObject({ deviceMs: 0, devices: [] });

      for (const [fn, opts] of [
        [undefined, {}],
        [() => 1, { deviceTime: true }],
        [() => 1, { deviceTimes: 1 }],
      ] as const)
        expect(thrownBy(() => usage(fn as never, opts as never))).toBeInstanceOf(ArgumentError);
      await stream.close();
    });

    rule('S1239', 'the usages of all requests of a service add up to what its device has worked', async () => {
      const { device } = chapter;
      await device.compile(twice);
      const recording = recordTimeline(device);
      const costs: Promise<Usage>[] = [];
      {
        await using lanes = createLanes(device, { depth: 2, maxQueue: 1000 }, async (count: number, lane) => {
          const x = lane.from(new Float32Array(1024));
          for (let n = 0; n < count; n++) lane.stream.launch(twice, 1024, { x });
          return x.read();
        });
        const requests = Array.from({ length: 300 }, (_, n) => usage(() => lanes.run(1 + (n % 4))));
        costs.push(...requests.map(({ used }) => used));
        await Promise.all(requests.map(({ value }) => value));
      }
      const ms = (await Promise.all(costs)).reduce((sum, cost) => sum + cost.deviceMs!, 0);
      await recording.stop();
      const own = deviceMsOf(recording.operations.filter(({ startMs }) => startMs !== undefined));
      expect(own).toBeGreaterThan(0);
      expect(Math.abs(ms - own) / own).toBeLessThan(0.02);
    });

    rule('S1234', 'each thread that shares a device measures its own operations', async () => {
      const { device } = chapter;
      const { value, used } = usage(async () => {
        using x = device.zeros([16]);
        const answers = [1, 2].map(() => {
          const worker = new Worker(PROGRAM, { workerData: device.share() });
          return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
        });
        const costs = await Promise.all(answers);
        await x.read();
        return costs;
      });
      const expected = { bytesToHost: 4096, deviceMs: expect.any(Number) };
      expect(await value).toEqual([expect.objectContaining(expected), expect.objectContaining(expected)]);
      expect(await used).toMatchObject({ bytesToHost: 64, deviceMs: expect.any(Number) });
    });
  });
});
