// Chapter 6: which kernels clear the poison of an array that they declare as `output`, and which leave it.
import { describe, expect } from 'vitest';
import { cudaKernel, type Device, type DeviceArray, f32, i32, inout, kernel, type LaunchShape, output, UpstreamError } from 'millrace';
import { add } from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const LENGTH = 8;

const bad = kernel('bad', { x: output(f32), by: i32 }, ({ x, by }, { i }) => {
  x[i] = 666;
  if (i === 0) x[i + by] = 1;
});
const bad2 = kernel('bad2', { x: output(f32, 2), by: i32 }, ({ x, by }, { i, j }) => {
  x[i]![j] = 666;
  if (i + j === 0) x[i + by]![j] = 1;
});

/** Each thread stores its own element. */
const five = kernel('five', { x: output(f32), n: i32 }, ({ x }, { i }) => {
  x[i] = 5;
});
/** Each thread that has an element stores it. */
const within = kernel('within', { x: output(f32), n: i32 }, ({ x }, { i }) => {
  if (i < x.length) x[i] = 5;
});
/** It may leave elements. */
const guarded = kernel('guarded', { x: output(f32), n: i32 }, ({ x, n }, { i }) => {
  if (i < n) x[i] = 5;
});
/** They read what they have not written. */
const adding = kernel('adding', { x: output(f32), n: i32 }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});
const spread = kernel('spread', { from: output(f32), to: output(f32) }, ({ from, to }, { i }) => {
  to[i] = from[i]!;
});

const square = kernel('square', { x: output(f32, 2) }, ({ x }, { i, j }) => {
  x[i]![j] = 5;
});
const text = cudaKernel('text', { x: output(f32) }, 'extern "C" __global__ void text(float* x) { x[threadIdx.x] = 5; }');

type Floats = DeviceArray<'f32'>;

