// Chapter 5, last part: foreign work in graphs.
import { describe, expect } from 'vitest';
import { CaptureError, UnsupportedError, UpstreamError, type DeviceArray, type Graph, type RawStream, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { type Foreign, foreignOf } from '../../support/foreign.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { rejectionOf, thrownBy, turn } from '../../support/wait.js';

defineChapter((target) => {
  describe('5 waiting: foreign work in graphs', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    let known: Foreign | undefined;
    const foreign = (): Foreign => (known ??= foreignOf(chapter.device));
    const isApart = target.name.includes('isolated');
    const isOnGpu = target.spec.startsWith('cuda') && !isApart;
    const unless = isOnGpu ? false : 'the function would do its work itself on this device, or has no address of it';
    type I32 = DeviceArray<'i32'>;
    const copy = (x: I32, y: I32) => (raw: RawStream<'x' | 'y'>) =>
      foreign().copy(raw, raw.pointers.y, raw.pointers.x, Math.min(x.byteLength, y.byteLength));

    rule('S529', 'a device that calls functions on the host cannot record what they do', async () => {
      const { device } = chapter;
      if (isOnGpu) return;
      const stream = device.createStream();
      using x = stream.zeros(4, 'i32');
      let calls = 0;
      const graph = stream.capture((captured) => {
        captured.fill(x, 1);
        const refused = thrownBy(() => captured.external({ writes: { x } }, () => calls++));
        expect(refused).toBeInstanceOf(isApart ? UnsupportedError : CaptureError);
        if (!isApart)
          expect(refused).toMatchObject({ reason: 'unsupported-node', message: expect.stringContaining('before or after a launch') });
      });
      await stream.launch(graph).done;
      expect([calls, (await x.read())[0]]).toEqual([0, 1]);
      await stream.close();
    });

    rule(
      'S529',
      'a function is called once, and each launch runs what it called, in the order of the arrays',
      async () => {
        const { device } = chapter;
        const [one, two] = [device.createStream(), device.createStream()];
        using x = one.zeros(256, 'i32');
        using z = one.zeros(256, 'i32');
        let calls = 0;
        let current = 0n;
        let context = 0n;
        const graph = one.capture(
          (captured) => {
            // An array of the capture has no address before its end.
            const y = captured.zeros(256, 'i32');
            const node = captured.external({ reads: { x }, writes: { y }, label: 'two calls' }, (raw) => {
              calls++;
              ({ context } = raw);
              current = foreign().current();
              foreign().copy(raw, raw.pointers.y, raw.pointers.x, x.byteLength);
              foreign().fill(raw, raw.pointers.y, 7, 1);
            });
            captured.external({ label: 'nothing' }, () => calls++);
            captured.copy(z, y);
            captured.fill(x, -1);
            expect([node.kind, node.label]).toEqual(['external', 'two calls']);
          },
          { label: 'step' },
        );
        expect(graph.nodes.map(({ kind, label }) => [kind, label]).filter(([kind]) => kind === 'external')).toEqual([
          ['external', 'two calls'],
          ['external', 'nothing'],
        ]);
        for (let n = 1; n <= 10; n++) {
          two.fill(x, n);
          one.launch(graph);
          const seen = await z.read();
          expect([seen[0], seen[255], (await x.read())[5], calls]).toEqual([7, n, -1, 2]);
        }
        expect([current, foreign().current()]).toEqual([context, 0n]);
        expect(context).not.toBe(0n);
        await graph.close();
        await Promise.all([one.close(), two.close()]);
      },
      { unless },
    );

    rule(
      'S529',
      'graphs in graphs, bodies of conditions and updates have what the function called',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = stream.zeros(4, 'i32');
        using y = stream.zeros(4, 'i32');
        using isWanted = stream.zeros(1, 'i32');
        let calls = 0;
        const fillBy = (word: number) => (captured: Pick<Stream, 'external'>) =>
          void captured.external({ writes: { x } }, (raw) => {
            calls++;
            foreign().fill(raw, raw.pointers.x, word, 4);
          });
        const inner = stream.capture(fillBy(3));
        const outer = stream.capture((captured) => {
          captured.launch(inner);
          captured.copy(y, x);
          captured.captureIf(isWanted, (body) => {
            body.external({ reads: { y }, writes: { y } }, (raw) => {
              calls++;
              foreign().fill(raw, raw.pointers.y, 9, 1);
            });
          });
        });
        // The outer graph keeps what it has of it.
        await inner.close();
        const seen = async (graph: Graph, wanted: number): Promise<readonly number[]> => {
          stream.fill(isWanted, wanted);
          stream.fill(x, 0);
          stream.launch(graph);
          return [...(await y.read())];
        };
        expect(await seen(outer, 0)).toEqual([3, 3, 3, 3]);
        expect(await seen(outer, 1)).toEqual([9, 3, 3, 3]);
        expect(calls).toBe(2);
        const updated = stream.capture(fillBy(4));
        await stream.launch(updated).done;
        updated.update(fillBy(5));
        await stream.launch(updated).done;
        expect([(await x.read())[0], calls]).toEqual([5, 4]);
        // Outside of a capture, a condition is a graph that is launched once.
        stream.captureIf(isWanted, fillBy(6));
        expect([(await x.read())[0], calls]).toEqual([6, 5]);
        await Promise.all([outer.close(), updated.close()]);
        await stream.close();
      },
      { unless },
    );

    rule(
      'S531',
      'a function that throws, that returns a promise or that waits fails the launches, and the graph can be captured again',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        using x = stream.zeros(4, 'i32');
        const failing = async (fn: (raw: RawStream<'x'>) => unknown): Promise<CaptureError> => {
          using y = stream.zeros(4, 'i32');
          let calls = 0;
          const graph = stream.capture((captured) => {
            captured.external({ writes: { x }, label: 'gemm' }, (raw) => {
              calls++;
              return fn(raw);
            });
            captured.copy(y, x);
          });
          const first = (await rejectionOf(stream.launch(graph).done)) as CaptureError;
          const again = await rejectionOf(stream.launch(graph).done);
          expect(again).toBeInstanceOf(CaptureError);
          expect(first).toBeInstanceOf(CaptureError);
          expect(first).toMatchObject({
            reason: 'external',
            device: device.info.id,
            message: expect.stringContaining('external function gemm'),
          });
          expect(calls).toBe(1);
          // What it should have written is poisoned, as by any operation.
          expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
          await graph.close();
          await stream.fill(x, 0).done;
          return first;
        };
        const boom = new Error('boom');
        const thrown = await failing(() => {
          throw boom;
        });
        expect(thrown.message).toContain('boom');
        expect(thrown.cause).toBe(boom);
        expect((await failing(() => Promise.resolve())).message).toContain('returned a promise');
        const broken = await failing((raw) => foreign().synchronize(raw));
        expect(broken.message).toMatch(/cuStreamSynchronize returned 900; .*CUDA_ERROR_STREAM_CAPTURE_INVALIDATED/);
        const hidden = await failing((raw) => void thrownBy(() => foreign().synchronize(raw)));
        expect(hidden.message).toContain('CUDA_ERROR_STREAM_CAPTURE_INVALIDATED');
        expect(foreign().current()).toBe(0n);
        const refused = thrownBy(() => stream.capture((captured) => void captured.external({ label: 'late' }, async () => undefined)));
        expect(refused).toBeInstanceOf(CaptureError);
        expect(refused).toMatchObject({ reason: 'unsupported-node', message: expect.stringContaining('late') });
        const ended = AbortSignal.abort(new Error('too late'));
        const graph = stream.capture((captured) => void captured.external({ signal: ended }, () => undefined));
        expect((await rejectionOf(stream.launch(graph).done)) as Error).toMatchObject({ message: expect.stringContaining('too late') });
        await graph.close();
        using y = stream.zeros(4, 'i32');
        const good = stream.capture((captured) => void captured.external({ reads: { x }, writes: { y } }, copy(x, y)));
        stream.fill(x, 8);
        stream.launch(good);
        expect([...(await y.read())]).toEqual([8, 8, 8, 8]);
        await good.close();
        await stream.close();
      },
      { unless },
    );

    rule(
      'S532',
      'the function waits for the memory of its arrays, is not called after close, and leaves nothing behind',
      async () => {
        await withDevice(target, {}, async (device) => {
          const stream = device.createStream();
          let calls = 0;
          const usedBytes = async (): Promise<number> => (await device.pool.stats()).usedBytes;
          const before = await usedBytes();
          for (let round = 0; round < 4; round++) {
            let goOn = (): void => undefined;
            const ended = new Promise<void>((resolve) => (goOn = resolve));
            stream.hold(() => ended, { timeoutMs: 20_000 });
            // It is allocated behind the hold.
            const x = stream.zeros(64, 'i32');
            const graph = stream.capture((captured) => void captured.external({ writes: { x } }, () => calls++));
            for (let n = 0; n < 3; n++) await turn();
            expect(calls).toBe(Math.floor(round / 2));
            const launched = round % 2 === 1 ? stream.launch(graph) : undefined;
            x[Symbol.dispose]();
            // From here on it is not called, although the record that frees the graph comes after the memory.
            if (launched === undefined) void graph.close();
            goOn();
            await launched?.done;
            await graph.close();
            await stream.synchronize();
          }
          expect(calls).toBe(2);
          const end = performance.now() + 10_000;
          while ((await usedBytes()) !== before && performance.now() < end) await turn();
          expect(await usedBytes()).toBe(before);
          await stream.close();
        });
      },
      { unless },
    );

    rule(
      'S529',
      'a function whose arrays have memory does not wait for the arrays of others',
      async () => {
        const { device } = chapter;
        const [held, other] = [device.createStream(), device.createStream()];
        using x = other.zeros(4, 'i32');
        await other.synchronize();
        const capture = (y: I32): Graph =>
          other.capture((captured) => void captured.external({ writes: { y } }, (raw) => foreign().fill(raw, raw.pointers.y, 7, 4)));
        let graphs: Graph[] = [];
        // The hold ends when the functions of x and of `soon` have been called.
        const ended = held.hold(() => Promise.all(graphs.slice(-2).map((graph) => other.launch(graph).done)), { timeoutMs: 3000 });
        using late = held.zeros(4, 'i32');
        // As many as there are streams that wait for memory.
        const waiting = Array.from({ length: 4 }, () => capture(late));
        using soon = other.zeros(4, 'i32');
        graphs = [...waiting, capture(soon), capture(x)];
        await ended.done;
        for (const graph of waiting) await held.launch(graph).done;
        for (const array of [x, soon, late]) expect([...(await array.read())]).toEqual([7, 7, 7, 7]);
        for (const graph of graphs) await graph.close();
        await held.close();
        await other.close();
      },
      { unless },
    );
  });
});
