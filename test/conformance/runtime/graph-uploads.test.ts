// Chapter 10, eleventh part: graphs that are built and brought to the device before their first launch.
import { EventEmitter, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { ArgumentError, CompileError, cudaKernel, i32, inout, StateError, u32, type CaptureError, type Operation } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, refusalOf, shiftKernel } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: uploads', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1028', 'an upload is one operation of its stream, and runs nothing', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream({ label: 'other' })];
      using x = device.zeros(1, 'u32');
      const graph = stream.capture({ k: u32 }, (s, { k }) => void s.launch(mixKernel, ONE, { x, k }), { label: 'mixing' });
      const seen: Operation[] = [];
      const subscription = other.operations$.subscribe((operation) => void seen.push(operation));
      const uploaded = graph.upload(other);
      expect([uploaded.kind, uploaded.stream, uploaded.label]).toEqual(['upload-graph', 'other', 'mixing']);
      await uploaded.done;
      await eventually('the upload was emitted', () => seen.length > 0);
      expect(seen.map(({ id, kind }) => [id, kind])).toEqual([[uploaded.id, 'upload-graph']]);
      subscription.unsubscribe();
      expect((await x.read())[0]).toBe(0);
      stream.launch(graph, { k: 3 });
      await graph.upload().done;
      other.launch(graph, { k: 4 });
      expect((await x.read())[0]).toBe(mixed(0, 3, 2));
      expect(stream.run(() => graph.upload().stream)).toBe(stream.label);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1028', 'launches on other streams come after an upload in every ordering, and close waits for it', async () => {
      const { device } = chapter;
      for (const ordering of ['tracked', 'checked', 'explicit'] as const) {
        const [stream, other] = [device.createStream({ ordering }), device.createStream({ ordering })];
        using x = stream.zeros(1, 'u32');
        await stream.synchronize();
        const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
        let release: (() => void) | undefined;
        stream.hold(() => new Promise<void>((resolve) => (release = resolve)), { timeoutMs: 30_000 });
        const uploaded = graph.upload(stream);
        const launched = other.launch(graph);
        const closing = graph.close();
        expect([uploaded.isComplete, launched.isComplete]).toEqual([false, false]);
        await eventually('the hold began', () => release !== undefined);
        release?.();
        await Promise.all([uploaded.done, launched.done, closing]);
        expect((await x.read())[0]).toBe(mixed(0, 1, 1));
        await Promise.all([stream.close(), other.close()]);
      }
    });

    rule('S1028', 'a kernel that cannot be built rejects the upload, and nothing is poisoned', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      const broken = cudaKernel('broken_node', { x: inout(i32) }, 'extern "C" __global__ void broken_node(int* x) { x[0] = nowhere; }');
      const graph = stream.capture((s) => void s.launch(broken, 1, { x }));
      for (let n = 0; n < 2; n++) {
        const error = await rejectionOf(graph.upload(stream).done);
        expect(error).toBeInstanceOf(CompileError);
        expect([...(await x.read())]).toEqual([7, 7, 7, 7]);
      }
      expect(await rejectionOf(stream.launch(graph).done)).toBeInstanceOf(CompileError);
      await graph.close();
      await stream.close();
    });

    rule('S1028', 'the reports of checked kernels are those of each launch after an upload', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      const graph = stream.capture({ by: i32 }, (s, { by }) => void s.launch(shiftKernel, 4, { x, y, by }));
      await graph.upload(stream).done;
      expect((await rejectionOf(device.stream.launch(graph, { by: 4 }).done)).message).toContain('shift');
      await stream.launch(graph, { by: 0 }).done;
      expect([...(await y.read())]).toEqual([7, 7, 7, 7]);
      await graph.close();
      await stream.close();
    });

    rule('S1028', 'a captured stream, a closed graph and what is no stream are refused', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream({ label: 'captured' }), device.createStream()];
      using x = device.zeros(1, 'u32');
      const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }), { label: 'step' });
      let refused: CaptureError | undefined;
      let free: Operation | undefined;
      const outer = stream.capture((s) => {
        refused = refusalOf(() => graph.upload(s));
        expect(refusalOf(() => graph.upload()).reason).toBe('unsupported-node');
        free = graph.upload(other);
        s.launch(graph);
      });
      expect([refused?.reason, refused?.message]).toEqual([
        'unsupported-node',
        `Stream captured of device ${device.info.id} is being captured for graph captured: it cannot upload graph step.`,
      ]);
      await free?.done;
      for (const bad of [null, 7, {}, device, graph]) {
        const error = thrownBy(() => graph.upload(bad as never));
        expect(error).toBeInstanceOf(ArgumentError);
        expect((error as ArgumentError).argument).toBe('stream');
      }
      await graph.close();
      expect(thrownBy(() => graph.upload(stream))).toBeInstanceOf(StateError);
      await stream.launch(outer).done;
      expect((await x.read())[0]).toBe(mixed(0, 1, 1));
      await outer.close();
      await stream.close();
      expect(thrownBy(() => graph.upload(stream))).toBeInstanceOf(StateError);
      await other.close();
    });

    rule(
      'S1028',
      'an upload keeps the memory of the graph, also if the graph is closed and its arrays are disposed before it begins',
      async () => {
        const { device } = chapter;
        const [stream, late] = [device.createStream(), device.createStream()];
        for (const isClosedFirst of [false, true]) {
          const [x, y, pinned] = [stream.zeros(4, 'u32'), device.zeros(4, 'u32'), device.pinned(4, 'u32')];
          const graph = stream.capture((s) => {
            using between = s.empty(4, 'u32');
            s.copy(between, x);
            s.copy(y, between);
            s.copy(pinned, y);
          });
          const gate = new EventEmitter();
          late.hold(() => once(gate, 'open'), { timeoutMs: 20_000 });
          const { done } = graph.upload(late);
          if (isClosedFirst) void graph.close();
          for (const array of [x, y, pinned]) array[Symbol.dispose]();
          if (!isClosedFirst) void graph.close();
          await Promise.all([stream.synchronize(), device.stream.synchronize()]);
          while (gate.listenerCount('open') === 0) await setImmediate();
          gate.emit('open');
          await done;
        }
        await Promise.all([stream.close(), late.close()]);
      },
    );
  });
});
