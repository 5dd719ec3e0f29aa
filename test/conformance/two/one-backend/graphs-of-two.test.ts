// Chapter 10, rules about two devices: captures that contain streams of both, and graphs of each.
import { describe, expect } from 'vitest';
import { ArgumentError, BoundsError, i32, input, u32, UpstreamError, type DeviceArray } from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { nodeOf, ONE, orderOf, reasonOf, shiftKernel, usedAgain, usedBytes, weaveKernel, workOf, woven } from '../../../support/graphs.js';
import { hold } from '../../../support/latch.js';
import { mixed, mixKernel } from '../../../support/kernels.js';
import { witness } from '../../../support/order.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { rejectionOf, thrownBy } from '../../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: of two devices', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    rule('S1002', 'a stream of the other device joins by waitStream or an event, and the graph runs on both', async () => {
      const { device, other } = chapter;
      const [here, there, further] = [device.createStream(), other.createStream({ label: 'there' }), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      using z = other.zeros(1, 'u32');
      const graph = here.capture((s) => {
        s.launch(mixKernel, { ...ONE, label: 'first' }, { x, k: 1 });
        there.waitStream(here);
        there.launch(mixKernel, { ...ONE, label: 'second' }, { x: y, k: 2 });
        further.waitEvent(s.record());
        further.launch(mixKernel, { ...ONE, label: 'third' }, { x: z, k: 3 });
        s.waitStream(there);
        s.waitStream(further);
        s.launch(mixKernel, { ...ONE, label: 'last' }, { x, k: 4 });
      });
      expect(workOf(graph).map((node) => [node.label, node.device])).toEqual([
        ['first', device.info.id],
        ['second', other.info.id],
        ['third', other.info.id],
        ['last', device.info.id],
      ]);
      const [isBefore, [first, second, third, last]] = [orderOf(graph), workOf(graph)];
      expect([isBefore(first!, second!), isBefore(first!, third!), isBefore(second!, last!), isBefore(third!, last!)]).toEqual([
        true,
        true,
        true,
        true,
      ]);
      expect([isBefore(second!, third!), isBefore(third!, second!)]).toEqual([false, false]);
      await Promise.all([device.synchronize(), other.synchronize()]);
      expect([(await x.read())[0], (await y.read())[0], (await z.read())[0]]).toEqual([0, 0, 0]);
      let [a, b, c] = [0, 0, 0];
      for (let n = 0; n < 3; n++) {
        here.launch(graph);
        a = mixed(mixed(a, 1, 1), 4, 1);
        b = mixed(b, 2, 1);
        c = mixed(c, 3, 1);
        expect([(await x.read())[0], (await y.read())[0], (await z.read())[0]]).toEqual([a, b, c]);
      }
      // The streams of the other device have left.
      await there.fill(y, 5).done;
      expect((await y.read())[0]).toBe(5);
      await graph.close();
      await Promise.all([here.close(), there.close(), further.close()]);
    });

    rule('S1003', 'copies between the devices are nodes that come after what they read, and before what reads them', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(4, 'u32');
      using y = other.zeros(4, 'u32');
      using back = device.zeros(4, 'u32');
      const shape = { grid: 1, block: 4 } as const;
      using seed = other.full(4, 11, 'u32');
      const graph = here.capture({ k: u32 }, (s, { k }) => {
        there.waitStream(here);
        for (let index = 0; index < 4; index++)
          s.launch(mixKernel, { ...ONE, label: `made ${index}` }, { x: x.subarray(index, index + 1), k });
        there.copy(y, x, { label: 'over' });
        there.launch(weaveKernel, { ...shape, label: 'woven' }, { x: seed, y, k });
        s.copy(back, y, { label: 'back' });
      });
      const isBefore = orderOf(graph);
      const order = ['made 0', 'made 3', 'over', 'woven', 'back'].map((label) => nodeOf(graph, label));
      for (const [n, node] of order.slice(1).entries()) expect(isBefore(order[n]!, node)).toBe(true);
      let value = 0;
      for (let k = 0; k < 50; k++) {
        here.launch(graph, { k });
        value = mixed(value, k, 1);
      }
      const expected = woven(11, value, 49);
      expect([...(await back.read()), ...(await y.read())]).toEqual(Array.from({ length: 8 }, () => expected));
      expect((await x.read())[0]).toBe(value);
      await graph.close();
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1004', 'a launch is complete only when the nodes on the other device are; with strict they must be joined', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      const body = (): void => {
        here.launch(mixKernel, ONE, { x, k: 1 });
        there.waitStream(here);
        for (let k = 0; k < 200; k++) there.launch(mixKernel, ONE, { x: y, k });
      };
      expect(reasonOf(() => here.capture(body, { strict: true }))).toBe('unjoined');
      await Promise.all([here.fill(x, 0).done, there.fill(y, 0).done]);
      const graph = here.capture(body);
      using pinned = device.pinned(1, 'u32');
      const explicit = other.createStream({ ordering: 'explicit' });
      await here.launch(graph).done;
      // Only the completion of the launch orders this copy.
      await explicit.copy(pinned, y).done;
      expect(pinned.data[0]).toBe(mixed(0, 0, 200));
      await graph.close();
      await Promise.all([here.close(), there.close(), explicit.close()]);
    });

    rule('S1006', 'a stream of the other device cannot wait for what was captured, nor a captured stream for it', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      using event = device.createEvent();
      there.fill(y, 3);
      const graph = here.capture((s) => {
        s.fill(x, 1);
        s.record(event);
        expect(reasonOf(() => s.waitStream(there))).toBe('isolation');
        expect(reasonOf(() => s.waitEvent(there.record()))).toBe('isolation');
      });
      expect(reasonOf(() => there.waitEvent(event))).toBe('isolation');
      expect((await y.read())[0]).toBe(3);
      await graph.close();
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1007', 'a capture that fails leaves the streams of both devices usable', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(4, 'u32');
      using y = other.zeros(4, 'u32');
      const error = thrownBy(() =>
        here.capture((s) => {
          s.fill(x, 9);
          there.waitStream(here);
          there.copy(y, x);
          throw new Error('boom');
        }),
      );
      expect(error.message).toBe('boom');
      there.fill(y, 2);
      here.copy(x, y);
      expect([...(await x.read()), ...(await y.read())]).toEqual([2, 2, 2, 2, 2, 2, 2, 2]);
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1009', 'a graph keeps disposed arrays of both devices until it is closed', async () => {
      const { device, other } = chapter;
      const here = device.createStream();
      const there = other.createStream();
      const length = 1 << 16;
      using out = device.zeros(length, 'i32');
      const before = [await usedBytes(device), await usedBytes(other)];
      const x = other.full(length, 6, 'i32');
      const between = device.zeros(length, 'i32');
      let made: DeviceArray<'i32'> | undefined;
      const graph = here.capture((s) => {
        s.copy(between, x);
        there.waitStream(here);
        made = there.full(length, 7, 'i32');
        there.copy(made.subarray(0, 1), between.subarray(0, 1));
        s.copy(out, made);
      });
      for (const array of [x, between, made!]) array[Symbol.dispose]();
      const others = [device, other].map((one) => one.full(length, 99, 'i32'));
      for (let n = 0; n < 2; n++) {
        here.launch(graph);
        const values = await out.read();
        expect([values[0], values[1], values[length - 1]]).toEqual([6, 7, 7]);
        device.stream.fill(out, 0);
      }
      for (const array of others) {
        expect((await array.read()).every((value) => value === 99)).toBe(true);
        array[Symbol.dispose]();
      }
      await graph.close();
      await usedAgain(device, before[0]!);
      await usedAgain(other, before[1]!);
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1011', 'a stream of another device than that of the captured stream is refused', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      const graph = here.capture((s) => {
        s.fill(x, 1);
        there.waitStream(here);
        there.fill(y, 1);
      });
      const error = thrownBy(() => there.launch(graph));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(device.info.id);
      expect(error.message).toContain(other.info.id);
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([0, 0]);
      await graph.close();
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1028', 'a stream of another device cannot upload a graph, and a graph of both devices is uploaded on its own', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      const graph = here.capture((s) => {
        s.fill(x, 1);
        there.waitStream(here);
        there.launch(mixKernel, ONE, { x: y, k: 1 });
      });
      const error = thrownBy(() => graph.upload(there));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(device.info.id);
      expect(error.message).toContain(other.info.id);
      await graph.upload(here).done;
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([0, 0]);
      here.launch(graph);
      expect([(await x.read())[0], (await y.read())[0]]).toEqual([1, mixed(0, 1, 1)]);
      await graph.close();
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1011', 'graphs of two devices run at once: one that is held does not hold the other', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = device.zeros(1, 'u32');
      using y = other.zeros(1, 'u32');
      const one = here.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
      const two = there.capture((s) => void s.launch(mixKernel, ONE, { x: y, k: 2 }));
      await using latch = await hold(target, here, mixKernel);
      let expected = 0;
      for (let n = 0; n < 20; n++) {
        here.launch(one);
        there.launch(two);
        expected = mixed(expected, 2, 1);
      }
      expect((await y.read())[0]).toBe(expected);
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect((await x.read())[0]).not.toBe(0);
      await Promise.all([one.close(), two.close()]);
      await Promise.all([here.close(), there.close()]);
    });

    rule('S1012', 'an array of another device than the slot is refused', async () => {
      const { device, other } = chapter;
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      using foreign = other.zeros(4, 'i32');
      const graph = device.stream.capture({ x: input(i32) }, (s, slots) => void s.launch(shiftKernel, 4, { ...slots, y, by: 0 }));
      const error = thrownBy(() => device.stream.launch(graph, { x: foreign }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toContain(other.info.id);
      await device.stream.launch(graph, { x }).done;
      await graph.close();
    });

    rule('S1013', 'work of the other device waits for a launch that uses its arrays, and a launch waits for it', async () => {
      const { device, other } = chapter;
      const [here, there, outside] = [device.createStream(), other.createStream(), other.createStream()];
      using x = device.full(4, 5, 'u32');
      using y = other.zeros(4, 'u32');
      using z = other.zeros(4, 'u32');
      const graph = here.capture(() => {
        there.waitStream(here);
        there.copy(y, x);
      });
      await Promise.all([device.synchronize(), other.synchronize()]);
      {
        await using latch = await hold(target, here);
        here.launch(graph);
        const copy = outside.copy(z, y);
        await witness(outside);
        expect(copy.isComplete).toBe(false);
        latch.open();
        expect([...(await z.read())]).toEqual([5, 5, 5, 5]);
      }
      await using latch = await hold(target, outside);
      outside.fill(y, 1);
      const launched = here.launch(graph);
      await witness(here);
      expect(launched.isComplete).toBe(false);
      latch.open();
      await launched.done;
      expect([...(await y.read())]).toEqual([5, 5, 5, 5]);
      await graph.close();
      await Promise.all([here.close(), there.close(), outside.close()]);
    });

    rule(
      'S1023',
      'a condition and its bodies stay on one device: everything of the other one is refused, and the capture goes on',
      async () => {
        const { device, other } = chapter;
        const [here, there] = [device.createStream(), other.createStream()];
        using condition = device.ones(1, 'i32');
        using x = device.zeros(1, 'u32');
        using far = other.zeros(1, 'u32');
        using farCondition = other.ones(1, 'i32');
        const both = here.capture((s) => {
          there.waitStream(s);
          s.fill(x, 1);
          there.fill(far, 1);
        });
        const graph = here.capture((s) => {
          there.waitStream(here);
          expect(thrownBy(() => s.captureIf(farCondition, () => undefined))).toBeInstanceOf(ArgumentError);
          s.captureIf(condition, (body) => {
            expect(reasonOf(() => body.copy(x, far))).toBe('unsupported-node');
            expect(reasonOf(() => body.copy(far, x))).toBe('unsupported-node');
            expect(reasonOf(() => body.launch(both))).toBe('unsupported-node');
            expect(reasonOf(() => there.fill(far, 2))).toBe('isolation');
            expect(reasonOf(() => there.waitStream(body))).toBe('isolation');
            expect(reasonOf(() => body.fill(far, 2))).toBe('unsupported-node');
            body.launch(mixKernel, ONE, { x, k: 3 });
          });
          // The other device's stream is still in the capture, with conditions of its own.
          there.captureIf(farCondition, (body) => void body.launch(mixKernel, ONE, { x: far, k: 4 }));
        });
        await here.launch(graph).done;
        expect([(await x.read())[0], (await far.read())[0]]).toEqual([mixed(0, 3, 1), mixed(0, 4, 1)]);
        await Promise.all([graph.close(), both.close()]);
        await Promise.all([here.close(), there.close()]);
      },
    );

    rule('S1014', 'a node that fails on the other device fails the launch, and the next launch runs', async () => {
      const { device, other } = chapter;
      const [here, there] = [device.createStream(), other.createStream()];
      using x = other.full(4, 7, 'i32');
      using y = other.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = here.capture({ by: i32 }, (s, { by }) => {
        there.waitStream(here);
        there.fill(y, 0);
        there.launch(shiftKernel, 4, { x, y, by });
        s.copy(z, y);
      });
      const error = await rejectionOf(here.launch(graph, { by: 4 }).done);
      expect(error).toBeInstanceOf(BoundsError);
      // S1029: the kernel and its parameters are those of the node's device.
      expect(error.message).toContain(`Kernel shift in node 1 (launch shift) of graph ${graph.label}`);
      expect((error as BoundsError).array).toBe('x');
      for (const array of [y, z]) expect(await rejectionOf(array.read())).toBeInstanceOf(UpstreamError);
      await here.launch(graph, { by: 0 }).done;
      expect([...(await z.read())]).toEqual([7, 7, 7, 7]);
      expect([device.state, other.state]).toEqual(['open', 'open']);
      await graph.close();
      await Promise.all([here.close(), there.close()]);
    });
  });
});
