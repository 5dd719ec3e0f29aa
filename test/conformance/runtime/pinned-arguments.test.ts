// Chapter 3, eighth part: pinned arrays as arguments of kernels, which access them where they are.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  cudaKernel,
  f32,
  i32,
  inout,
  input,
  kernel,
  optional,
  output,
  StateError,
  StreamHazardError,
  struct,
  UpstreamError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { shifted } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const COUNT = 1000;

const added = kernel('pinned_added', { x: input(f32), y: inout(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! + y[i]!;
});
const rows = kernel('pinned_rows', { x: input(f32, 2), y: output(f32, 2) }, ({ x, y }, { i, j }) => {
  y[i]![j] = x[i]![j]! * 2;
});
const pair = struct({ x: input(f32), y: optional(inout(f32)) });
const ofStruct = cudaKernel(
  'pinned_of_struct',
  { p: pair, z: output(f32), n: i32 },
  `struct Pair { const float *x; float *y; };
   extern "C" __global__ void pinned_of_struct(Pair p, float *z, int n) {
     int i = blockIdx.x * blockDim.x + threadIdx.x;
     if (i >= n) return;
     if (p.y != nullptr) p.y[i] += p.x[i];
     z[i] = 2 * p.x[i];
   }`,
);

defineChapter((target) => {
  describe('3 memory: pinned arrays in kernels', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const all = (value: number, count = COUNT): Float32Array => new Float32Array(count).fill(value);

    rule('S373', 'a kernel reads and writes pinned arrays and parts of them', async () => {
      const { device } = chapter;
      using x = device.pinned(COUNT, 'f32');
      using y = device.pinned(COUNT, 'f32');
      using z = device.full(COUNT, 5);
      x.data.fill(2);
      y.data.fill(1);
      await device.stream.launch(added, COUNT, { x, y }).done;
      expect(y.data).toEqual(all(3));
      device.stream.launch(added, COUNT, { x: y, y: z });
      expect(await z.read()).toEqual(all(8));
      await device.stream.launch(added, 10, { x: z.subarray(0, 10), y: y.subarray(-10) }).done;
      expect(y.data).toEqual(all(3).fill(11, COUNT - 10));
    });

    rule('S373', 'pinned arrays with two dimensions, in structs, and memory that the caller made', async () => {
      const { device } = chapter;
      using x = device.pinned([20, 50], 'f32');
      using y = device.pinned([20, 50], 'f32');
      x.data.forEach((_, n, data) => (data[n] = n));
      await device.stream.launch(rows, [20, 50], { x, y }).done;
      expect(y.data).toEqual(x.data.map((value) => 2 * value));
      using flat = device.pin(new Float32Array(new SharedArrayBuffer(4 * COUNT)));
      using z = device.zeros(COUNT);
      const start = x.subarray(0, COUNT);
      await device.stream.launch(ofStruct, { threads: COUNT }, { p: { x: start, y: flat }, z, n: COUNT }).done;
      device.stream.launch(ofStruct, { threads: COUNT }, { p: { x: start, y: null }, z, n: COUNT });
      expect(flat.data).toEqual(new Float32Array(x.data));
      expect(await z.read()).toEqual(new Float32Array(y.data));
    });

    rule('S373', 'what JavaScript writes before the call is read, also while the stream waits', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.pinned(COUNT, 'f32');
      using y = device.zeros(COUNT);
      await device.compile(added);
      await using latch = await hold(target, stream, added);
      x.data.fill(4);
      stream.launch(added, COUNT, { x, y });
      latch.open();
      expect(await y.read()).toEqual(all(4));
      await stream.close();
    });

    rule('S373', 'a host function after the launch sees what the kernel wrote', async () => {
      const { device } = chapter;
      using x = device.full(COUNT, 6);
      using y = device.pinned(COUNT, 'f32');
      y.data.fill(0);
      device.stream.launch(added, COUNT, { x, y });
      let seen: Float32Array | undefined;
      await device.stream.host(() => {
        seen = y.read();
      }).done;
      expect(seen).toEqual(all(6));
    });

    rule('S373', 'launches and copies of other streams that use the pinned array are in order', async () => {
      const { device } = chapter;
      const [one, two] = [device.createStream(), device.createStream()];
      using x = device.ones(COUNT);
      using y = device.pinned(COUNT, 'f32');
      using z = device.zeros(COUNT);
      y.data.fill(0);
      for (let n = 0; n < 30; n++) {
        one.launch(added, COUNT, { x, y });
        two.launch(added, COUNT, { x, y });
      }
      one.copy(z, y);
      expect(await z.read()).toEqual(all(60));
      const checked = device.createStream({ ordering: 'checked' });
      two.launch(added, COUNT, { x, y });
      const racing = (): unknown => checked.launch(added, COUNT, { x: y, y: z });
      expect(thrownBy(racing)).toBeInstanceOf(StreamHazardError);
      checked.waitStream(two);
      checked.waitStream(one);
      racing();
      await device.synchronize();
      await Promise.all([one.close(), two.close(), checked.close()]);
    });

    rule('S373', 'a pinned array that is disposed right after the launch keeps its memory until then', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using z = device.zeros(COUNT);
      await device.compile(added);
      await using latch = await hold(target, stream, added);
      const y = device.pinned(COUNT, 'f32');
      y.data.fill(3);
      stream.launch(added, COUNT, { x: y, y: z });
      y[Symbol.dispose]();
      const others = Array.from({ length: 8 }, () => device.pinned(COUNT, 'f32'));
      for (const other of others) other.data.fill(99);
      latch.open();
      expect(await z.read()).toEqual(all(3));
      for (const other of others) other[Symbol.dispose]();
      await stream.close();
    });

    rule('S373', 'another dtype, another rank, a disposed array and a typed array are refused at the call', () => {
      const { device } = chapter;
      using y = device.zeros(COUNT);
      using integers = device.pinned(COUNT, 'i32');
      using matrix = device.pinned([10, 100], 'f32');
      using gone = device.pinned(COUNT, 'f32');
      gone[Symbol.dispose]();
      const x = (value: unknown): unknown => device.stream.launch(added, COUNT, { x: value as never, y });
      expect(thrownBy(() => x(integers))).toMatchObject({ argument: 'x', value: integers, limit: 'f32' });
      expect(thrownBy(() => x(matrix))).toMatchObject({ argument: 'x', limit: 1 });
      expect(thrownBy(() => x(gone))).toBeInstanceOf(StateError);
      expect(thrownBy(() => x(matrix.data))).toBeInstanceOf(ArgumentError);
    });

    rule('S374', 'a failed kernel poisons the pinned array until its failure was reported', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(COUNT);
      using y = device.pinned(COUNT, 'f32');
      using z = device.zeros(COUNT);
      y.data.fill(1);
      const failed = stream.launch(shifted, COUNT, { x, y, by: 1 });
      const behind = stream.launch(added, COUNT, { x: y, y: z });
      const copied = stream.copy(x, y);
      expect(await rejectionOf(behind.done)).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(copied.done)).toBeInstanceOf(UpstreamError);
      const error = await rejectionOf(failed.done);
      expect(error).toBeInstanceOf(BoundsError);
      device.stream.fill(z, 1);
      y.data.fill(5);
      stream.launch(added, COUNT, { x: y, y: z });
      expect(await z.read()).toEqual(all(6));
      await stream.close();
    });

    rule('S374', 'an index outside a pinned array is a BoundsError that names the parameter, and writes nothing beside it', async () => {
      const { device } = chapter;
      using y = device.pinned(COUNT, 'f32');
      y.data.fill(1);
      const part = y.subarray(10, 20);
      const error = await rejectionOf(device.stream.launch(shifted, 10, { x: part, y: device.zeros(10), by: 5 }).done);
      expect(error).toBeInstanceOf(BoundsError);
      expect(error).toMatchObject({ array: 'x', limit: 10 });
    });

    rule('S1035', 'a graph uses pinned arrays as they are at each launch', async () => {
      const { device } = chapter;
      using x = device.pinned(COUNT, 'f32');
      using y = device.pinned(COUNT, 'f32');
      using z = device.zeros(COUNT);
      y.data.fill(0);
      const graph = device.stream.capture(() => {
        device.stream.launch(added, COUNT, { x, y });
        device.stream.launch(added, COUNT, { x: y, y: z });
      });
      for (let n = 1; n <= 3; n++) {
        x.data.fill(n);
        await device.stream.launch(graph).done;
        expect(y.data).toEqual(all((n * (n + 1)) / 2));
      }
      expect(await z.read()).toEqual(all(1 + 3 + 6));
      await graph.close();
      using condition = device.full(1, 1, 'i32');
      await device.stream.captureIf(condition, () => device.stream.launch(added, COUNT, { x, y })).done;
      expect(y.data).toEqual(all(9));
    });

    rule('S1035', 'a failed node poisons the pinned arrays that the graph writes, until the failure was reported', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.ones(COUNT);
      using y = device.pinned(COUNT, 'f32');
      using z = device.zeros(COUNT);
      const graph = stream.capture(() => {
        stream.launch(shifted, COUNT, { x, y, by: 1 });
      });
      const failed = stream.launch(graph);
      const behind = stream.launch(added, COUNT, { x: y, y: z });
      expect(await rejectionOf(behind.done)).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(failed.done)).toBeInstanceOf(BoundsError);
      y.data.fill(1);
      device.stream.fill(z, 1);
      stream.launch(added, COUNT, { x: y, y: z });
      expect(await z.read()).toEqual(all(2));
      await graph.close();
      await stream.close();
    });
  });
});
