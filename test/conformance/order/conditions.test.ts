// Chapter 10, eleventh part: conditions on the device, in captures and outside of them.
import { describe, expect } from 'vitest';
import { BoundsError, UpstreamError, type Device, type DeviceArray, type Operation, type Recorder, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { countDownKernel, ONE, shiftKernel } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

/** Runs what `record` submits: as a graph that is launched once, or call by call. */
type Way = (stream: Stream, record: (s: Recorder) => void) => Promise<void>;
const WAYS: readonly (readonly [name: string, way: Way])[] = [
  [
    'in a capture',
    async (stream, record) => {
      const graph = stream.capture((s) => record(s));
      await stream.launch(graph).done;
      await graph.close();
    },
  ],
  [
    'outside of a capture',
    async (stream, record) => {
      record(stream);
      await stream.synchronize();
    },
  ],
];

const intsOf = async (...arrays: readonly DeviceArray<'i32'>[]): Promise<number[]> =>
  (await Promise.all(arrays.map((array) => array.read()))).flatMap((values) => [...values]);

defineChapter((target) => {
  describe('10 graphs: conditions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const streamOf = (device: Device): Stream => device.createStream();

    for (const [where, run] of WAYS) {
      rule('S1020', `${where}, an if runs its first body for every value but 0, and its second one for 0`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using condition = device.zeros(1, 'i32');
        using x = device.zeros(2, 'i32');
        for (const [value, one, both] of [
          [0, 0, 3],
          [1, 1, 2],
          [-7, 1, 2],
          [0x40000000, 1, 2],
        ] as const) {
          stream.fill(condition, value);
          stream.fill(x, 0);
          await run(stream, (s) => {
            s.captureIf(condition, (body) => void body.fill(x.subarray(0, 1), 1));
            s.captureIf(
              condition,
              (body) => void body.fill(x.subarray(1), 2),
              (body) => void body.fill(x.subarray(1), 3),
            );
          });
          expect([value, ...(await x.read())]).toEqual([value, one, both]);
        }
        stream.fill(condition, 0);
        await run(stream, (s) => void s.captureIf(condition, undefined, (body) => void body.fill(x, 9)));
        expect(await intsOf(x)).toEqual([9, 9]);
        await stream.close();
      });

      rule('S1020', `${where}, a while reads its condition before each iteration`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using left = device.zeros(1, 'i32');
        using x = device.zeros(1, 'u32');
        for (const count of [0, 1, 2, 37]) {
          stream.fill(left, count);
          stream.fill(x, 1);
          await run(stream, (s) => {
            s.captureWhile(left, (body) => {
              body.launch(mixKernel, ONE, { x, k: 5 });
              body.launch(countDownKernel, ONE, { left });
            });
          });
          let expected = 1;
          for (let n = 0; n < count; n++) expected = mixed(expected, 5, 1);
          expect([(await x.read())[0], (await left.read())[0]]).toEqual([expected, 0]);
        }
        await stream.close();
      });

      rule('S1020', `${where}, a switch runs the body with the number, and none if there is no such body`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using index = device.zeros(1, 'i32');
        using x = device.zeros(1, 'i32');
        for (const [value, expected] of [
          [0, 10],
          [1, 11],
          [2, 12],
          [3, -1],
          [-1, -1],
          [1 << 30, -1],
        ] as const) {
          stream.fill(index, value);
          stream.fill(x, -1);
          await run(
            stream,
            (s) =>
              void s.captureSwitch(
                index,
                [10, 11, 12].map((to) => (body: Recorder) => void body.fill(x, to)),
              ),
          );
          expect([value, ...(await x.read())]).toEqual([value, expected]);
        }
        await stream.close();
      });

      rule('S1020', `${where}, the value is that of the place in the stream, and a body may change it`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using condition = device.zeros(3, 'i32');
        using x = device.zeros(1, 'i32');
        // A view: the value is the second element.
        const value = condition.subarray(1, 2);
        await run(stream, (s) => {
          s.fill(condition, 1);
          s.captureIf(
            value,
            (body) => {
              body.fill(x, 1);
              body.fill(value, 0);
            },
            (body) => void body.fill(x, 2),
          );
          s.captureIf(value, (body) => void body.fill(x, 3));
          s.fill(value, 1);
          s.captureIf(condition.subarray(2), undefined, (body) => void body.fill(x, 4));
        });
        expect(await intsOf(x, condition)).toEqual([1, 1, 1, 1]);
        await stream.close();
      });

      rule('S1020', `${where}, conditions may be in bodies to a depth of 16`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using condition = device.ones(1, 'i32');
        using x = device.zeros(1, 'u32');
        const nested = (s: Recorder, depth: number): void => {
          s.launch(mixKernel, ONE, { x, k: depth });
          if (depth < 16) s.captureIf(condition, (body) => nested(body, depth + 1));
        };
        await run(stream, (s) => nested(s, 0));
        expect((await x.read())[0]).toBe(mixed(0, 0, 17));
        await stream.close();
      });

      rule('S1020', `${where}, a body may be a graph, and may launch graphs`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using left = device.full(1, 3, 'i32');
        using x = device.zeros(1, 'u32');
        const iteration = stream.capture((s) => {
          s.launch(mixKernel, ONE, { x, k: 2 });
          s.launch(countDownKernel, ONE, { left });
        });
        const inside = stream.capture((s) => void s.captureWhile(left, iteration));
        await run(stream, (s) => {
          s.captureWhile(left, iteration);
          s.fill(left, 2);
          s.captureIf(left, (body) => {
            body.launch(inside);
            body.launch(mixKernel, ONE, { x, k: 9 });
          });
        });
        let expected = 0;
        for (let n = 0; n < 5; n++) expected = mixed(expected, 2, 1);
        expect([(await x.read())[0], (await left.read())[0]]).toEqual([mixed(expected, 9, 1), 0]);
        await Promise.all([iteration.close(), inside.close()]);
        await stream.close();
      });

      rule('S1020', `${where}, bodies copy between arrays and pinned arrays, strided as well`, async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using left = device.full(1, 3, 'i32');
        using x = device.from(new Int32Array([1, 2, 3, 4, 5, 6]));
        using y = device.zeros(3, 'i32');
        using pinned = device.pinned(3, 'i32');
        await run(stream, (s) => {
          s.captureWhile(left, (body) => {
            body.launch(countDownKernel, ONE, { left });
            body.copy(y, x.view([0, 6, 2]));
            body.fill(x.view([1, 6, 2]), 7);
            body.copy(pinned, y);
          });
        });
        expect([...pinned.data]).toEqual([1, 3, 5]);
        expect(await intsOf(x)).toEqual([1, 7, 3, 7, 5, 7]);
        await stream.close();
      });
    }

    rule(
      'S1020',
      'a node that fails in a body ends the loops around it, rejects the launch with its own error, and the next one runs',
      async () => {
        const { device } = chapter;
        const stream = streamOf(device);
        using left = device.zeros(1, 'i32');
        using by = device.zeros(1, 'i32');
        using x = device.from(new Int32Array([1, 0, 0, 0]));
        using bad = device.zeros(1, 'i32');
        // Without its failure the loop would never end: what it writes to `left` stays 1.
        const graph = stream.capture((s) => {
          s.fill(bad, 3);
          s.captureWhile(left, (body) => {
            body.captureIf(by, (inner) => void inner.launch(shiftKernel, 1, { x, y: bad, by: 4 }));
            body.launch(shiftKernel, 1, { x: x.subarray(1), y: left, by: 0 });
            body.captureIf(by, (inner) => void inner.fill(left, 1));
          });
        });
        for (let n = 0; n < 3; n++) {
          stream.fill(left, 1);
          stream.fill(by, 1);
          const launched = stream.launch(graph);
          const error = await rejectionOf(launched.done);
          expect(error).toBeInstanceOf(BoundsError);
          expect((error as BoundsError).message).toContain('shift');
          expect([(error as BoundsError).array, (error as BoundsError).index]).toEqual(['x', 4]);
          expect(await rejectionOf(left.read())).toBeInstanceOf(UpstreamError);
          stream.fill(left, 1);
          stream.fill(by, 0);
          stream.fill(bad, 0);
          await stream.launch(graph).done;
          expect(await intsOf(left, bad, x)).toEqual([0, 3, 1, 0, 0, 0]);
        }
        await graph.close();
        await stream.close();
      },
    );

    rule('S1020', 'of several launches, on several streams, those fail whose bodies fail', async () => {
      const { device } = chapter;
      const streams = [streamOf(device), streamOf(device)];
      using condition = device.zeros(1, 'i32');
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(1, 'i32');
      const graph = streams[0]!.capture((s) => {
        s.captureIf(
          condition,
          (body) => void body.launch(shiftKernel, 1, { x, y, by: 4 }),
          (body) => void body.launch(shiftKernel, 1, { x, y, by: 0 }),
        );
      });
      const launched: Operation[] = [];
      for (let n = 0; n < 12; n++) {
        const stream = streams[n % 2]!;
        stream.fill(condition, n % 3 === 0 ? 1 : 0);
        launched.push(stream.launch(graph));
      }
      const ended = await Promise.allSettled(launched.map(({ done }) => done));
      expect(ended.map(({ status }) => status)).toEqual(launched.map((_, n) => (n % 3 === 0 ? 'rejected' : 'fulfilled')));
      for (const one of ended) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(BoundsError);
      // What bodies overwrite stays poisoned, because the tracker cannot know that they ran.
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      streams[0]!.fill(y, 0);
      await streams[0]!.launch(graph).done;
      expect(await intsOf(y)).toEqual([7]);
      await graph.close();
      await Promise.all(streams.map((stream) => stream.close()));
    });
  });
});
