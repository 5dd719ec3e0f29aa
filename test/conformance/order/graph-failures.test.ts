// Chapter 10, seventh part: launches whose nodes fail, and graphs that read poisoned arrays.
import { describe, expect } from 'vitest';
import { BoundsError, CompileError, cudaKernel, i32, inout, input, UpstreamError, type MillraceError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, shiftKernel } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: failures', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1014', 'done of a launch rejects with the error of the node that failed, and the next launch runs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        s.fill(y, 0);
        s.launch(shiftKernel, 4, { x, y, by });
        s.copy(z, y);
      });
      for (let n = 0; n < 3; n++) {
        const failed = stream.launch(graph, { by: 4 });
        const error = await rejectionOf(failed.done);
        expect(error).toBeInstanceOf(BoundsError);
        const fault = error as BoundsError;
        expect([fault.array, fault.dimension, fault.limit]).toEqual(['x', 0, 4]);
        expect(fault.index).toBe(fault.thread[0] + 4);
        expect(fault.message).toContain('shift');
        expect([failed.status, failed.error]).toEqual(['failed', error]);
        for (const array of [y, z]) {
          const upstream = await rejectionOf(array.read());
          expect(upstream).toBeInstanceOf(UpstreamError);
          expect((upstream as UpstreamError).cause).toBeInstanceOf(BoundsError);
        }
        await stream.launch(graph, { by: 0 }).done;
        expect([...(await y.read()), ...(await z.read())]).toEqual([7, 7, 7, 7, 7, 7, 7, 7]);
        expect([...(await x.read())]).toEqual([7, 7, 7, 7]);
      }
      await graph.close();
      await stream.close();
    });

    rule('S1014', 'every array that the graph writes is poisoned, also by branches that did not fail; no other array is', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using early = device.zeros(4, 'i32');
      using beside = device.zeros(4, 'i32');
      using read = device.full(4, 5, 'i32');
      using other = device.full(4, 6, 'i32');
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        fork.waitStream(stream);
        s.fill(early, 1);
        fork.copy(beside, read);
        s.launch(shiftKernel, 4, { x, y, by });
      });
      expect(await rejectionOf(stream.launch(graph, { by: -9 }).done)).toBeInstanceOf(BoundsError);
      for (const array of [y, early, beside]) expect(await rejectionOf(array.read())).toBeInstanceOf(UpstreamError);
      for (const [array, value] of [
        [x, 7],
        [read, 5],
        [other, 6],
      ] as const) {
        expect([...(await array.read())]).toEqual([value, value, value, value]);
      }
      // S606: an overwrite clears it, by whatever means.
      device.stream.fill(early, 4);
      expect([...(await early.read())]).toEqual([4, 4, 4, 4]);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1014', 'reads and copies that were submitted before the fault was known reject, and other work goes on', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = stream.capture({ by: i32 }, (s, { by }) => void s.launch(shiftKernel, 4, { x, y, by }));
      await device.compile(shiftKernel);
      for (const take of [() => y.read(), () => stream.copy(new Int32Array(4), y).done, () => other.copy(new Int32Array(4), y).done]) {
        const failed = rejectionOf(stream.launch(graph, { by: 4 }).done);
        const error = await rejectionOf(take());
        expect(error).toBeInstanceOf(UpstreamError);
        expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
        expect(await failed).toBeInstanceOf(BoundsError);
      }
      const failed = rejectionOf(stream.launch(graph, { by: 4 }).done);
      await stream.fill(z, 3).done;
      expect(await failed).toBeInstanceOf(BoundsError);
      expect([...(await z.read())]).toEqual([3, 3, 3, 3]);
      expect(device.state).toBe('open');
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1014', 'an array that a failed launch got for a slot is poisoned if the graph writes it', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = stream.capture({ x: input(i32), y: inout(i32), by: i32 }, (s, slots) => void s.launch(shiftKernel, 4, slots));
      expect(await rejectionOf(stream.launch(graph, { x, y, by: 1 }).done)).toBeInstanceOf(BoundsError);
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      await stream.launch(graph, { x, y: z, by: 0 }).done;
      expect([...(await z.read()), ...(await x.read())]).toEqual([7, 7, 7, 7, 7, 7, 7, 7]);
      const upstream = await rejectionOf(stream.launch(graph, { x: y, y: z, by: 0 }).done);
      expect(upstream).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(z.read())).toBeInstanceOf(UpstreamError);
      await graph.close();
      await stream.close();
    });

    rule('S1014', 'a launch that reads a poisoned array does not run: UpstreamError with the first failure as cause', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      using count = device.zeros(1, 'u32');
      const graph = stream.capture((s) => {
        s.launch(mixKernel, ONE, { x: count, k: 1 });
        s.copy(z, y);
      });
      expect(await rejectionOf(device.stream.launch(shiftKernel, 4, { x, y, by: 4 }).done)).toBeInstanceOf(BoundsError);
      const error = await rejectionOf(stream.launch(graph).done);
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
      for (const array of [z, count]) expect(await rejectionOf(array.read())).toBeInstanceOf(UpstreamError);
      // Nothing of it ran: with the arrays written again, the launch gives what a first one gives.
      device.stream.fill(count, 0);
      device.stream.fill(y, 2);
      await stream.launch(graph).done;
      expect([(await count.read())[0], ...(await z.read())]).toEqual([mixed(0, 1, 1), 2, 2, 2, 2]);
      await graph.close();
      await stream.close();
    });

    rule('S1014', 'a launch that overwrites the poisoned array before it reads it runs, and clears the poison', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const whole = stream.capture((s) => {
        s.fill(y, 1);
        fork.waitStream(stream);
        fork.copy(z, y);
      });
      const part = stream.capture((s) => {
        s.fill(y.subarray(1), 1);
        s.copy(z, y);
      });
      expect(await rejectionOf(device.stream.launch(shiftKernel, 4, { x, y, by: 4 }).done)).toBeInstanceOf(BoundsError);
      expect(await rejectionOf(stream.launch(part).done)).toBeInstanceOf(UpstreamError);
      await stream.launch(whole).done;
      expect([...(await y.read()), ...(await z.read())]).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
      await stream.launch(part).done;
      await Promise.all([whole.close(), part.close()]);
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1014', 'a failure of one graph passes to another through an array', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const first = stream.capture({ by: i32 }, (s, { by }) => void s.launch(shiftKernel, 4, { x, y, by }));
      const second = other.capture((s) => void s.copy(z, y));
      const failed = await rejectionOf(stream.launch(first, { by: 4 }).done);
      const error = await rejectionOf(other.launch(second).done);
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
      expect((error as UpstreamError).cause.message).toBe(failed.message);
      device.stream.fill(y, 0);
      await stream.launch(first, { by: 0 }).done;
      await other.launch(second).done;
      expect([...(await z.read())]).toEqual([7, 7, 7, 7]);
      await Promise.all([first.close(), second.close()]);
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1014', 'a node whose kernel does not build fails the launches', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      const broken = cudaKernel('broken_node', { x: inout(i32) }, 'extern "C" __global__ void broken_node(int* x) { x[0] = nowhere; }');
      const graph = stream.capture((s) => void s.launch(broken, 1, { x }));
      for (let n = 0; n < 2; n++) {
        expect(await rejectionOf(stream.launch(graph).done)).toBeInstanceOf(CompileError);
        expect(await rejectionOf(x.read())).toBeInstanceOf(UpstreamError);
        await stream.fill(x, 1).done;
      }
      expect([...(await x.read())]).toEqual([1, 1, 1, 1]);
      await graph.close();
      await stream.close();
    });

    rule('S1014', 'a failed launch that no code awaits reaches errors$ once', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      using z = device.zeros(4, 'i32');
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        s.launch(shiftKernel, 4, { x, y, by });
        s.copy(z, y);
      });
      const seen: MillraceError[] = [];
      const subscription = device.errors$.subscribe((error) => void seen.push(error));
      stream.launch(graph, { by: 4 });
      await device.synchronize().catch(() => undefined);
      await eventually('the failure is seen', () => seen.length > 0);
      expect(seen).toHaveLength(1);
      expect(seen[0]).toBeInstanceOf(BoundsError);
      subscription.unsubscribe();
      await graph.close();
      await stream.close();
    });

    rule('S1014', 'queued launches after a failed one run', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.full(4, 7, 'i32');
      using y = device.zeros(4, 'i32');
      const graph = stream.capture({ by: i32 }, (s, { by }) => {
        s.fill(y, 0);
        s.launch(shiftKernel, 4, { x, y, by });
      });
      await device.compile(shiftKernel);
      const shifts = Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? 4 + n : 0));
      const launched = shifts.map((by) => stream.launch(graph, { by }));
      const ends = await Promise.allSettled(launched.map(({ done }) => done));
      expect(ends.map(({ status }) => status)).toEqual(shifts.map((by) => (by > 0 ? 'rejected' : 'fulfilled')));
      for (const [n, { error }] of launched.entries()) {
        if (shifts[n] === 0) continue;
        expect(error).toBeInstanceOf(BoundsError);
        const fault = error as BoundsError;
        expect(fault.index).toBe(fault.thread[0] + shifts[n]!);
      }
      expect([...(await y.read())]).toEqual([7, 7, 7, 7]);
      await graph.close();
      await stream.close();
    });

    rule('S1014', 'of queued launches on two streams, those that fail poison their own arrays and no others', async () => {
      const { device } = chapter;
      const streams = [device.createStream(), device.createStream()];
      using x = device.full(4, 7, 'i32');
      const graph = streams[0]!.capture({ y: inout(i32), by: i32 }, (s, { y, by }) => {
        s.launch(shiftKernel, 4, { x, y, by });
      });
      await device.compile(shiftKernel);
      const arrays = Array.from({ length: 24 }, () => device.zeros(4, 'i32'));
      const launched = arrays.map((y, n) => streams[n % 2]!.launch(graph, { y, by: n % 5 === 0 ? 4 : 0 }));
      const ends = await Promise.allSettled(launched.map(({ done }) => done));
      expect(ends.map(({ status }) => status)).toEqual(ends.map((_, n) => (n % 5 === 0 ? 'rejected' : 'fulfilled')));
      for (const [n, y] of arrays.entries()) {
        if (n % 5 === 0) expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
        else expect([...(await y.read())]).toEqual([7, 7, 7, 7]);
        y[Symbol.dispose]();
      }
      await graph.close();
      await Promise.all(streams.map((stream) => stream.close()));
    });
  });
});
