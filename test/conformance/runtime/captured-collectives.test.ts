// Chapter 15: graphs with collectives of one device, which is a communicator of one rank. collectives.test.ts has two devices.
import { describe, expect } from 'vitest';
import { BoundsError, CaptureError, CollectiveError, f32, inout, input, kernel, StreamHazardError } from 'millrace';
import { openCommunicator } from 'millrace/collectives';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

const double = kernel('captured_double', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = 2 * x[i]!;
});
const add = kernel('captured_add', { to: inout(f32), x: input(f32) }, ({ to, x }, { i }) => {
  to[i] = to[i]! + x[i]!;
});
const outside = kernel('captured_outside', { x: inout(f32) }, ({ x }, { i }) => {
  x[i + 1000] = 1;
});

defineChapter((target) => {
  describe('15 collectives in graphs', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const isOnCpu = target.spec.startsWith('cpu');
    const unless = target.name.includes('isolated') && !isOnCpu && 'a device in a process of its own has no communicator';

    rule(
      'S1336',
      'each launch computes them between the nodes before and behind them',
      async () => {
        const { device } = chapter;
        const { stream } = device;
        await using group = await openCommunicator([device]);
        const [x, y, sum] = [device.from([1, 2]), device.zeros(2), device.zeros(2)];
        await using step = stream.capture((s) => {
          s.launch(double, 2, { x });
          group.allReduce([x], { into: [y], streams: [stream] });
          s.launch(add, 2, { to: sum, x: y });
        });
        await step.upload().done;
        for (let n = 0; n < 3; n++) stream.launch(step);
        expect(await sum.read()).toEqual(Float32Array.of(2 + 4 + 8, 4 + 8 + 16));
        // An outer graph has its nodes.
        await using outer = stream.capture((s) => {
          s.launch(step);
          group.allReduce([sum], { into: [y], streams: [stream] });
        });
        stream.launch(outer);
        expect(await y.read()).toEqual(Float32Array.of(30, 60));
        step.update((s) => {
          s.launch(double, 2, { x });
          group.allReduce([x], { into: [sum], streams: [stream] });
          s.launch(add, 2, { to: sum, x });
        });
        stream.launch(step);
        expect(await sum.read()).toEqual(Float32Array.of(64, 128));
      },
      { unless },
    );

    rule(
      'S1328',
      'every method is recorded, also with new results and in a group',
      async () => {
        const { device } = chapter;
        const { stream } = device;
        await using group = await openCommunicator([device]);
        const x = device.from([1, 2], { shape: [1, 2] });
        const into = device.zeros([1, 2]);
        const made: (readonly { list(): Promise<unknown> }[])[] = [];
        await using graph = stream.capture(() => {
          const all = [
            group.allReduce([x], { op: 'mean' }),
            group.reduce([x]),
            group.broadcast(x),
            group.allGather([x]),
            group.allToAll([x]),
          ];
          made.push(...all.map(({ arrays }) => arrays), group.reduceScatter([x], { op: 'max' }).arrays);
          group.barrier();
          made.push(...group.group(() => [group.allReduce([x]).arrays, group.allGather([x]).arrays]));
          group.send(x, into);
          group.allReduce([device.zeros(0)]);
        });
        for (const value of [1, 5]) {
          stream.fill(x, value);
          stream.launch(graph);
          for (const [array] of [...made, [into]]) expect([(await array!.list()) as number[]].flat(9)).toEqual([value, value]);
        }
      },
      { unless },
    );

    rule(
      'S1336',
      'launches and calls on other streams run in the order of the calls, and the host may wait between them',
      async () => {
        const { device } = chapter;
        await using group = await openCommunicator([device]);
        const ordering = isOnCpu ? 'tracked' : 'explicit';
        const [a, b] = [device.createStream({ ordering }), device.createStream({ ordering })];
        const [x, y, z] = [device.ones(1), device.zeros(1), device.zeros(1)];
        await device.synchronize();
        await using graph = a.capture((s) => {
          s.launch(double, 1, { x });
          // Of one rank, NCCL makes a copy of most collectives, and a kernel of this one.
          group.allToAll([x], { streams: [a], into: [y] });
        });
        await using held = await hold(target, a, double);
        const first = a.launch(graph);
        const copied = group.allToAll([y], { streams: [b], into: [z] });
        expect([await isSettled(first.done), await isSettled(copied.done)]).toEqual([false, false]);
        held.open();
        await copied.done;
        expect(await z.read()).toEqual(Float32Array.of(2));
        for (let n = 2; n <= 20; n++) {
          const launched = a.launch(graph);
          const { done } = group.allToAll([y], { streams: [b], into: [z] });
          if (n % 3 === 0) await launched.done;
          if (n % 3 === 1) await done;
        }
        await b.synchronize();
        expect(await z.read()).toEqual(Float32Array.of(2 ** 20));
        await Promise.all([a.synchronize(), b.synchronize()]);
      },
      { unless },
    );

    rule(
      'S1323',
      'a failed operand fails the launch, and the next one computes again',
      async () => {
        const { device } = chapter;
        const { stream } = device;
        await using group = await openCommunicator([device]);
        const [x, y] = [device.ones(2), device.zeros(2)];
        await using graph = stream.capture(() => void group.allReduce([x], { into: [y] }));
        const failed = rejectionOf(stream.launch(outside, 2, { x }).done);
        const launched = rejectionOf(stream.launch(graph).done);
        expect(await failed).toBeInstanceOf(BoundsError);
        expect(await launched).toMatchObject({ cause: expect.any(BoundsError) as unknown });
        expect(await rejectionOf(y.read())).toMatchObject({ cause: expect.any(BoundsError) as unknown });
        stream.fill(x, 3);
        stream.launch(graph);
        expect(await y.read()).toEqual(Float32Array.of(3, 3));
      },
      { unless },
    );

    rule(
      'S1337',
      'a closed communicator ends the launches of its graphs, which may be closed later',
      async () => {
        const { device } = chapter;
        const { stream } = device;
        const group = await openCommunicator([device]);
        const [x, y] = [device.ones(2), device.zeros(2)];
        const graph = stream.capture((s) => {
          s.launch(double, 2, { x });
          group.allReduce([x], { into: [y] });
          group.allToAll([x.reshape([1, 2])]);
        });
        const never = stream.capture(() => void group.allReduce([x], { into: [y] }));
        stream.launch(graph);
        await group.close();
        expect(await y.read()).toEqual(Float32Array.of(2, 2));
        for (const call of [() => stream.launch(graph), () => stream.launch(never), () => graph.upload()])
          expect(thrownBy(call)).toMatchObject({ name: 'CollectiveError', reason: 'closed' });
        expect(thrownBy(() => stream.capture((s) => void s.launch(graph)))).toBeInstanceOf(CollectiveError);
        expect(await x.read()).toEqual(Float32Array.of(2, 2));
        await Promise.all([graph.close(), never.close()]);
      },
      { unless },
    );

    rule(
      'S1337',
      'a graph whose collective was refused has nothing of the communicator',
      async () => {
        const { device } = chapter;
        const [a, b] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering: 'checked' })];
        const group = await openCommunicator([device]);
        const x = a.ones(2);
        await a.synchronize();
        let refused: unknown;
        const graph = a.capture((s) => {
          b.waitStream(s as typeof a);
          b.launch(double, 2, { x });
          refused = thrownBy(() => group.allReduce([x], { streams: [a], into: [x] }));
          (s as typeof a).waitStream(b);
        });
        expect(refused).toBeInstanceOf(StreamHazardError);
        await group.close();
        await a.launch(graph).done;
        expect(await x.read()).toEqual(Float32Array.of(2, 2));
        await graph.close();
        await Promise.all([a.close(), b.close()]);
      },
      { unless },
    );

    rule(
      'S1328',
      'the body of a condition refuses them, and graphs that have them',
      async () => {
        const { device } = chapter;
        const { stream } = device;
        await using group = await openCommunicator([device]);
        const [x, flag] = [device.ones(1), device.ones(1, 'i32')];
        await using graph = stream.capture(() => void group.allReduce([x]));
        const refused: unknown[] = [];
        await using other = stream.capture((s) => {
          s.captureIf(flag, (body) => {
            refused.push(
              thrownBy(() => group.allReduce([x])),
              thrownBy(() => body.launch(graph)),
            );
            body.launch(double, 1, { x });
          });
        });
        for (const error of refused) {
          expect(error).toBeInstanceOf(CaptureError);
          expect(error).toMatchObject({ reason: 'unsupported-node' });
        }
        stream.launch(other);
        expect(await x.read()).toEqual(Float32Array.of(2));
      },
      { unless },
    );
  });
});
