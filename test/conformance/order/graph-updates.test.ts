// Chapter 10, tenth part: graphs that are updated, and graphs in pipelines.
import { lastValueFrom, from, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, download, inout, launchGraph, overlap, u32, upload, type Graph, type InOut, type Scalar } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, reasonOf, usedAgain, usedBytes } from '../../support/graphs.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

/** Elements of an array of 256 KiB: larger than what a pool rounds to. */
const MANY = 65_536;

defineChapter((target) => {
  describe('10 graphs: updates and pipelines', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1018', 'launches after an update run the new nodes, and waiting ones the former nodes', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const graph = stream.capture({ value: u32 }, (s, { value }) => {
        s.fill(x, 1);
        s.launch(mixKernel, ONE, { x, k: value });
      });
      await using latch = await hold(target, stream);
      stream.launch(graph, { value: 5 });
      graph.update((s, { value }) => {
        s.fill(y, 2);
        s.launch(mixKernel, ONE, { x: y, k: value });
      });
      stream.launch(graph, { value: 6 });
      latch.open();
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([mixed(1, 5, 1), mixed(2, 6, 1)]);
      expect(graph.nodes.map(({ kind }) => kind)).toEqual(['fill', 'launch']);
      await graph.close();
      await stream.close();
    });

    rule('S1018', 'an update keeps the arrays that it uses, and lets those of the former nodes go', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const x = device.zeros(MANY, 'u32');
      const y = device.zeros(MANY, 'u32');
      using z = device.zeros(MANY, 'u32');
      await device.synchronize();
      const before = await usedBytes(device);
      const graph = stream.capture((s) => void s.copy(z, x));
      stream.launch(graph);
      x[Symbol.dispose]();
      device.stream.fill(y, 9);
      graph.update((s) => void s.copy(z, y));
      y[Symbol.dispose]();
      stream.launch(graph);
      expect((await z.read())[7]).toBe(9);
      await usedAgain(device, before - 4 * MANY);
      await graph.close();
      await usedAgain(device, before - 8 * MANY);
      await stream.close();
    });

    rule('S1018', 'other nodes, another order, and a function that throws leave the graph as it was', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'u32');
      using y = device.zeros(4, 'u32');
      const graph = stream.capture((s) => {
        s.fill(x, 3);
        s.fill(y, 4);
      });
      expect(reasonOf(() => graph.update((s) => void s.fill(x, 1)))).toBe('topology');
      expect(
        reasonOf(() =>
          graph.update((s) => {
            s.fill(x, 1);
            s.copy(y, x);
          }),
        ),
      ).toBe('topology');
      expect(
        reasonOf(() =>
          graph.update((s) => {
            fork.waitStream(stream);
            s.fill(x, 1);
            fork.fill(y, 1);
          }),
        ),
      ).toBe('topology');
      expect(reasonOf(() => graph.update(() => undefined))).toBe('empty');
      expect(
        thrownBy(() =>
          graph.update(() => {
            throw new Error('of the function');
          }),
        ).message,
      ).toBe('of the function');
      stream.launch(graph);
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([3, 4]);
      await graph.close();
      expect(thrownBy(() => graph.update((s) => void s.fill(x, 1))).message).toContain('is closed');
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1019', 'a pipeline launches a graph for every item, with the array of the item', async () => {
      const { device } = chapter;
      const graphs: Graph<{ x: InOut<'u32'>; k: Scalar<'u32'> }>[] = [];
      const results$ = overlap(device, [1, 2, 3, 4, 5, 6], { depth: 3 }, (n, lane) => {
        const graph = (graphs[lane.index] ??= lane.stream.capture({ x: inout(u32), k: u32 }, (s, { x, k }) => {
          s.launch(mixKernel, ONE, { x, k });
          s.launch(mixKernel, ONE, { x, k: 7 });
        }));
        return from([new Uint32Array([n])]).pipe(
          upload(lane),
          launchGraph(lane, graph, (x) => ({ x, k: n })),
          download(lane),
        );
      });
      const results = await lastValueFrom(results$.pipe(toArray()));
      expect(results.map(([value]) => value)).toEqual([1, 2, 3, 4, 5, 6].map((n) => mixed(mixed(n, n, 1), 7, 1)));
      await Promise.all(graphs.map((graph) => graph.close()));
    });

    rule('S1019', 'launchGraph refuses what is no graph at the call, and wrong values where the chain is awaited', async () => {
      const { device } = chapter;
      const { stream } = device;
      using x = device.zeros(1, 'u32');
      await using graph = stream.capture({ k: u32 }, (s, { k }) => void s.launch(mixKernel, ONE, { x, k }));
      expect(thrownBy(() => launchGraph(stream, {} as never, (() => ({})) as never))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => launchGraph(stream, graph, { k: 1 } as never))).toBeInstanceOf(ArgumentError);
      const bad = lastValueFrom(from([1]).pipe(launchGraph(stream, graph, () => ({ k: -1 }))));
      expect(await rejectionOf(bad)).toBeInstanceOf(ArgumentError);
    });
  });
});
