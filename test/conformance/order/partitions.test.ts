// Chapter 8: partitions, the shares of a device for streams of their own.
import { afterEach, describe, expect } from 'vitest';
import { ArgumentError, cudaKernel, type Device, i32, inout, kernel, LaunchError, output, type Partition, StateError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { startSharer, untilGivenBack } from '../../support/sharer.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

/** Its loop has no bound that the library knows, so a thread of the partition runs it. */
const grow = kernel('grow', { x: inout(i32), steps: i32 }, ({ x, steps }, { i }) => {
  for (let n = 0; n < steps; n++) x[i] = x[i]! + 1;
});
const whole = cudaKernel('whole', { x: inout(i32) }, 'extern "C" __global__ void whole(int* x) { if (threadIdx.x == 0) atomicAdd(x, 1); }');
const whereItRuns = cudaKernel(
  'whereItRuns',
  { where: output(i32) },
  `extern "C" __global__ void whereItRuns(int* where) {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  const long long start = clock64();
  while (clock64() - start < 100000) {}
  where[blockIdx.x] = (int)id;
}`,
);

defineChapter((target) => {
  const rule = rulesOf(target);
  const threads = target.spec.startsWith('cpu') ? { threads: 4 } : {};

  describe('8 lifecycle: partitions', () => {
    const chapter = chapterDevice(target, threads);
    let open: readonly Partition[] = [];
    const divide = (async (shares) => (open = await chapter.device.partition(shares))) as Device['partition'];
    // A test that failed leaves the device whole for the next one.
    afterEach(() => Promise.all(open.map((partition) => partition.close())));

    rule('S823', 'partitions have what was asked for in whole units, and together at most the device', async () => {
      const { device } = chapter;
      const { multiprocessors } = device.info;
      const [fast, batch] = await divide([1, 'rest']);
      expect(fast.multiprocessors).toBeGreaterThanOrEqual(1);
      expect(batch.multiprocessors).toBeGreaterThanOrEqual(1);
      expect(fast.multiprocessors + batch.multiprocessors).toBe(multiprocessors);
      if (device.info.backend === 'cpu') expect(fast.multiprocessors).toBe(1);
      expect(device.createStream({ partition: fast }).partition).toBe(fast);
      expect(fast.device).toBe(device);
      expect(await rejectionOf(device.partition([1]))).toBeInstanceOf(StateError);
      await Promise.all([fast.close(), batch.close()]);
      const [all] = await divide([multiprocessors]);
      expect(all.multiprocessors).toBe(multiprocessors);
      await all.close();
    });

    rule('S823', 'shares that are not there are an ArgumentError with the limit', async () => {
      const { device } = chapter;
      const { multiprocessors } = device.info;
      for (const shares of [[0], [-1], [1.5], ['all'], [multiprocessors + 1]]) {
        const error = await rejectionOf(device.partition(shares as never));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error).toMatchObject({ argument: 'shares[0]', value: shares[0], limit: multiprocessors });
      }
      for (const shares of [
        [],
        'rest',
        ['rest', 'rest'],
        [multiprocessors, 1],
        [multiprocessors, 'rest'],
        Array.from({ length: 65 }, () => 1),
      ])
        expect(await rejectionOf(device.partition(shares as never))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => device.createStream({ partition: 'fast' as never }))).toMatchObject({ argument: 'partition', value: 'fast' });
    });

    rule(
      'S823',
      'a thread that shares the device divides it for all threads, until it ends',
      async () => {
        const { device } = chapter;
        const { next, exited } = startSharer('divides', device.share());
        expect(await next()).toBe('divided');
        await exited;
        expect(await untilGivenBack(device, { blocks: 0 })).toBe('all given back');
        // The partitions end behind the streams.
        const divided = (): Promise<readonly Partition[]> =>
          device.partition([1, 'rest']).catch(async (error: Error) => {
            expect(error).toBeInstanceOf(StateError);
            await new Promise(setImmediate);
            return divided();
          });
        await Promise.all((await divided()).map((partition) => partition.close()));
      },
      { unless: target.name.includes('isolated') && 'threads cannot share a device that has a process of its own' },
    );

    rule('S824', 'streams of partitions use the arrays of the device, and order and hazards are as between all streams', async () => {
      const { device } = chapter;
      const partitions = await divide([1, 'rest']);
      const streams = [device.stream, ...partitions.map((partition) => device.createStream({ partition, priority: -1 }))];
      using x = device.zeros(1000, 'i32');
      for (let round = 0; round < 30; round++) streams[round % 3]!.launch(grow, x.length, { x, steps: 10 });
      const event = streams[2]!.record();
      streams[1]!.waitEvent(event);
      expect(new Set(await x.read())).toEqual(new Set([300]));
      const checked = device.createStream({ partition: partitions[0], ordering: 'checked' });
      device.createStream({ ordering: 'explicit' }).fill(x, 1);
      expect(thrownBy(() => checked.fill(x, 2))).toMatchObject({ name: 'StreamHazardError' });
      await Promise.all(partitions.map((partition) => partition.close()));
    });

    rule('S824', 'work of one partition neither waits for that of another one nor gets its share', async () => {
      const { device } = chapter;
      const [fast, batch] = await divide([1, 'rest']);
      if (target.name === 'cuda') await expectApart(fast, batch);
      const [held, behind] = [0, 1].map(() => device.createStream({ partition: fast, ordering: 'explicit' }));
      const beside = device.createStream({ partition: batch, ordering: 'explicit' });
      const [x, y] = [behind!.zeros(8, 'i32'), beside.zeros(8, 'i32')];
      {
        await using latch = await hold(target, held!, grow);
        await latch.runs();
        const second = behind!.launch(grow, x.length, { x, steps: 3 });
        await beside.launch(grow, y.length, { x: y, steps: 3 }).done;
        // The only thread of its partition is at the latch, and of the other three none runs it.
        await device.createStream().launch(grow, y.length, { x: y, steps: 3 }).done;
        if (device.info.backend === 'cpu') expect(second.isComplete).toBe(false);
      }
      expect([...(await x.read())]).toEqual(Array.from({ length: 8 }, () => 3));
      await Promise.all([fast.close(), batch.close()]);
    });

    rule('S826', 'the kernels of a graph run in the partition that they were captured in, whatever stream launches it', async () => {
      const { device } = chapter;
      const [fast, batch] = await divide([1, 'rest']);
      if (target.name === 'cuda') await expectGraphsApart(fast, batch);
      const [inFast, held] = [0, 1].map(() => device.createStream({ partition: fast, ordering: 'explicit' }));
      const inBatch = device.createStream({ partition: batch, ordering: 'explicit' });
      using x = device.zeros(8, 'i32');
      using y = device.zeros(8, 'i32');
      const ofFast = inFast!.capture({ steps: i32 }, (s, { steps }) => s.launch(grow, x.length, { x, steps }));
      const ofBatch = inBatch.capture({ steps: i32 }, (s, { steps }) => s.launch(grow, y.length, { x: y, steps }));
      await Promise.all([ofFast.upload(device.stream).done, ofBatch.upload(inFast!).done]);
      {
        await using latch = await hold(target, held!, grow);
        await latch.runs();
        const behind = device.stream.launch(ofFast, { steps: 2 });
        // On the GPU, blocks of the two can be on one multiprocessor.
        const beside = device.info.backend === 'cpu' ? device.createStream() : inBatch;
        await beside.launch(ofBatch, { steps: 2 }).done;
        if (device.info.backend === 'cpu') expect(behind.isComplete).toBe(false);
      }
      const both = device.stream.capture((s) => {
        s.launch(ofFast, { steps: 3 });
        s.launch(ofBatch, { steps: 3 });
      });
      await inFast!.launch(both).done;
      await inBatch.launch(ofFast, { steps: 4 }).done;
      expect([(await x.read())[7], (await y.read())[7]]).toEqual([9, 5]);
      await fast.close();
      for (const closed of [() => device.stream.launch(ofFast, { steps: 1 }), () => device.stream.launch(both)])
        expect(thrownBy(closed)).toMatchObject({ name: 'StateError' });
      await inBatch.launch(ofBatch, { steps: 1 }).done;
      expect((await y.read())[0]).toBe(6);
      await batch.close();
    });

    rule('S826', 'close of a partition waits for the graphs that have nodes of it', async () => {
      const { device } = chapter;
      const [fast] = await divide([1]);
      using x = device.zeros(1000, 'i32');
      const graph = device.createStream({ partition: fast }).capture((s) => s.launch(grow, x.length, { x, steps: 1000 }));
      const last = [0, 1, 2].map(() => device.stream.launch(graph)).at(-1)!;
      const closed = graph.close();
      await fast.close();
      expect(last.isComplete).toBe(true);
      await closed;
      expect((await x.read())[999]).toBe(3000);
    });

    rule('S826', 'what cannot run in a partition is refused', async () => {
      const { device } = chapter;
      const [fast] = await divide([1]);
      const stream = device.createStream({ partition: fast });
      using x = device.zeros(8, 'i32');
      using flag = device.ones(1, 'i32');
      const ofDevice = device.stream.capture((s) => s.launch(grow, x.length, { x, steps: 2 }));
      const embeds = (): unknown => stream.capture((s) => s.launch(ofDevice));
      for (const refused of [() => stream.launch(ofDevice), () => ofDevice.upload(stream), embeds])
        expect(thrownBy(refused)).toMatchObject({ name: 'UnsupportedError', capability: 'graphs in partitions' });
      const condition = (): unknown => stream.capture((s) => s.captureIf(flag, (inner) => inner.fill(x, 1)));
      expect(thrownBy(condition)).toMatchObject({ name: 'CaptureError', reason: 'unsupported-node' });
      const copies = device.stream.capture((s) => s.fill(x, 4));
      await stream.launch(copies).done;
      expect((await x.read())[0]).toBe(4);
      await fast.close();
    });

    rule('S826', 'the blocks of cooperative launches have to run at a time on the partition', async () => {
      const { device } = chapter;
      const [fast] = await divide([1]);
      const stream = device.createStream({ partition: fast });
      using x = device.zeros(8, 'i32');
      await device.compile(whole);
      if (device.info.backend === 'cuda') {
        const beyond = thrownBy(() => device.stream.launch(whole, { grid: 2 ** 30, block: 32, cooperative: true }, { x }));
        const grid = (beyond as ArgumentError & { readonly limit: number }).limit;
        const shape = { grid, block: 32, cooperative: true } as const;
        expect(await rejectionOf(stream.launch(whole, shape, { x }).done)).toBeInstanceOf(LaunchError);
        // The first launch has poisoned x.
        using y = device.zeros(8, 'i32');
        const graph = stream.capture((s) => s.launch(whole, shape, { x: y }));
        expect(await rejectionOf(device.createStream().launch(graph).done)).toBeInstanceOf(LaunchError);
      } else {
        const graph = stream.capture((s) => s.launch(whole, { grid: 4, block: 32, cooperative: true }, { x }));
        await stream.launch(graph).done;
        await stream.launch(whole, { grid: 4, block: 32, cooperative: true }, { x }).done;
        expect((await x.read())[0]).toBe(8);
      }
      await fast.close();
    });
  });

  describe('8 lifecycle: the ends of partitions', () => {
    rule('S825', 'close of a partition closes its streams, and a partition ends with its device', async () => {
      const device = await target.open(threads);
      const [fast, batch] = await device.partition([1, 'rest']);
      const streams = [0, 1].map(() => device.createStream({ partition: fast }));
      using x = device.zeros(1000, 'i32');
      for (const stream of streams) stream.launch(grow, x.length, { x, steps: 1000 });
      await fast.close();
      for (const stream of streams) expect(thrownBy(() => stream.fill(x, 1))).toBeInstanceOf(StateError);
      expect([fast.state, batch.state]).toEqual(['closed', 'open']);
      expect((await x.read())[7]).toBe(2000);
      expect(thrownBy(() => device.createStream({ partition: fast }))).toBeInstanceOf(StateError);
      expect(await rejectionOf(device.partition([1]))).toBeInstanceOf(StateError);
      device.createStream({ partition: batch }).launch(grow, x.length, { x, steps: 1000 });
      await device.close();
      expect(batch.state).toBe('closed');
      await batch.close();
      await fast.close();
      const again = await target.open(threads);
      const [other] = await again.partition([1]);
      const left = again.createStream({ partition: other });
      left.launch(grow, 1000, { x: again.zeros(1000, 'i32'), steps: 1000 });
      await again.destroy();
      await other.close();
      await using last = await target.open(threads);
      expect(thrownBy(() => last.createStream({ partition: other }))).toBeInstanceOf(ArgumentError);
    });
  });

  /** Once a kernel with device launches is loaded, as other files of this process do, all partitions of a GPU share so many more. */
  const SHARED = 2;

  /** On a GPU: each partition runs on as many multiprocessors as it says, and none of them is of the other one, but those that all share. */
  async function expectApart(...partitions: readonly Partition[]): Promise<void> {
    const seen: Set<number>[] = [];
    for (const partition of partitions) {
      const { device, multiprocessors } = partition;
      const where = device.zeros(8 * device.info.multiprocessors, 'i32');
      device.createStream({ partition }).launch(whereItRuns, { grid: where.length, block: 1024 }, { where });
      seen.push(new Set(await where.read()));
      expect([multiprocessors, multiprocessors + SHARED]).toContain(seen.at(-1)!.size);
    }
    const both = [...seen[0]!].filter((id) => seen[1]!.has(id));
    expect(both.length).toBeLessThanOrEqual(seen[0]!.size - partitions[0]!.multiprocessors);
  }

  /** On a GPU: the same for graphs, launched on a stream of the partition, on one without a partition and on one of the other. */
  async function expectGraphsApart(...partitions: readonly Partition[]): Promise<void> {
    for (const partition of partitions) {
      const { device, multiprocessors } = partition;
      using where = device.zeros(8 * device.info.multiprocessors, 'i32');
      const graph = device
        .createStream({ partition })
        .capture((s) => s.launch(whereItRuns, { grid: where.length, block: 1024 }, { where }));
      for (const stream of [device.stream, ...partitions.map((each) => device.createStream({ partition: each }))]) {
        await stream.launch(graph).done;
        expect([multiprocessors, multiprocessors + SHARED]).toContain(new Set(await where.read()).size);
      }
    }
  }
});
