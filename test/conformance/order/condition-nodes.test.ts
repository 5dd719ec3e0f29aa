// Chapter 10, twelfth part: conditions as nodes of graphs, and conditions outside of captures.
import { describe, expect } from 'vitest';
import { BoundsError, StateError, UpstreamError, type Device, type DeviceArray, type Recorder, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { countDownKernel, ONE, orderOf, shiftKernel, usedAgain, usedBytes } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

const intsOf = async (...arrays: readonly DeviceArray<'i32'>[]): Promise<number[]> =>
  (await Promise.all(arrays.map((array) => array.read()))).flatMap((values) => [...values]);

defineChapter((target) => {
  describe('10 graphs: conditions as nodes', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const streamOf = (device: Device): Stream => device.createStream();

    rule('S1021', 'a condition is one node with bodies, which toDot shows', async () => {
      const { device } = chapter;
      const stream = device.createStream({ label: 'trunk' });
      using left = device.zeros(1, 'i32');
      using x = device.zeros(1, 'u32');
      const graph = stream.capture(
        (s) => {
          s.fill(x, 1);
          s.captureWhile(left, (body) => {
            body.launch(mixKernel, { ...ONE, label: 'inner' }, { x, k: 1 });
            body.captureIf(
              left,
              (then) => void then.fill(x, 2),
              () => undefined,
            );
            body.launch(countDownKernel, ONE, { left });
          });
          s.captureSwitch(left, [(zero) => void zero.fill(x, 3)]);
        },
        { label: 'loop' },
      );
      const of = { device: device.info.id, stream: 'trunk' };
      expect(graph.nodes).toEqual([
        { id: 0, kind: 'fill', ...of },
        {
          id: 1,
          kind: 'while',
          ...of,
          bodies: [
            {
              nodes: [
                { id: 0, kind: 'launch', label: 'inner', ...of },
                {
                  id: 1,
                  kind: 'if',
                  ...of,
                  bodies: [
                    { nodes: [{ id: 0, kind: 'fill', ...of }], edges: [] },
                    { nodes: [], edges: [] },
                  ],
                },
                { id: 2, kind: 'launch', label: 'countDown', ...of },
              ],
              edges: [
                [0, 1],
                [1, 2],
              ],
            },
          ],
        },
        { id: 2, kind: 'switch', ...of, bodies: [{ nodes: [{ id: 0, kind: 'fill', ...of }], edges: [] }] },
      ]);
      expect(graph.edges).toEqual([
        [0, 1],
        [1, 2],
      ]);
      const dot = graph.toDot();
      for (const line of [
        'n1 [label="while", class=while, shape=diamond,',
        'n1_0_0 [label="launch\\ninner", class=launch,',
        'label="then"',
        'n1_0_1 -> n1_0_2;',
        'label="case 0"',
      ])
        expect(dot).toContain(line);
      expect(dot.split('{').length).toBe(dot.split('}').length);
      await graph.close();
      await stream.close();
    });

    rule('S1021', 'for the order, a condition reads its array and uses what its bodies use, whether they run or not', async () => {
      const { device } = chapter;
      const [stream, fork] = [streamOf(device), streamOf(device)];
      using condition = device.zeros(1, 'i32');
      const [read, written, other] = [device.zeros(1, 'i32'), device.zeros(1, 'i32'), device.zeros(1, 'i32')];
      const graph = stream.capture((s) => {
        fork.waitStream(stream);
        fork.fill(condition, 0);
        s.captureIf(condition, (body) => void body.captureIf(read, (inner) => void inner.copy(written, other)));
        fork.fill(read, 1);
        fork.copy(read, other);
        fork.copy(other, written);
      });
      const [set, branch, overwrites, copies, reads] = graph.nodes;
      const isBefore = orderOf(graph);
      expect([branch!.kind, isBefore(set!, branch!)]).toEqual(['if', true]);
      for (const later of [overwrites!, copies!, reads!]) expect(isBefore(branch!, later)).toBe(true);
      await graph.close();
      for (const array of [read, written, other]) array[Symbol.dispose]();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1021', 'launches are ordered with other streams by the arrays of the bodies', async () => {
      const { device } = chapter;
      const [stream, other] = [streamOf(device), streamOf(device)];
      using left = device.zeros(1, 'i32');
      using x = device.zeros(1, 'u32');
      const graph = stream.capture((s) => {
        s.fill(left, 20);
        s.captureWhile(left, (body) => {
          body.launch(mixKernel, ONE, { x, k: 1 });
          body.launch(countDownKernel, ONE, { left });
        });
      });
      let expected = 0;
      for (let n = 0; n < 30; n++) {
        stream.launch(graph);
        other.launch(mixKernel, ONE, { x, k: 4 });
        for (let k = 0; k < 20; k++) expected = mixed(expected, 1, 1);
        expected = mixed(expected, 4, 1);
      }
      expect((await x.read())[0]).toBe(expected);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1021', 'a graph with conditions in another capture runs there as a part of it', async () => {
      const { device } = chapter;
      const stream = streamOf(device);
      using left = device.zeros(1, 'i32');
      using x = device.zeros(1, 'u32');
      const loop = stream.capture((s) => {
        s.captureWhile(left, (body) => {
          body.launch(mixKernel, ONE, { x, k: 1 });
          body.launch(countDownKernel, ONE, { left });
        });
      });
      const twice = stream.capture((s) => {
        for (const count of [2, 3]) {
          s.fill(left, count);
          s.launch(loop);
        }
      });
      await loop.close();
      await stream.launch(twice).done;
      let expected = 0;
      for (let n = 0; n < 5; n++) expected = mixed(expected, 1, 1);
      expect((await x.read())[0]).toBe(expected);
      expect(twice.nodes.map(({ kind }) => kind).filter((kind) => kind === 'while')).toHaveLength(2);
      await twice.close();
      await stream.close();
    });

    rule('S1021', 'update takes other kernels, values and arrays in the bodies, and no other nodes', async () => {
      const { device } = chapter;
      const stream = streamOf(device);
      using condition = device.ones(1, 'i32');
      using x = device.zeros(1, 'i32');
      const graph = stream.capture((s) => void s.captureIf(condition, (body) => void body.fill(x, 1)));
      graph.update((s) => void s.captureIf(condition, (body) => void body.fill(x, 2)));
      await stream.launch(graph).done;
      expect(await intsOf(x)).toEqual([2]);
      const others: readonly ((s: Recorder) => void)[] = [
        (s) => void s.captureIf(condition, (body) => void body.copy(x, condition)),
        (s) =>
          void s.captureIf(
            condition,
            (body) => void body.fill(x, 1),
            (body) => void body.fill(x, 1),
          ),
        (s) => void s.captureSwitch(condition, [(body) => void body.fill(x, 1)]),
        (s) =>
          void s.captureIf(condition, (body) => {
            body.fill(x, 1);
            body.fill(x, 1);
          }),
      ];
      for (const other of others) expect(thrownBy(() => graph.update(other))).toMatchObject({ reason: 'topology' });
      stream.fill(x, 0);
      await stream.launch(graph).done;
      expect(await intsOf(x)).toEqual([2]);
      await graph.close();
      await stream.close();
    });

    rule('S1022', 'a condition outside of a capture is a launch, and later operations of any stream come after it', async () => {
      const { device } = chapter;
      const [stream, other] = [streamOf(device), streamOf(device)];
      using left = device.full(1, 50, 'i32');
      using x = device.zeros(1, 'u32');
      let expected = 0;
      for (let n = 0; n < 50; n++) expected = mixed(expected, 3, 1);
      await device.compile(mixKernel, countDownKernel);
      // Not a kernel that waits: the driver of a GPU may wait for running kernels while it builds a graph with conditions.
      let open = (): void => undefined;
      const opened = new Promise<void>((resolve) => (open = resolve));
      stream.hold(() => opened, { timeoutMs: 10_000 });
      const launched = stream.captureWhile(left, (body) => {
        body.launch(mixKernel, ONE, { x, k: 3 });
        body.launch(countDownKernel, ONE, { left });
      });
      other.launch(mixKernel, ONE, { x, k: 8 });
      stream.launch(mixKernel, ONE, { x, k: 9 });
      expect([launched.kind, launched.label, launched.isComplete]).toEqual(['graph', 'captureWhile', false]);
      open();
      await launched.done;
      expect(launched.status).toBe('finished');
      expect((await x.read())[0]).toBe(mixed(expected, 8, 2));
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1022', 'what the launch took is freed after it, also memory of arrays that were disposed meanwhile', async () => {
      const { device } = chapter;
      const stream = streamOf(device);
      using condition = device.ones(1, 'i32');
      using x = device.zeros(1000, 'i32');
      const use = (): void => {
        const y = device.zeros(1000, 'i32');
        stream.captureIf(condition, (body) => {
          body.fill(y, 5);
          body.copy(x, y);
        });
        y[Symbol.dispose]();
      };
      use();
      const before = await usedBytes(device);
      for (let n = 0; n < 20; n++) use();
      expect((await x.read())[999]).toBe(5);
      await usedAgain(device, before);
      await stream.close();
    });

    rule('S1022', 'a failure in a body rejects the launch, and the stream goes on', async () => {
      const { device } = chapter;
      const stream = streamOf(device);
      using condition = device.ones(1, 'i32');
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(1, 'i32');
      const failed = stream.captureIf(condition, (body) => void body.launch(shiftKernel, 1, { x, y, by: 4 }));
      expect(await rejectionOf(failed.done)).toBeInstanceOf(BoundsError);
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      await stream.fill(y, 1).done;
      await stream.captureIf(condition, (body) => void body.launch(shiftKernel, 1, { x, y, by: 0 })).done;
      expect(await intsOf(y)).toEqual([7]);
      await eventually('nothing is pending', () => stream.pending === 0);
      await stream.close();
      expect(thrownBy(() => stream.captureIf(condition, () => undefined))).toBeInstanceOf(StateError);
    });
  });
});
