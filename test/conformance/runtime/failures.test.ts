// Chapter 6, second half: operations that fail on the device, and the arrays that a failure poisons.
import { describe, expect } from 'vitest';
import {
  BoundsError,
  CompileError,
  cudaKernel,
  f32,
  i32,
  inout,
  input,
  kernel,
  MillraceError,
  OutOfMemoryError,
  output,
  UpstreamError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { runChild } from '../../support/child.js';
import { shifted } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, rejectionOf } from '../../support/wait.js';

/** The index of most threads overflows an i32. */
const apart = kernel('apart', { x: input(f32), y: output(f32), step: i32 }, ({ x, y, step }, { i }) => {
  if ((i & 1) === 0) y[i] = x[i * step]! + 1;
});
const outside = kernel('outside', { image: inout(f32, 2), row: i32 }, ({ image, row }) => {
  image[row]![1] = 7;
});

defineChapter((target) => {
  describe('6 failure: on the device', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S603', 'an access outside an array is a BoundsError with array, index, limit and thread', async () => {
      const { device } = chapter;
      using x = device.ones(10);
      using y = device.zeros(10);
      const error = await rejectionOf(device.stream.launch(shifted, { threads: 10, block: 32 }, { x, y, by: 3 }).done);
      expect(error).toBeInstanceOf(BoundsError);
      const fault = error as BoundsError;
      expect([fault.array, fault.dimension, fault.limit]).toEqual(['x', 0, 10]);
      expect(fault.index).toBeGreaterThanOrEqual(10);
      expect(fault.index).toBeLessThan(13);
      expect(fault.thread[0]).toBe(fault.index - 3);
      expect(fault.message).toContain('shifted');
    });

    rule('S603', 'negative indices are reported in any dimension, and memory is not changed', async () => {
      const { device } = chapter;
      using image = device.zeros([3, 4]);
      const error = (await rejectionOf(device.stream.launch(outside, 1, { image, row: -1 }).done)) as BoundsError;
      expect(error).toBeInstanceOf(BoundsError);
      expect([error.array, error.dimension, error.index, error.limit]).toEqual(['image', 0, -1, 3]);
      using neighbour = device.full(12, 2);
      expect((await neighbour.read()).every((value) => value === 2)).toBe(true);
    });

    rule('S603', 'memory is not changed if an index overflows between one thread and the next', async () => {
      const { device } = chapter;
      using x = device.zeros(64);
      using y = device.zeros(64);
      const error = (await rejectionOf(
        device.stream.launch(apart, { threads: 64, block: 64 }, { x, y, step: 2 ** 29 }).done,
      )) as BoundsError;
      expect(error).toBeInstanceOf(BoundsError);
      expect([error.array, error.dimension, error.limit]).toEqual(['x', 0, 64]);
    });

    rule('S604', 'the device and its other streams continue', async () => {
      const { device } = chapter;
      const failing = device.createStream();
      const other = device.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      using z = device.zeros(4);
      const failed = rejectionOf(failing.launch(shifted, 4, { x, y, by: 4 }).done);
      other.launch(shifted, 4, { x, y: z, by: 0 });
      expect(await z.read()).toEqual(new Float32Array([1, 1, 1, 1]));
      expect(await failed).toBeInstanceOf(BoundsError);
      expect(device.state).toBe('open');
      await Promise.all([failing.close(), other.close()]);
    });

    rule('S604', 'later operations of the stream that do not read a poisoned array run', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      using z = device.zeros(4);
      const failed = rejectionOf(stream.launch(shifted, 4, { x, y, by: 9 }).done);
      await stream.fill(z, 3).done;
      expect(await z.read()).toEqual(new Float32Array([3, 3, 3, 3]));
      expect(await failed).toBeInstanceOf(BoundsError);
      await stream.close();
    });

    rule('S605', 'reading a poisoned array is an UpstreamError with the first failure, and what it was about, as cause', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      using z = device.zeros(4);
      // Nothing awaits it.
      stream.launch(shifted, { threads: 4, label: 'too far' }, { x, y, by: 4 });
      const second = await rejectionOf(stream.copy(z, y).done);
      const third = await rejectionOf(z.read());
      for (const error of [second, third]) {
        expect(error).toBeInstanceOf(UpstreamError);
        const { cause } = error as UpstreamError;
        expect(cause).toBeInstanceOf(BoundsError);
        expect(cause.operation).toMatchObject({ kind: 'launch', label: 'too far', stream: stream.label });
      }
      await stream.close();
    });

    rule('S605', 'reads and copies that were submitted before the fault was known reject too', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const length = 1 << 16;
      using x = device.ones(length);
      using y = device.zeros(length);
      using pinned = device.pinned(length);
      await device.compile(shifted);
      const takes = [
        () => y.read(),
        () => stream.copy(pinned, y).done,
        () => stream.copy(new Float32Array(length), y).done,
        () => device.stream.copy(pinned, y).done,
      ];
      for (const take of takes) {
        stream.launch(shifted, length, { x, y, by: 4 });
        const error = await rejectionOf(take());
        expect(error).toBeInstanceOf(UpstreamError);
        expect((error as UpstreamError).cause).toBeInstanceOf(BoundsError);
      }
      await stream.close();
    });

    rule('S605', 'a poisoned array stays poisoned for other streams', async () => {
      const { device } = chapter;
      const other = device.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      using z = device.zeros(4);
      await rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 4 }).done);
      expect(await rejectionOf(other.launch(shifted, 4, { x: y, y: z, by: 0 }).done)).toBeInstanceOf(UpstreamError);
      await other.close();
    });

    rule('S606', 'overwriting the whole array clears the poison; overwriting a part does not', async () => {
      const { device } = chapter;
      using x = device.ones(4);
      using y = device.zeros(4);
      await rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 4 }).done);
      await device.stream.copy(y, new Float32Array([9]), { dstOffset: 1 }).done;
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      device.stream.fill(y, 6);
      expect(await y.read()).toEqual(new Float32Array([6, 6, 6, 6]));
      await rejectionOf(device.stream.launch(shifted, 4, { x, y, by: 4 }).done);
      device.stream.copy(y, new Float32Array([1, 2, 3, 4]));
      expect(await y.read()).toEqual(new Float32Array([1, 2, 3, 4]));
    });

    rule('S606', 'an array that was overwritten before the fault was reported is not poisoned by it', async () => {
      const { device } = chapter;
      using x = device.ones(4);
      using y = device.zeros(4);
      const faulting = device.stream.launch(shifted, 4, { x, y, by: 4 });
      device.stream.fill(y, 6);
      expect(await rejectionOf(faulting.done)).toBeInstanceOf(BoundsError);
      for (let n = 0; n < 2; n++) expect(await y.read()).toEqual(new Float32Array([6, 6, 6, 6]));
    });

    rule('S605', 'a copy on another stream fails because of a fault that no code has read yet', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      using z = device.zeros(4);
      device.stream.launch(shifted, 4, { x, y, by: 4 });
      await device.stream.synchronize();
      stream.copy(z, y);
      expect(await rejectionOf(z.read())).toBeInstanceOf(UpstreamError);
      await stream.close();
    });

    rule('S607', 'a kernel that does not build fails its launches and poisons their outputs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(4);
      using y = stream.zeros(4);
      const broken = cudaKernel(
        'broken_launch',
        { x: inout(f32) },
        'extern "C" __global__ void broken_launch(float* x) { x[0] = nowhere; }',
      );
      const launch = stream.launch(broken, 1, { x });
      const after = stream.fill(y, 1);
      expect(await rejectionOf(launch.done)).toBeInstanceOf(CompileError);
      await after.done;
      const error = await rejectionOf(x.read());
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error as UpstreamError).cause).toBeInstanceOf(MillraceError);
      await stream.close();
    });

    rule('S608', 'a failure that no code awaited reaches errors$ once and crashes nothing', async () => {
      const { device } = chapter;
      const seen: MillraceError[] = [];
      const subscription = device.errors$.subscribe((error) => void seen.push(error));
      using x = device.ones(4);
      using y = device.zeros(4);
      device.stream.launch(shifted, { threads: 4, label: 'nobody asks' }, { x, y, by: 4 });
      await device.synchronize().catch(() => undefined);
      await eventually('the failure is seen', () => seen.length > 0);
      expect(seen).toHaveLength(1);
      expect(seen[0]).toBeInstanceOf(BoundsError);
      expect(seen[0]!.message).toMatch(/^Kernel shifted \(nobody asks\) on stream /);
      subscription.unsubscribe();
    });

    rule('S608', 'a failure whose consequence was read is not told again, by whatever stands between them', async () => {
      const { device } = chapter;
      const seen: MillraceError[] = [];
      const subscription = device.errors$.subscribe((error) => void seen.push(error));
      const streams = Array.from({ length: 4 }, () => device.createStream());
      using v = device.ones(4);
      using w = device.zeros(4);
      using x = device.zeros(4);
      using y = device.zeros(4);
      using z = device.zeros(4);
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      streams[0]!.launch(shifted, { threads: 4 }, { x: v, y: w, by: 4 });
      streams[1]!.copy(x, w);
      streams[2]!.hold(() => released, { timeoutMs: 30_000 });
      streams[2]!.copy(y, x);
      streams[3]!.copy(z, y);
      await eventually('the streams before the hold are at rest', () => streams[0]!.isComplete && streams[1]!.isComplete);
      // Longer than the device's looks for failures are apart.
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(seen).toEqual([]);
      release();
      expect(((await rejectionOf(z.read())) as Error).cause).toBeInstanceOf(BoundsError);
      await device.synchronize();
      // What nobody reads afterwards is told, of this device, in order: so nothing before it was.
      using other = device.ones(4);
      streams[3]!.launch(shifted, 4, { x: v, y: other, by: 4 });
      await device.synchronize();
      await eventually('the failure is seen', () => seen.length > 0);
      expect(seen).toMatchObject([{ name: 'BoundsError', stream: streams[3]!.label }]);
      subscription.unsubscribe();
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S608', 'without a subscriber it is one warning, and the process exits normally', async () => {
      const code = `import { f32, input, kernel, openDevice, output } from 'millrace';
        const shifted = kernel('shifted', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => { y[i] = x[i + 4]; });
        const device = await openDevice(${JSON.stringify(target.spec)});
        let warned = false;
        process.once('warning', () => { warned = true; });
        const x = device.ones(4), y = device.zeros(4);
        for (let n = 0; n < 3; n++) device.stream.launch(shifted, 4, { x, y });
        await device.synchronize().catch(() => undefined);
        while (!warned) await new Promise((resolve) => setImmediate(resolve));
        await device.close();`;
      const { code: exit, stderr } = await runChild(code);
      expect(stderr).toMatch(/shifted/);
      expect(stderr.match(/Warning/g)).toHaveLength(1);
      expect(exit).toBe(0);
    });

    rule('S608', 'a process with nothing left to do warns before it exits', async () => {
      const code = `import { f32, input, kernel, openDevice, output } from 'millrace';
        const shifted = kernel('shifted', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => { y[i] = x[i + 4]; });
        const device = await openDevice(${JSON.stringify(target.spec)});
        await device.compile(shifted);
        const x = device.ones(4), y = device.zeros(4);
        device.stream.launch(shifted, 4, { x, y });
        const last = device.stream.record();
        while (!last.isComplete);`;
      const { code: exit, stderr } = await runChild(code);
      expect(stderr.match(/Warning: .*shifted/g)).toHaveLength(1);
      expect(exit).toBe(0);
    });

    rule(
      'S609',
      'a failed allocation poisons its own array and nothing else',
      async () => {
        const { device } = chapter;
        const stream = device.createStream();
        const most = device.info.totalMemoryBytes - 4096;
        using x = stream.zeros(4, 'i32');
        const huge = stream.empty(most, 'u8');
        const second = stream.empty(most, 'u8');
        stream.fill(x, 5);
        expect(await x.read()).toEqual(new Int32Array([5, 5, 5, 5]));
        const error = await rejectionOf(stream.fill(second, 1).done);
        const first = error instanceof UpstreamError ? error.cause : error;
        expect(first).toBeInstanceOf(OutOfMemoryError);
        expect((first as OutOfMemoryError).requestedBytes).toBe(most);
        expect((first as OutOfMemoryError).freeBytes).toBeLessThan(most);
        huge[Symbol.dispose]();
        second[Symbol.dispose]();
        using again = stream.full(1024, 1, 'u8');
        expect((await again.read())[1023]).toBe(1);
        await stream.close();
      },
      { unless: !target.supports.memoryLimit && 'allocations of this device only fail when the whole machine is out of memory' },
    );

    rule('S614', 'an operation rejects with its own failure however late its done is read', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(4);
      using y = device.zeros(4);
      await device.compile(shifted);
      const early = stream.launch(shifted, 4, { x, y, by: 1 });
      await stream.synchronize();
      for (let n = 0; n < 200; n++) await rejectionOf(stream.launch(shifted, 4, { x, y, by: 2 + n }).done);
      expect(await rejectionOf(early.done)).toMatchObject({ name: 'BoundsError', array: 'x', index: 4 });
      await stream.close();
      expect(await rejectionOf(early.done)).toMatchObject({ name: 'BoundsError', index: 4 });
    });
  });
});
