// Graphs on a test device: their time, what each launch fills in, and failures.
import { afterEach, expect, test } from 'vitest';
import type { Device } from '../../../src/core/api/device.js';
import { i32, inout, input, kernel, output, UpstreamError } from '../../../src/index.js';
import { createTestClock, createTestDevice, type TestClock, testKernel } from '../../../src/testing/index.js';

const add = kernel('add', { x: inout(i32), by: i32 }, ({ x, by }, { i }) => {
  x[i] = x[i]! + by;
});
const unknown = kernel('unknown', { x: inout(i32) }, ({ x }, { i }) => {
  x[i] = 0;
});

const opened: Device[] = [];
afterEach(async () => {
  for (const device of opened.splice(0)) await device.destroy();
});

/** A launch takes a millisecond for each thread. */
function bench(): { readonly clock: TestClock; readonly device: Device } {
  const clock = createTestClock();
  const known = testKernel(add, {
    ms: ({ threads }) => threads[0],
    run: ({ x, by }) => {
      if (by < 0) throw new Error('below zero');
      x.forEach((value, at) => (x[at] = value + by));
    },
  });
  const device = createTestDevice({ clock, kernels: [known] });
  opened.push(device);
  return { clock, device };
}

test('takes as long as its longest path', async () => {
  const { clock, device } = bench();
  const [one, other] = [device.createStream(), device.createStream()];
  const [x, y] = [one.zeros(5, 'i32'), other.zeros(2, 'i32')];
  await clock.run(() => device.synchronize());
  const graph = one.capture((s) => {
    s.launch(add, 1, { x, by: 1 });
    other.waitStream(s);
    s.launch(add, 5, { x, by: 10 });
    other.launch(add, 2, { x: y, by: 1 });
    s.waitStream(other);
    s.launch(add, 4, { x, by: 100 });
  });
  const launched = one.launch(graph);
  await clock.advance(9);
  expect(launched.isComplete).toBe(false);
  await clock.advance(1);
  await launched.done;
  expect([[...(await x.read())], [...(await y.read())]]).toEqual([Array(5).fill(111), [1, 1]]);
});

test('each launch fills in the arrays and values of kernels, copies and fills', async () => {
  const { clock, device } = bench();
  const { stream } = device;
  const [all, others] = [device.from(Int32Array.of(1, 2, 3)), device.from(Int32Array.of(4, 5, 6, 7, 8))];
  const graph = stream.capture({ x: inout(i32), y: output(i32), z: output(i32), from: input(i32), n: i32 }, (s, { x, y, z, from, n }) => {
    s.launch(add, 1, { x, by: n });
    s.copy(y, from, { srcOffset: 1, count: 2 });
    s.fill(z, n);
  });
  for (const n of [10, 20]) {
    const [y, z] = [device.zeros(2, i32), device.zeros(3, i32)];
    stream.launch(graph, { x: all.subarray(1), y, z: z.subarray(1), from: n === 10 ? others : others.subarray(2), n });
    const read = await clock.run(() => Promise.all([y.read(), z.read()]));
    expect(read.map((values) => [...values])).toEqual([n === 10 ? [5, 6] : [7, 8], [0, n, n]]);
  }
  expect([...(await clock.run(() => all.read()))]).toEqual([1, 32, 33]);
});

test('a failure names its node and poisons all that the graph writes; a graph that writes an array first does not read its poison', async () => {
  const { clock, device } = bench();
  const { stream } = device;
  const [x, y] = [device.zeros(1, i32), device.zeros(1, i32)];
  const graph = stream.capture({ by: i32 }, (s, { by }) => {
    s.fill(y, 3);
    s.fill(x, 7);
    s.launch(add, 1, { x, by });
  });
  const failed = stream.launch(graph, { by: -1 });
  await clock.run(async () => {
    await expect(failed.done).rejects.toThrow(/^Node 2 \(launch add\) of graph default .*below zero/);
    for (const array of [x, y]) await expect(array.read()).rejects.toThrow(UpstreamError);
  });
  const again = stream.launch(graph, { by: 1 });
  await clock.run(() => again.done);
  expect([...(await x.read()), ...(await y.read())]).toEqual([8, 3]);
  const never = stream.capture((s) => void s.launch(unknown, 1, { x }));
  await expect(clock.run(() => stream.launch(never).done)).rejects.toThrow(/no testKernel for kernel unknown/);
});
