// Test kernels get structs, vectors, bytes and null pointers as values of JavaScript.
import { afterEach, expect, test } from 'vitest';
import type { Device } from '../../../src/core/api/device.js';
import {
  arrayOf,
  bytes,
  cudaKernel,
  dim3,
  f16,
  f32,
  i16,
  i64,
  i8,
  inout,
  input,
  optional,
  struct,
  u8,
  UpstreamError,
  vec3f,
} from '../../../src/index.js';
import { createTestClock, createTestDevice, testKernel } from '../../../src/testing/index.js';

const opened: Device[] = [];
afterEach(async () => {
  for (const device of opened.splice(0)) await device.destroy();
});

const P = struct({
  a: i8,
  b: i16,
  c: i64,
  h: f16,
  o: vec3f,
  m: arrayOf(arrayOf(u8, 2), 2),
  in: struct({ x: input(f32), none: optional(input(f32)) }),
  y: inout(f32),
});
const step = cudaKernel(
  'step',
  { p: P, d: dim3, raw: bytes(3), bias: optional(input(f32)) },
  '__global__ void step(P p, dim3 d, R raw, const float* bias) {}',
);

test('a launch gives the values, and what the kernel writes through a pointer is ordered', async () => {
  const clock = createTestClock();
  const seen: unknown[] = [];
  const known = testKernel(step, {
    ms: 5,
    run: ({ p, d, raw, bias }) => {
      const { y, in: inner, ...rest } = p;
      seen.push(rest, inner.none, d, [...raw], bias && [...bias]);
      inner.x.forEach((value, at) => (y[at] = value + (bias?.[at] ?? 0)));
    },
  });
  const device = createTestDevice({ clock, kernels: [known] });
  opened.push(device);
  const x = device.from([1, 2]);
  const y = device.zeros(2);
  const bias = device.full(2, 10);
  const p = {
    a: -1,
    b: -300,
    c: -5n,
    h: 0.5,
    o: [1, 2, 3],
    m: [
      [1, 2],
      [3, 4],
    ],
    in: { x, none: null },
    y,
  } as const;
  const rest = { d: [4, 5], raw: Uint8Array.of(7, 8, 9) } as const;
  device.createStream().launch(step, 1, { p, ...rest, bias });
  const first = await clock.run(() => y.read());
  device.createStream().launch(step, 1, { p, ...rest, bias: null });
  const second = await clock.run(() => y.read());
  expect([[...first], [...second]]).toEqual([
    [11, 12],
    [1, 2],
  ]);
  const values = {
    a: -1,
    b: -300,
    c: -5n,
    h: 0.5,
    o: [1, 2, 3],
    m: [
      [1, 2],
      [3, 4],
    ],
  };
  expect(seen).toEqual([values, null, [4, 5, 1], [7, 8, 9], [10, 10], values, null, [4, 5, 1], [7, 8, 9], null]);
});

test('a failed launch poisons what a pointer in its struct writes', async () => {
  const clock = createTestClock();
  const known = testKernel(step, {
    run: () => {
      throw new Error('no');
    },
  });
  const device = createTestDevice({ clock, kernels: [known] });
  opened.push(device);
  const x = device.zeros(2);
  const y = device.zeros(2);
  const p = {
    a: 0,
    b: 0,
    c: 0,
    h: 0,
    o: [0, 0, 0],
    m: [
      [0, 0],
      [0, 0],
    ],
    in: { x, none: null },
    y,
  } as const;
  const launched = device.stream.launch(step, 1, { p, d: 1, raw: new Uint8Array(3), bias: null });
  await clock.run(async () => {
    await expect(launched.done).rejects.toThrow('no');
    await expect(y.read()).rejects.toThrow(UpstreamError);
    await x.read();
  });
});
