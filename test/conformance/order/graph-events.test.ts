// Chapter 10, twelfth part: events with timing in graphs.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  elapsed,
  EventTimingError,
  i32,
  StateError,
  type DeviceEvent,
  type Graph,
  type NodeTime,
  type Recorder,
  type ScalarSlot,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, orderOf, reasonOf, refusalOf, shiftKernel } from '../../support/graphs.js';
import { hold as latchOf } from '../../support/latch.js';
import { meetAndSpinKernel, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { collectGarbage, eventually, isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

/** The error of `elapsed`, which reports synchronous mistakes by its promise. */
const timingError = async (start: DeviceEvent, end: DeviceEvent): Promise<Error> => rejectionOf(elapsed(start, end));

defineChapter((target) => {
  describe('10 graphs: events with timing', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1025', 'elapsed tells the time of the latest launch that has finished', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await device.compile(meetAndSpinKernel);
      using flags = device.full(3, 1, 'i32');
      using out = device.zeros(2, 'u32');
      const events: DeviceEvent[] = [];
      const graph = stream.capture({ steps: i32 }, (s, { steps }) => {
        events.push(s.record({ timing: true }));
        s.launch(meetAndSpinKernel, ONE, { flags, mine: 0, turns: 1, steps, out });
        events.push(s.record({ timing: true }));
        s.launch(meetAndSpinKernel, ONE, { flags, mine: 0, turns: 1, steps: 1, out });
        events.push(s.record({ timing: true }));
      });
      const [start, middle, end] = events as [DeviceEvent, DeviceEvent, DeviceEvent];
      expect(graph.nodes.filter(({ kind }) => kind === 'record')).toHaveLength(3);
      const isBefore = orderOf(graph);
      expect(graph.nodes.slice(1).every((node, n) => isBefore(graph.nodes[n]!, node))).toBe(true);
      // Before the first launch, and with an event that has none.
      for (const [a, b] of [
        [start, end],
        [end, start],
        [start, start],
      ] as const) {
        const error = await timingError(a, b);
        expect(error).toBeInstanceOf(EventTimingError);
        expect((error as EventTimingError).reason).toBe('never-recorded');
      }
      stream.launch(graph, { steps: 40_000_000 });
      const long = await elapsed(start, middle);
      const total = await elapsed(start, end);
      const rest = await elapsed(middle, end);
      expect(long).toBeGreaterThan(1);
      expect(rest).toBeGreaterThanOrEqual(0);
      expect(long + rest).toBeCloseTo(total, 1);
      expect(await elapsed(end, start)).toBeCloseTo(-total, 3);
      expect(await elapsed(end, end)).toBe(0);
      for (let n = 0; n < 5; n++) stream.launch(graph, { steps: 1 });
      const short = await elapsed(start, middle);
      expect(short).toBeGreaterThanOrEqual(0);
      expect(short).toBeLessThan(long);
      // An ordinary event and one of the graph.
      using after = stream.record({ timing: true });
      expect(await elapsed(end, after)).toBeGreaterThanOrEqual(0);
      expect(await elapsed(after, start)).toBeLessThanOrEqual(0);
      await graph.close();
      // The times stay.
      expect(await elapsed(start, middle)).toBe(short);
      for (const event of events) event[Symbol.dispose]();
      await stream.close();
    });

    rule('S1025', 'elapsed waits for the launches before it, and not for later ones', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const events: DeviceEvent[] = [];
      const graph = stream.capture((s) => {
        events.push(s.record({ timing: true }));
        s.launch(mixKernel, ONE, { x, k: 1 });
        events.push(s.record({ timing: true }));
      });
      const [start, end] = events as [DeviceEvent, DeviceEvent];
      {
        await using latch = await latchOf(target, stream);
        stream.launch(graph);
        const waiting = elapsed(start, end);
        expect(await isSettled(waiting)).toBe(false);
        expect(await rejectionOf(elapsed(start, end, { timeoutMs: 20 }))).toMatchObject({ timeoutMs: 20 });
        latch.open();
        expect(await waiting).toBeGreaterThanOrEqual(0);
      }
      // The launch that is held does not take the times of the finished one away.
      const finished = await elapsed(start, end);
      await using latch = await latchOf(target, stream);
      const measured = elapsed(start, end);
      stream.launch(graph);
      expect(await measured).toBe(finished);
      latch.open();
      await stream.synchronize();
      await graph.close();
      await stream.close();
    });

    rule('S1025', 'a branch has its own times, a wait for the event orders nodes, and each record of one event counts', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      using y = device.zeros(1, 'u32');
      using event = device.createEvent({ timing: true });
      const graph = stream.capture((s) => {
        s.record(event);
        fork.waitEvent(event);
        fork.launch(mixKernel, ONE, { x, k: 1 });
        s.launch(mixKernel, ONE, { x: y, k: 1 });
        fork.record(event);
        s.waitEvent(event);
        s.launch(mixKernel, ONE, { x, k: 2 });
      });
      expect(graph.nodes.map(({ kind }) => kind)).toEqual(['record', 'launch', 'launch', 'record', 'launch']);
      const isBefore = orderOf(graph);
      const [first, left, right, second, last] = graph.nodes;
      expect([isBefore(first!, left!), isBefore(left!, second!), isBefore(second!, last!), isBefore(right!, second!)]).toEqual([
        true,
        true,
        true,
        false,
      ]);
      await stream.launch(graph).done;
      expect(await elapsed(event, event)).toBe(0);
      expect(reasonOf(() => event.isComplete)).toBe('query');
      // Recorded outside of the capture, it is an ordinary event again.
      stream.record(event);
      await event.done;
      await stream.launch(graph).done;
      expect(await elapsed(event, event)).toBe(0);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1025', 'a launch records its events again that a stream or another graph recorded meanwhile', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      using event = device.createEvent({ timing: true });
      const body = (s: Recorder): void => {
        s.launch(mixKernel, ONE, { x, k: 1 });
        s.record(event);
        s.launch(mixKernel, ONE, { x, k: 2 });
      };
      const [one, two] = [stream.capture(body), other.capture((s) => (body(s), s.record(event)))];
      const outer = stream.capture((s) => s.launch(one));
      const refused = (): void => one.update((s) => void s.record(event));
      const steps: readonly (readonly [string, () => unknown])[] = [
        ['a graph', () => stream.launch(one)],
        ['a stream', () => stream.record(event)],
        ['the graph again', () => stream.launch(one)],
        ['another graph', () => stream.launch(two)],
        ['an embedding graph, on another stream', () => other.launch(outer)],
        ['another graph again', () => stream.launch(two)],
        ['another stream', () => other.record(event)],
        ['the graph after a refused update', () => (expect(reasonOf(refused)).toBe('topology'), stream.launch(one))],
        ['a stream after all', () => stream.record(event)],
      ];
      let before: DeviceEvent | undefined;
      for (const [what, record] of steps) {
        // A record that is older than `before` precedes it by the time of this kernel.
        stream.launch(mixKernel, 1000, { x, k: 1 });
        before?.[Symbol.dispose]();
        before = stream.record({ timing: true });
        other.waitEvent(before);
        record();
        stream.waitStream(other);
        other.waitStream(stream);
        expect(await elapsed(before, event), what).toBeGreaterThanOrEqual(0);
      }
      stream.launch(one);
      expect(reasonOf(() => event.isComplete)).toBe('query');
      stream.record(event);
      await event.done;
      event[Symbol.dispose]();
      await stream.launch(one).done;
      await Promise.all([one.close(), two.close(), outer.close()]);
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1025', 'launches on several streams, updates and embedded graphs record, also after the events were disposed', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(1, 'u32');
      const body = (into: DeviceEvent[]) => (s: Recorder) => {
        into.push(s.record({ timing: true }));
        s.launch(mixKernel, ONE, { x, k: 1 });
        into.push(s.record({ timing: true }));
      };
      const [first, second, outermost]: [DeviceEvent[], DeviceEvent[], DeviceEvent[]] = [[], [], []];
      const graph = stream.capture(body(first));
      for (let n = 0; n < 100; n++) [stream, other][n % 2]!.launch(graph);
      expect(await elapsed(first[0]!, first[1]!)).toBeGreaterThanOrEqual(0);
      graph.update(body(second));
      const before = await elapsed(first[0]!, first[1]!);
      expect((await timingError(second[0]!, second[1]!)) as EventTimingError).toMatchObject({ reason: 'never-recorded' });
      stream.launch(graph);
      expect(await elapsed(second[0]!, second[1]!)).toBeGreaterThanOrEqual(0);
      // The former nodes did not run again.
      expect(await elapsed(first[0]!, first[1]!)).toBe(before);
      const outer = stream.capture((s) => {
        outermost.push(s.record({ timing: true }));
        s.launch(graph);
        outermost.push(s.record({ timing: true }));
      });
      await graph.close();
      other.launch(outer);
      const [whole, inner] = [await elapsed(outermost[0]!, outermost[1]!), await elapsed(second[0]!, second[1]!)];
      expect(inner).toBeLessThanOrEqual(whole);
      for (const event of [...first, ...second, ...outermost]) event[Symbol.dispose]();
      await other.launch(outer).done;
      expect(await rejectionOf((async () => elapsed(second[0]!, second[1]!))())).toBeInstanceOf(StateError);
      await outer.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1025', 'events that nobody keeps are collected, and their graph goes on', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const make = (): Graph =>
        stream.capture((s) => {
          for (let n = 0; n < 50; n++) s.record({ timing: true });
          s.launch(mixKernel, ONE, { x, k: 1 });
        });
      const graphs = [make(), make()];
      for (let n = 0; n < 20; n++) for (const graph of graphs) stream.launch(graph);
      collectGarbage();
      await eventually('a turn of the event loop has passed', () => true);
      for (let n = 0; n < 20; n++) for (const graph of graphs) stream.launch(graph);
      await stream.synchronize();
      await Promise.all(graphs.map((graph) => graph.close()));
      await stream.close();
    });

    rule('S1025', 'a launch that fails leaves elapsed with a time or a StateError, and the next one gives a time', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      const events: DeviceEvent[] = [];
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        events.push(s.record({ timing: true }));
        s.launch(shiftKernel, 4, { x, y, by });
        events.push(s.record({ timing: true }));
      });
      expect(await rejectionOf(stream.launch(graph, { by: 4 }).done)).toBeInstanceOf(BoundsError);
      const [result] = await Promise.allSettled([elapsed(events[0]!, events[1]!)]);
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(StateError);
      await stream.launch(graph, { by: 0 }).done;
      expect(await elapsed(events[0]!, events[1]!)).toBeGreaterThanOrEqual(0);
      await graph.close();
      await stream.close();
    });

    rule('S1032', 'with timing, nodeTimes tells when each node of the latest launch ran', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      await device.compile(meetAndSpinKernel);
      using flags = device.full(3, 1, 'i32');
      using out = device.zeros(2, 'u32');
      using x = device.zeros(1, 'u32');
      const spin = (s: Recorder, steps: ScalarSlot<'i32'> | number, label: string): unknown =>
        s.launch(meetAndSpinKernel, { ...ONE, label }, { flags, mine: 0, turns: 1, steps, out });
      const graph = stream.capture(
        { steps: i32 },
        (s, { steps }) => {
          spin(s, steps, 'long');
          fork.waitStream(stream);
          fork.launch(mixKernel, { ...ONE, label: 'beside' }, { x, k: 1 });
          spin(s, 1, 'short');
          s.record({ timing: true });
        },
        { timing: true },
      );
      // The measurement shows nowhere else.
      expect(graph.nodes.map(({ kind }) => kind)).toEqual(['launch', 'launch', 'launch', 'record']);
      const early = await rejectionOf(graph.nodeTimes());
      expect(early).toBeInstanceOf(EventTimingError);
      expect((early as EventTimingError).reason).toBe('never-recorded');
      stream.launch(graph, { steps: 40_000_000 });
      const times = await graph.nodeTimes();
      expect(times.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
      const [long, beside, short, record] = times as [NodeTime, NodeTime, NodeTime, NodeTime];
      expect(long.startUs).toBe(0);
      expect(long.durationUs).toBeGreaterThan(1000);
      // What comes after the long node starts when that has ended.
      for (const { startUs, durationUs } of [beside, short]) {
        expect(startUs).toBeCloseTo(long.durationUs, 3);
        expect(durationUs).toBeGreaterThanOrEqual(0);
      }
      expect(record.startUs).toBeLessThanOrEqual(short.startUs + short.durationUs + 0.01);
      for (let n = 0; n < 5; n++) stream.launch(graph, { steps: 1 });
      expect((await graph.nodeTimes({ timeoutMs: 20_000 }))[0]!.durationUs).toBeLessThan(long.durationUs);
      graph.update((s, { steps }) => {
        spin(s, steps, 'long');
        fork.waitStream(stream);
        fork.launch(mixKernel, { ...ONE, label: 'beside' }, { x, k: 1 });
        spin(s, 2, 'short');
        s.record({ timing: true });
      });
      expect(await rejectionOf(graph.nodeTimes())).toMatchObject({ reason: 'never-recorded' });
      stream.launch(graph, { steps: 1 });
      expect(await graph.nodeTimes()).toHaveLength(4);
      const plain = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
      stream.launch(plain);
      expect(await rejectionOf(plain.nodeTimes())).toMatchObject({ reason: 'timing-off' });
      expect(await rejectionOf(plain.nodeTimes({ timeoutMs: 'soon' as never }))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => stream.capture((s) => void s.fill(x, 1), { timing: 1 as never }))).toBeInstanceOf(ArgumentError);
      await Promise.all([graph.close(), plain.close()]);
      expect(await rejectionOf(graph.nodeTimes())).toBeInstanceOf(StateError);
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1032', 'a failure of a timed graph names its node, and an embedded one brings its nodes and not their times', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      const graph = stream.capture(
        { by: i32 },
        (s, { by }) => {
          s.fill(y, 0);
          s.launch(shiftKernel, 4, { x, y, by });
        },
        { timing: true },
      );
      const failed = await rejectionOf(stream.launch(graph, { by: 4 }).done);
      expect(failed).toBeInstanceOf(BoundsError);
      expect(failed.message).toContain('shift');
      const [result] = await Promise.allSettled([graph.nodeTimes()]);
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(StateError);
      for (let n = 0; n < 100; n++) stream.launch(graph, { by: 0 });
      expect(await graph.nodeTimes()).toHaveLength(2);
      const outer = stream.capture((s) => void s.launch(graph, { by: 0 }));
      expect(outer.nodes.map(({ kind }) => kind)).toEqual(['fill', 'launch', 'empty']);
      await stream.launch(outer).done;
      expect(await rejectionOf(outer.nodeTimes())).toMatchObject({ reason: 'timing-off' });
      await Promise.all([graph.close(), outer.close()]);
      await stream.close();
    });

    rule('S1025', 'events for other processes stay out of graphs', async (context) => {
      if (!target.supports.interprocess) context.skip('The device has no events for other processes.');
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      using event = device.createEvent({ interprocess: true });
      const graph = stream.capture((s) => {
        expect(refusalOf(() => s.record(event)).reason).toBe('unsupported-node');
        s.launch(mixKernel, ONE, { x, k: 1 });
      });
      expect(graph.nodes).toHaveLength(1);
      await graph.close();
      await stream.close();
    });
  });
});
