// Chapter 10, twelfth part: what launches of graphs refuse, and what the errors of graphs name.
import { describe, expect } from 'vitest';
import { ArgumentError, BoundsError, i32, inout, input, output, u32, UpstreamError, type MillraceError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, refusalOf, shiftKernel } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: messages', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1029', 'a third argument of a launch is an ArgumentError that names the graph, and nothing runs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const graph = stream.capture({ k: u32 }, (s, { k }) => void s.launch(mixKernel, ONE, { x, k }), { label: 'step' });
      for (const call of [
        () => stream.launch(graph as never, { k: 1 } as never, { label: 'again' } as never),
        () => stream.launch(graph as never, { k: 1 } as never, null as never),
        () => (graph.launch as (...values: readonly unknown[]) => unknown).call(graph, { k: 1 }, 64),
      ]) {
        const error = thrownBy(call);
        expect(error).toBeInstanceOf(ArgumentError);
        expect((error as ArgumentError).argument).toBe('args');
        expect(error.message).toContain('graph step');
      }
      await stream.launch(graph, { k: 3 }).done;
      expect((await x.read())[0]).toBe(mixed(0, 3, 1));
      await graph.close();
      await stream.close();
    });

    rule('S1029', 'a slot is refused where a kernel does with its array what the parameter does not declare', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const errors: Error[] = [];
      const graph = stream.capture({ a: input(i32), b: output(i32), c: inout(i32), by: i32 }, (s, { a, b, c, by }) => {
        errors.push(thrownBy(() => s.launch(shiftKernel, 4, { x: c, y: a as never, by })));
        errors.push(thrownBy(() => s.launch(shiftKernel, 4, { x: b as never, y: c, by })));
        s.launch(shiftKernel, 4, { x: a, y: b, by });
        s.launch(shiftKernel, 4, { x: a, y: c, by });
      });
      expect(graph.nodes.length).toBe(2);
      for (const error of errors) expect(error).toBeInstanceOf(ArgumentError);
      expect(errors.map(({ message }) => message)).toEqual([
        'Argument y of kernel shift is slot a, declared by input; the kernel writes it.',
        'Argument x of kernel shift is slot b, declared by output; the kernel reads it.',
      ]);
      await graph.close();
      await stream.close();
    });

    rule('S1029', 'the error of a node names the node and the graph, wherever it arrives', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream({ label: 'lane' }), device.createStream()];
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const capture = (label: string) =>
        stream.capture(
          { by: i32 },
          (s, { by }) => {
            s.fill(z, 0);
            s.launch(shiftKernel, { threads: 4, label: 'moves' }, { x, y, by });
          },
          { label },
        );
      const [graph, second] = [capture('step'), capture('other step')];
      const of = (label: string): string =>
        `Kernel shift in node 1 (launch moves) of graph ${label} on stream lane of device ${device.info.id} `;
      for (const [launched, label] of [
        [graph, 'step'],
        [second, 'other step'],
        [graph, 'step'],
      ] as const) {
        const error = await rejectionOf(stream.launch(launched, { by: 4 }).done);
        expect(error).toBeInstanceOf(BoundsError);
        expect(error.message).toContain(of(label));
        const upstream = await rejectionOf(other.copy(z, y).done);
        expect(upstream).toBeInstanceOf(UpstreamError);
        expect((upstream as UpstreamError).cause.message).toBe(error.message);
      }
      // What nobody awaits, of many launches of many graphs.
      const seen: MillraceError[] = [];
      const subscription = device.errors$.subscribe((error) => void seen.push(error));
      for (let n = 0; n < 200; n++) stream.launch(n % 2 === 0 ? graph : second, { by: n === 150 ? 4 : 0 });
      await Promise.all([graph.close(), second.close()]);
      await eventually('the failure was told', () => seen.length > 0);
      subscription.unsubscribe();
      expect(seen.map(({ message }) => message)).toEqual([expect.stringContaining(of('step'))]);
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1029', 'what a capture refuses, and an update with other nodes, name the graph', async () => {
      const { device } = chapter;
      const stream = device.createStream({ label: 'captured' });
      using x = device.zeros(1, 'u32');
      const messages: string[] = [];
      const graph = stream.capture(
        (s) => {
          messages.push(refusalOf(() => x.read()).message);
          messages.push(refusalOf(() => stream.isComplete).message);
          messages.push(refusalOf(() => stream.capture(() => undefined)).message);
          messages.push(refusalOf(() => s.hold(() => undefined, { timeoutMs: 1 })).message);
          s.launch(mixKernel, ONE, { x, k: 1 });
        },
        { label: 'step' },
      );
      for (const message of messages) expect(message).toContain('raph step');
      const topology = refusalOf(() => graph.update((s) => void s.fill(x, 1)));
      expect(topology.message).toContain('graph step');
      expect(topology.message).toContain('node 0 (fill) is a fill instead of a launch');
      await graph.close();
      using condition = device.zeros(1, 'i32');
      const branch = stream.capture((s) => void s.captureIf(condition, (body) => void body.fill(x, 1)));
      const loop = refusalOf(() => branch.update((s) => void s.captureWhile(condition, (body) => void body.fill(condition, 0))));
      expect(loop.message).toContain('node 0 (while) is a while instead of an if');
      await branch.close();
      expect(thrownBy(() => stream.launch(graph)).message).toContain('Graph step');
      await stream.close();
    });

    rule('S1029', 'launch of a graph with a stream, and record with two arguments, say how the call is written', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }), { label: 'step' });
      const event = device.createEvent();
      const calls: readonly (readonly [() => unknown, RegExp])[] = [
        [() => graph.launch(...([stream] as unknown as [])), /graph step .*stream\.launch\(graph\)/],
        [() => stream.launch(graph, ...([device.stream] as unknown as [])), /graph step .*stream\.launch\(graph\)/],
        [() => (stream.record as (...given: unknown[]) => unknown).call(stream, event, { external: true }), /second argument/],
        [() => stream.record({ external: true } as never), /no option 'external'/],
        [() => stream.copy(x, x, { lable: 'typo' } as never), /no option 'lable'/],
        [() => stream.run(() => undefined, { sync: true } as never), /no option 'sync'/],
      ];
      for (const [call, message] of calls) {
        const error = thrownBy(call);
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(message);
      }
      const token = x.share();
      stream.capture((s) => {
        s.fill(x, 1);
        expect(refusalOf(() => device.adopt(token)).message).toContain('a graph cannot contain the adoption of an array');
      });
      await graph.close();
      await stream.close();
    });
  });
});
