// Chapter 10, second part: the streams of a capture, and the order of what they get.
import { EventEmitter, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { Operation, Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { nodeOf, ONE, orderOf, reasonOf, usedBytes, workOf } from '../../support/graphs.js';
import { hold, turnsOf } from '../../support/latch.js';
import { latchKernel, mixed, mixKernel, rendezvousKernel } from '../../support/kernels.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

defineChapter((target) => {
  describe('10 graphs: streams of a capture', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1002', 'a stream joins by waitStream or by an event, and through a stream that joined; each leaves at the end', async () => {
      const { device } = chapter;
      const make = (): Stream => device.createStream({ ordering: 'explicit' });
      const [stream, byWait, byEvent, further] = [make(), make(), make(), make()];
      using x = device.zeros(4, 'u32');
      await device.synchronize();
      const graph = stream.capture((s) => {
        s.fill(x.subarray(0, 1), 1);
        byWait.waitStream(stream);
        byEvent.waitEvent(s.record());
        byWait.fill(x.subarray(1, 2), 2);
        further.waitEvent(byWait.record());
        byEvent.fill(x.subarray(2, 3), 3);
        further.fill(x.subarray(3, 4), 4);
        for (const joined of [byWait, byEvent, further]) s.waitStream(joined);
      });
      expect(workOf(graph).map((node) => node.stream)).toEqual([stream, byWait, byEvent, further].map(({ label }) => label));
      await device.synchronize();
      expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
      // They have left: what they get now runs at once, and so does what waits for them.
      for (const left of [byWait, byEvent, further]) await left.fill(x, 9).done;
      stream.waitStream(further);
      expect([byWait.isComplete, byEvent.isComplete, further.isComplete]).toEqual([true, true, true]);
      await stream.launch(graph).done;
      expect([...(await x.read())]).toEqual([1, 2, 3, 4]);
      await graph.close();
      await Promise.all([stream, byWait, byEvent, further].map((one) => one.close()));
    });

    rule('S1002', 'a run inside the capture joins its stream, and joins back with syncExit', async () => {
      const { device } = chapter;
      const [stream, inner] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      const graph = stream.capture(
        (s) => {
          s.launch(mixKernel, ONE, { x, k: 1 });
          inner.run(() => device.stream.launch(mixKernel, ONE, { x, k: 2 }), { syncExit: true });
          s.launch(mixKernel, ONE, { x, k: 3 });
        },
        { strict: true },
      );
      expect(workOf(graph).map((node) => node.stream)).toEqual([stream.label, inner.label, stream.label]);
      expect((await x.read())[0]).toBe(0);
      stream.launch(graph);
      expect((await x.read())[0]).toBe(mixed(0, 1, 3));
      await graph.close();
      await Promise.all([stream.close(), inner.close()]);
    });

    rule('S1002', 'a stream that does not join runs its operations at once, also on arrays of the capture', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      let outside: Operation | undefined;
      const graph = stream.capture((s) => {
        s.fill(x, 1);
        outside = other.fill(x, 2);
        s.fill(x.subarray(0, 2), 3);
      });
      await outside!.done;
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      expect(workOf(graph)).toHaveLength(2);
      stream.launch(graph);
      expect([...(await x.read())]).toEqual([3, 3, 1, 1]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1002', 'a joining stream that has work pending keeps it, and the graph does not contain it', async () => {
      const { device } = chapter;
      const [stream, busy] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      await device.synchronize();
      await using latch = await hold(target, busy);
      const pending = busy.fill(x, 5);
      const graph = stream.capture((s) => {
        busy.waitStream(stream);
        busy.fill(x, 6);
        s.waitStream(busy);
      });
      const later = busy.fill(x, 7);
      expect(workOf(graph)).toHaveLength(1);
      expect([pending.isComplete, later.isComplete]).toEqual([false, false]);
      latch.open();
      expect([...(await x.read())]).toEqual([7, 7, 7, 7]);
      stream.launch(graph);
      expect([...(await x.read())]).toEqual([6, 6, 6, 6]);
      await graph.close();
      await Promise.all([stream.close(), busy.close()]);
    });

    rule('S1003', 'waits order the nodes of explicit streams, in every launch', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 4 }, () => device.createStream({ ordering: 'explicit' }));
      const [stream] = streams;
      using x = device.zeros(1, 'u32');
      await device.synchronize();
      const graph = stream!.capture(() => {
        let previous = stream!;
        for (let k = 0; k < 40; k++) {
          const next = streams[k % 4]!;
          if (k % 2 === 0) next.waitStream(previous);
          else next.waitEvent(previous.record());
          next.launch(mixKernel, ONE, { x, k });
          previous = next;
        }
      });
      for (let n = 0; n < 20; n++) stream!.launch(graph);
      await stream!.synchronize();
      let expected = 0;
      for (let n = 0; n < 20; n++) expected = mixed(expected, 0, 40);
      expect((await x.read())[0]).toBe(expected);
      await graph.close();
      await Promise.all(streams.map((one) => one.close()));
    });

    rule('S1003', 'tracked arrays order the nodes of tracked streams that do not wait for each other', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 3 }, () => device.createStream());
      const [stream, ...others] = streams;
      using x = device.zeros(1, 'u32');
      const graph = stream!.capture(() => {
        for (const other of others) other.waitStream(stream!);
        for (let k = 0; k < 30; k++) streams[(k * 2) % 3]!.launch(mixKernel, ONE, { x, k });
      });
      for (let n = 0; n < 20; n++) stream!.launch(graph);
      let expected = 0;
      for (let n = 0; n < 20; n++) expected = mixed(expected, 0, 30);
      expect((await x.read())[0]).toBe(expected);
      await graph.close();
      await Promise.all(streams.map((one) => one.close()));
    });

    rule('S1003', 'branches run at the same time: their kernels wait for each other', async () => {
      const { device } = chapter;
      await device.compile(rendezvousKernel);
      const [stream, fork] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      using flags = device.zeros(3, 'i32');
      await device.synchronize();
      const turns = turnsOf(target);
      const graph = stream.capture((s) => {
        s.fill(flags, 0);
        fork.waitStream(stream);
        s.launch(rendezvousKernel, ONE, { flags, mine: 0, turns });
        fork.launch(rendezvousKernel, ONE, { flags, mine: 1, turns });
        s.waitStream(fork);
      });
      for (let n = 0; n < 3; n++) {
        await stream.launch(graph).done;
        expect([...(await flags.read())]).toEqual([1, 1, 0]);
      }
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1003', 'operations outside of the capture, before it or in between, give a graph no edges', async () => {
      const { device } = chapter;
      const [stream, fork, outside] = [device.createStream(), device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      fork.fill(x, 1);
      stream.fill(y, 1);
      const graph = stream.capture((s) => {
        fork.waitStream(stream);
        s.copy(y, x, { label: 'reads x' });
        outside.fill(x, 2);
        outside.copy(z, y);
        fork.copy(z, x, { label: 'reads x, too' });
      });
      const isBefore = orderOf(graph);
      const [one, two] = [nodeOf(graph, 'reads x'), nodeOf(graph, 'reads x, too')];
      expect([isBefore(one, two), isBefore(two, one)]).toEqual([false, false]);
      await graph.close();
      await Promise.all([stream.close(), fork.close(), outside.close()]);
    });

    rule('S920', 'an observer that begins in a captured function is told of what the stream itself runs', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      const seen: Record<string, string[]> = { operations: [], activity: [], device: [], iterator: [], fork: [] };
      const gate = new EventEmitter();
      stream.hold(() => once(gate, 'open'), { timeoutMs: 20_000 });
      const { done } = stream.launch(mixKernel, ONE, { x, k: 1 });
      const iterating: Promise<void>[] = [];
      const graph = stream.capture((s) => {
        s.launch(mixKernel, ONE, { x, k: 1 });
        stream.operations$.subscribe(({ kind }) => seen['operations']!.push(kind));
        stream.activity$.subscribe(({ phase, operation }) => seen['activity']!.push(`${phase} ${operation.kind}`));
        device.operations$.subscribe((operation) => {
          if (operation.stream === stream.label) seen['device']!.push(operation.kind);
        });
        const iterate = async (): Promise<void> => {
          for await (const { kind } of stream) seen['iterator']!.push(kind);
        };
        iterating.push(iterate());
        fork.waitStream(stream);
        fork.operations$.subscribe(({ kind }) => seen['fork']!.push(kind));
        fork.launch(mixKernel, ONE, { x, k: 1 });
      });
      stream.launch(graph);
      while (gate.listenerCount('open') === 0) await setImmediate();
      gate.emit('open');
      await done;
      await fork.launch(graph).done;
      await Promise.all([stream.close(), fork.close()]);
      await Promise.all(iterating);
      const expected = ['host', 'launch', 'graph'];
      expect(seen).toMatchObject({ operations: expected, device: expected, iterator: expected, fork: ['graph'] });
      expect(seen['activity']).toEqual(['submitted graph', 'finished host', 'finished launch', 'finished graph']);
      await graph.close();
    });

    rule('S1004', 'a launch is complete only when the nodes of streams are that nothing waits for', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 3 }, () => device.createStream({ ordering: 'explicit' }));
      const [stream, fork, control] = streams;
      await device.compile(latchKernel);
      using flag = device.zeros(1, 'i32');
      using expired = device.zeros(2, 'i32');
      using x = device.zeros(1, 'i32');
      await device.synchronize();
      const graph = stream!.capture((s) => {
        s.fill(expired, 0);
        fork!.waitStream(stream!);
        fork!.launch(latchKernel, ONE, { flag, expired, turns: turnsOf(target) });
        s.fill(x, 1);
      });
      const launched = stream!.launch(graph);
      const after = stream!.record();
      await witness(stream!);
      expect([launched.isComplete, after.isComplete]).toEqual([false, false]);
      control!.fill(flag, 1);
      await launched.done;
      await after.done;
      expect([(await x.read())[0], (await expired.read())[0]]).toEqual([1, 0]);
      await graph.close();
      await Promise.all(streams.map((one) => one.close()));
    });

    rule('S1004', 'with strict, an unjoined stream is an error, and every stream is usable afterwards', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      const before = await usedBytes(device);
      const forked = (): void => {
        fork.waitStream(stream);
        fork.fill(x, 8);
      };
      expect(reasonOf(() => stream.capture(forked, { strict: true }))).toBe('unjoined');
      expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
      await stream.fill(x, 1).done;
      await fork.fill(x, 2).done;
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      expect(await usedBytes(device)).toBe(before);
      const graph = stream.capture(forked, { strict: false });
      await stream.launch(graph).done;
      expect([...(await x.read())]).toEqual([8, 8, 8, 8]);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1004', 'with strict, a stream is joined when the first one waits for its last node, through others as well', async () => {
      const { device } = chapter;
      const [stream, fork, further] = [device.createStream(), device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      const joined = stream.capture(
        (s) => {
          fork.waitStream(stream);
          further.waitStream(fork);
          further.fill(x, 1);
          fork.waitEvent(further.record());
          s.waitStream(fork);
        },
        { strict: true },
      );
      // A stream that joined and got nothing leaves no node behind.
      const unused = stream.capture(
        (s) => {
          fork.waitStream(stream);
          s.fill(x, 2);
        },
        { strict: true },
      );
      const late = (): void => {
        fork.waitStream(stream);
        fork.fill(x.subarray(0, 2), 3);
        stream.waitStream(fork);
        fork.fill(x.subarray(2), 3);
      };
      expect(reasonOf(() => stream.capture(late, { strict: true }))).toBe('unjoined');
      stream.launch(joined);
      stream.launch(unused);
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      await Promise.all([joined.close(), unused.close()]);
      await Promise.all([stream.close(), fork.close(), further.close()]);
    });
  });
});
