// Chapter 10, thirteenth part: hazards of launches on checked streams, and arrays that very many graphs use.
import { describe, expect } from 'vitest';
import { inout, StreamHazardError, u32, type DeviceArray, type Recorder, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, weaveKernel, woven } from '../../support/graphs.js';
import { mixKernel } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const HERE = /graph-hazards\.test\.ts:\d+:\d+$/;

function hazardOf(call: () => unknown): StreamHazardError {
  const error = thrownBy(call);
  if (error instanceof StreamHazardError) return error;
  throw new Error(`Not a StreamHazardError: ${error.message}`, { cause: error });
}

defineChapter((target) => {
  describe('10 graphs: hazards', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    /** Two checked streams, and arrays of the first one that the second is ordered after. */
    const withPair = async (body: (a: Stream, b: Stream, make: (value: number) => DeviceArray<'u32'>) => Promise<void>): Promise<void> => {
      const { device } = chapter;
      const [a, b] = ['a', 'b'].map((label) => device.createStream({ label, ordering: 'checked' })) as [Stream, Stream];
      const made: DeviceArray<'u32'>[] = [];
      try {
        await body(a, b, (value) => {
          const array = a.full(4, value, 'u32');
          b.waitStream(a);
          made.push(array);
          return array;
        });
      } finally {
        await Promise.all([a.synchronize(), b.synchronize()]);
        for (const array of made) array[Symbol.dispose]();
        await Promise.all([a.close(), b.close()]);
      }
    };

    rule('S1027', 'a hazard after a launch names the node that uses the array, and the array', async () => {
      await withPair(async (a, b, make) => {
        const [x, y, z] = [make(1), make(2), make(3)];
        const graph = a.capture(
          (s) => {
            s.launch(mixKernel, { ...ONE, label: 'stir' }, { x, k: 1 });
            s.copy(y, x);
            s.fill(z.subarray(0, 2), 7);
            s.launch(weaveKernel, ONE, { x: z.subarray(2), y, k: 1 });
          },
          { label: 'recipe' },
        );
        a.launch(graph);
        const written = hazardOf(() => b.fill(x, 5));
        expect(written.array).toBe(x.label);
        expect(written.first).toMatchObject({ stream: 'a', access: 'write', operation: { kind: 'graph', label: 'recipe' } });
        expect(written.first.node).toMatchObject({ graph: 'recipe', kind: 'launch', label: 'stir' });
        expect(written.second).toMatchObject({ stream: 'b', access: 'write', operation: { kind: 'fill' } });
        expect(written.second.node).toBeUndefined();
        for (const at of [written.first.node!.at, written.first.at, written.second.at, written.madeAt]) expect(at).toMatch(HERE);
        expect(written.first.node!.at).not.toBe(written.first.at);
        for (const part of [
          'The fill on stream b',
          x.label,
          'The node launch stir (captured at ',
          ') of graph recipe (launched on stream a',
        ])
          expect(written.message).toContain(part);
        // The bytes choose the node, and a read only conflicts with a node that writes.
        const [filled, read] = [hazardOf(() => b.fill(z.subarray(1, 2), 5)), hazardOf(() => b.fill(z.subarray(2, 3), 5))];
        expect([filled.first.node?.kind, filled.first.access, read.first.node?.label, read.first.access]).toEqual([
          'fill',
          'write',
          'weave',
          'read',
        ]);
        expect(hazardOf(() => b.copy(x, y)).array).toMatch(/^u32/);
        const copied = hazardOf(() => b.launch(mixKernel, ONE, { x: y, k: 1 }));
        expect([copied.array, copied.first.node?.label]).toEqual([y.label, 'weave']);
        b.launch(weaveKernel, ONE, { x: z.subarray(3), y: b.full(4, 1, 'u32'), k: 2 });
        b.waitStream(a);
        b.fill(x, 5);
        a.waitStream(b);
        await a.launch(graph).done;
        await graph.close();
      });
    });

    rule('S1027', 'the refusal of a launch names the node that would use the array', async () => {
      await withPair(async (a, b, make) => {
        const [x, y, z] = [make(1), make(2), make(3)];
        const graph = a.capture(
          (s) => {
            s.fill(y, 3);
            s.copy(y, x);
          },
          { label: 'recipe' },
        );
        b.launch(mixKernel, ONE, { x, k: 1 });
        const reading = hazardOf(() => a.launch(graph));
        expect([reading.array, reading.first.access, reading.second.access]).toEqual([x.label, 'write', 'read']);
        expect(reading.first).toMatchObject({ stream: 'b', operation: { kind: 'launch', label: 'mix' } });
        expect(reading.second).toMatchObject({ stream: 'a', operation: { kind: 'graph', label: 'recipe' } });
        expect(reading.second.node).toMatchObject({ graph: 'recipe', kind: 'copy' });
        expect(reading.second.node!.at).toMatch(HERE);
        expect(reading.message).toMatch(
          /^The node copy \(captured at \S+\) of graph recipe \(launched on stream a of device \S+ at \S+\) would read array /,
        );
        // Nothing was submitted, and the same call works once the two are ordered.
        a.waitStream(b);
        a.launch(graph);
        b.waitStream(a);
        b.launch(weaveKernel, ONE, { x: y, y: z, k: 1 });
        const writing = hazardOf(() => a.launch(graph));
        expect([writing.array, writing.first.access, writing.second.access, writing.second.node?.kind]).toEqual([
          y.label,
          'read',
          'write',
          'copy',
        ]);
        a.waitStream(b);
        await a.launch(graph).done;
        await graph.close();
      });
    });

    rule('S1013', 'launches of a hundred graphs of one array are ordered with each other and with other operations', async () => {
      const { device } = chapter;
      const streams = [device.createStream(), device.createStream()] as const;
      using x = device.full(8, 3, 'u32');
      using y = device.zeros(8, 'u32');
      using z = device.zeros(4, 'u32');
      const half = y.subarray(0, 4);
      let expected = 0;
      const weave = (stream: Recorder, k: number): unknown => stream.launch(weaveKernel, { grid: 1, block: 4 }, { x, y: half, k });
      // Most are launched before all of them use the array, and each of them once more.
      const graphs = Array.from({ length: 100 }, (_, n) => {
        const graph = streams[n % 2]!.capture((s) => void weave(s, n));
        for (const use of n % 3 > 0 ? [] : [() => streams[0].launch(graph), () => weave(streams[1], n)]) {
          use();
          expected = woven(3, expected, n);
        }
        return graph;
      });
      for (const [n, graph] of graphs.entries()) {
        streams[(n >> 1) % 2]!.launch(graph);
        expected = woven(3, expected, n);
      }
      expect([...(await y.read())]).toEqual([expected, expected, expected, expected, 0, 0, 0, 0]);
      for (const [first, second] of [
        [() => streams[0].launch(graphs[4]!), () => streams[1].copy(z, half)],
        [() => streams[0].copy(z, half), () => streams[1].launch(graphs[99]!)],
        [() => streams[0].launch(graphs[98]!), () => streams[1].launch(graphs[4]!)],
      ] as const) {
        await using latch = await hold(target, streams[0]);
        first();
        await streams[1].fill(y.subarray(4), 1).done;
        const operation = second();
        await witness(streams[1]);
        expect(operation.isComplete).toBe(false);
        latch.open();
        await operation.done;
      }
      await Promise.all(graphs.map((graph) => graph.close()));
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S1027', 'an array that a hundred graphs use', async () => {
      await withPair(async (a, b, make) => {
        const [x, y] = [make(1), make(2)];
        const graphs = Array.from({ length: 100 }, (_, n) =>
          a.capture((s) => void s.launch(weaveKernel, { ...ONE, label: `node ${n}` }, { x, y, k: 1 }), { label: `graph ${n}` }),
        );
        a.launch(graphs[7]!);
        const first = { access: 'write', node: { graph: 'graph 7', label: 'node 7' } };
        expect(hazardOf(() => b.fill(y, 1))).toMatchObject({ array: y.label, first });
        expect(hazardOf(() => b.launch(graphs[9]!))).toMatchObject({ first, second: { node: { graph: 'graph 9', label: 'node 9' } } });
        b.waitStream(a);
        b.fill(x, 1);
        const second = { access: 'read', node: { graph: 'graph 7' } };
        expect(hazardOf(() => a.launch(graphs[7]!))).toMatchObject({ array: x.label, first: { access: 'write' }, second });
        await Promise.all(graphs.map((graph) => graph.close()));
      });
    });

    rule('S1027', 'two graphs, arrays for slots, and embedded graphs', async () => {
      await withPair(async (a, b, make) => {
        const [x, y] = [make(1), make(2)];
        const [writer, reader] = [
          a.capture((s) => void s.launch(mixKernel, { ...ONE, label: 'stir' }, { x, k: 1 }), { label: 'writer' }),
          b.capture((s) => void s.launch(weaveKernel, { ...ONE, label: 'look' }, { x, y, k: 1 }), { label: 'reader' }),
        ];
        a.launch(writer);
        const two = hazardOf(() => b.launch(reader));
        expect(two.array).toBe(x.label);
        expect(two.first).toMatchObject({ access: 'write', node: { graph: 'writer', kind: 'launch', label: 'stir' } });
        expect(two.second).toMatchObject({ access: 'read', node: { graph: 'reader', kind: 'launch', label: 'look' } });
        b.waitStream(a);
        b.launch(reader);
        a.waitStream(b);
        const slots = a.capture(
          { from: inout(u32), to: inout(u32) },
          (s, { from, to }) => {
            s.launch(mixKernel, { ...ONE, label: 'first' }, { x: from, k: 1 });
            s.launch(mixKernel, { ...ONE, label: 'second' }, { x: to, k: 1 });
          },
          { label: 'slots' },
        );
        a.launch(slots, { from: x, to: y });
        for (const [array, label] of [
          [x, 'first'],
          [y, 'second'],
        ] as const) {
          const given = hazardOf(() => b.fill(array, 1));
          expect([given.array, given.first.node?.graph, given.first.node?.label]).toEqual([array.label, 'slots', label]);
        }
        b.waitStream(a);
        b.fill(y, 1);
        const refused = hazardOf(() => a.launch(slots, { from: x, to: y }));
        expect([refused.array, refused.second.node?.label]).toEqual([y.label, 'second']);
        a.waitStream(b);
        const outer = a.capture(
          (s) => {
            s.launch(writer);
            s.fill(y, 2);
          },
          { label: 'outer' },
        );
        a.launch(outer);
        const inner = hazardOf(() => b.fill(x, 1));
        expect(inner.first.node).toMatchObject({ graph: 'outer', kind: 'launch', label: 'stir' });
        b.waitStream(a);
        await Promise.all([writer, reader, slots, outer].map((graph) => graph.close()));
      });
    });
  });
});