defineChapter((target) => {
  describe('6 failure: outputs', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    /** Of an array that a kernel failed to write, after `write`: its values, or the error of a read. */
    const after = async (device: Device, shape: number | readonly [number, number], write: (x: Floats) => unknown): Promise<unknown> => {
      using x = device.zeros(shape as never) as Floats;
      if (typeof shape === 'number') device.stream.launch(bad, shape, { x, by: 1000 });
      else device.stream.launch(bad2, shape, { x, by: 1000 });
      write(x);
      return (await x.read().catch((error: unknown) => error)) as unknown;
    };
    const fives = (length: number): Float32Array => new Float32Array(length).fill(5);

    rule(
      'S642',
      'a kernel clears the poison of an output if each thread stores its own element, and the threads reach the whole array',
      async () => {
        const { device } = chapter;
        const { stream } = device;
        await device.compile(bad, bad2, five, within, guarded, adding, spread, square, text);
        const launch = (shape: LaunchShape) => after(device, LENGTH, (x) => stream.launch(five, shape, { x, n: LENGTH }));
        for (const shape of [LENGTH, { threads: LENGTH, block: 3 }, { grid: 2, block: 4 }] as const)
          expect(await launch(shape)).toEqual(fives(LENGTH));
        expect(await after(device, LENGTH, (x) => stream.launch(within, 2 * LENGTH, { x, n: 0 }))).toEqual(fives(LENGTH));
        for (const shape of [4, LENGTH - 1, { grid: 1, block: 7 }] as const) expect(await launch(shape)).toBeInstanceOf(UpstreamError);
      },
    );

    rule('S642', 'a kernel that may leave elements, or reads what it did not write, leaves the poison', async () => {
      const { device } = chapter;
      for (const one of [guarded, adding])
        expect(await after(device, LENGTH, (x) => device.stream.launch(one, LENGTH, { x, n: LENGTH })), one.name).toBeInstanceOf(
          UpstreamError,
        );
      // What it wrote before the failure was known, derives from it.
      using y = device.zeros(LENGTH);
      await after(device, LENGTH, (x) => device.stream.launch(spread, LENGTH, { from: x, to: y }));
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      // Without a failure they are what they were.
      using z = device.zeros(LENGTH);
      device.stream.launch(guarded, LENGTH, { x: z, n: 3 });
      device.stream.launch(adding, LENGTH, { x: z, n: 0 });
      expect(await z.read()).toEqual(new Float32Array([6, 6, 6, 1, 1, 1, 1, 1]));
    });

    rule('S642', 'in each dimension', async () => {
      const { device } = chapter;
      const { stream } = device;
      const shape = [2, 6] as const;
      const launch = (threads: [number, number]) => after(device, shape, (x) => stream.launch(square, threads, { x }));
      expect(await launch([2, 6])).toEqual(fives(12));
      for (const threads of [
        [2, 5],
        [1, 6],
      ] as [number, number][])
        expect(await launch(threads)).toBeInstanceOf(UpstreamError);
      expect(await after(device, shape, (x) => stream.launch(square, { grid: 1, block: [6, 2] }, { x }))).toEqual(fives(12));
      expect(await after(device, shape, (x) => stream.launch(square, { grid: 1, block: [2, 6] }, { x }))).toBeInstanceOf(UpstreamError);
    });

    rule('S642', 'CUDA C++ promises to write every element of what it is given, and the library keeps that promise', async () => {
      const { device } = chapter;
      const { stream } = device;
      expect(await after(device, LENGTH, (x) => stream.launch(text, { grid: 1, block: LENGTH }, { x }))).toEqual(fives(LENGTH));
      expect(await after(device, LENGTH, (x) => stream.launch(text, { grid: 1, block: 4 }, { x: x.subarray(0, 4) }))).toBeInstanceOf(
        UpstreamError,
      );
      using y = device.full(LENGTH, 2);
      using z = device.full(LENGTH, 3);
      expect(await after(device, LENGTH, (x) => add(y, z, { out: x }))).toEqual(fives(LENGTH));
    });

    rule('S642', 'through slots, graphs in graphs and views', async () => {
      const { device } = chapter;
      const { stream } = device;
      await using graph = stream.capture({ x: output(f32) }, (s, { x }) => s.launch(five, LENGTH, { x, n: 0 }));
      await using changing = stream.capture({ x: inout(f32) }, (s, { x }) => s.launch(five, LENGTH, { x, n: 0 }));
      await using leavingSlot = stream.capture({ x: output(f32) }, (s, { x }) => s.launch(guarded, LENGTH, { x, n: LENGTH }));
      await using addingSlot = stream.capture({ x: output(f32) }, (s, { x }) => s.launch(adding, LENGTH, { x, n: LENGTH }));
      for (const one of [graph, changing as unknown as typeof graph]) {
        expect(await after(device, LENGTH, (x) => stream.launch(one, { x }))).toEqual(fives(LENGTH));
        expect(await after(device, 2 * LENGTH, (x) => stream.launch(one, { x }))).toBeInstanceOf(UpstreamError);
        expect(await after(device, 2 * LENGTH, (x) => stream.launch(one, { x: x.subarray(0, LENGTH) }))).toBeInstanceOf(UpstreamError);
      }
      for (const one of [leavingSlot, addingSlot])
        expect(await after(device, LENGTH, (x) => stream.launch(one, { x }))).toBeInstanceOf(UpstreamError);
      const inner = async (length: number): Promise<unknown> => {
        const made: { close(): Promise<void> }[] = [];
        const value = await after(device, length, (x) => {
          const outer = stream.capture((s) => s.launch(graph, { x }));
          made.push(outer);
          stream.launch(outer);
        });
        for (const one of made) await one.close();
        return value;
      };
      expect(await inner(LENGTH)).toEqual(fives(LENGTH));
      expect(await inner(2 * LENGTH)).toBeInstanceOf(UpstreamError);
    });

    rule('S642', 'a pinned array', async () => {
      const { device } = chapter;
      const { stream } = device;
      using x = device.zeros(LENGTH);
      for (const [one, heals] of [
        [five, true],
        [guarded, false],
      ] as const) {
        using pinned = device.pinned(LENGTH);
        using y = device.zeros(LENGTH);
        // One turn of the loop: nobody is told of the failure in between.
        stream.launch(bad, LENGTH, { x, by: 1000 });
        stream.copy(pinned, x);
        stream.launch(one, LENGTH, { x: pinned, n: LENGTH });
        stream.copy(y, pinned);
        const read = await y.read().catch((error: unknown) => error);
        if (heals) expect(read).toEqual(fives(LENGTH));
        else expect(read).toBeInstanceOf(UpstreamError);
      }
    });
  });
});
