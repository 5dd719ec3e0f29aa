// Chapter 4: mistakes in parameters by value, each refused with both types or with the path of the field, and null pointers.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  bytes,
  cudaKernel,
  dim3,
  f32,
  f64,
  i32,
  inout,
  input,
  kernel,
  optional,
  output,
  struct,
  vec3f,
  vec4f,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const step = cudaKernel(
  'step',
  { p: struct({ x: input(f32), y: inout(f32), n: i32, scale: f32 }) },
  `struct Params { const float* x; float* y; int n; float scale; };
__global__ void step(Params p) { p.y[threadIdx.x] = p.scale * p.x[threadIdx.x]; }`,
);
const BIASED = `__global__ void biased(const float* x, const float* bias, float* sum, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i] + (bias ? bias[i] : 0.0f);
  if (sum != nullptr && i == 0) sum[0] = 1;
}`;
const biased = cudaKernel(
  'biased',
  { x: input(f32), bias: optional(input(f32)), sum: optional(inout(f32)), y: output(f32), n: i32 },
  BIASED,
);

defineChapter((target) => {
  describe('4 kernels: refused parameters by value, and null', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S447', 'a struct that differs from the one in the source is refused, with both types', () => {
      const before = 'struct P { int n; float3 o; const float* x; };\n__global__ void k(P p) {}';
      for (const [p, message] of [
        [
          struct({ n: i32, o: vec3f }),
          /\(struct of 16 bytes\) is 'P p' in the source, at position 1: it has 2 fields in the declaration and 3 in the source/,
        ],
        [struct({ n: f32, o: vec3f, x: input(f32) }), /its field 'n' \(f32\) is 'int n' there: the element type differs/],
        [struct({ n: i32, o: vec4f, x: input(f32) }), /its field 'o' \(float4\) is 'float3 o' there: it is float3 there/],
        [
          struct({ n: i32, o: vec3f, x: inout(f32) }),
          /its field 'x' \(f32\*\) is 'const float \* x' there: an inout array cannot be const/,
        ],
        [struct({ o: vec3f, n: i32, x: input(f32) }), /its field 'o' is field 1 of the declaration and field 2 of the source/],
        [i32, /a struct passed by value is declared with struct/],
      ] as const) {
        const made = thrownBy(() => cudaKernel('k', { p } as never, before));
        expect(made).toBeInstanceOf(ArgumentError);
        expect((made as Error).message).toMatch(message);
      }
    });

    rule('S447', 'the compiler compares what tokens do not tell', async () => {
      const { device } = chapter;
      const before = 'struct P { int n; float3 o; };\n__global__ void k(P p) {}';
      const vector = cudaKernel('k', { p: vec3f }, before);
      await expect(device.stream.launch(vector, { grid: 1, block: 1 }, { p: [1, 2, 3] }).done).rejects.toThrow(/\(float3\)/);
      const hidden = cudaKernel(
        'k',
        { p: struct({ n: i32, t: f64 }) },
        'struct P { int n; float t; __device__ void f() {} }; __global__ void k(P p) {}',
      );
      const launched = device.stream.launch(hidden, { grid: 1, block: 1 }, { p: { n: 1, t: 2 } });
      await expect(launched.done).rejects.toThrow(
        /The parameter 'p' \(struct of 16 bytes\) is 'P p' in the source, at position 1: its size/,
      );
    });

    rule('S447', 'a value of another shape or type is refused with its path, and nothing is submitted', async () => {
      const { device } = chapter;
      using x = device.zeros(4);
      using ints = device.zeros(4, 'i32');
      const good = { x, y: x, n: 4, scale: 1 };
      const launch = (p: unknown): unknown => thrownBy(() => device.stream.launch(step, { grid: 1, block: 1 }, { p } as never));
      for (const [p, argument, message] of [
        [undefined, 'p', /Argument p of kernel step is missing/],
        [null, 'p', /\(null\) is not an object with x, y, n, scale/],
        [[x, x, 4, 1], 'p', /is not an object with x, y, n, scale/],
        [{ ...good, n: undefined }, 'p.n', /p\.n of kernel step is missing/],
        [{ ...good, n: 1.5 }, 'p.n', /The i32 p\.n \(1\.5\) is not a whole number/],
        [{ ...good, n: 2 ** 31 }, 'p.n', /exceeds the limit \(2147483647\)/],
        [{ ...good, m: 1 }, "p.'m'", /has no field 'm': p of kernel step has x, y, n, scale/],
        [{ ...good, x: 5 }, 'p.x', /p\.x of kernel step \(5\) is not a device array/],
        [{ ...good, x: null }, 'p.x', /A null pointer needs optional/],
        [{ ...good, y: ints }, 'p.y', /has dtype i32; the kernel takes f32/],
      ] as const) {
        const error = launch(p);
        expect(error, String(message)).toBeInstanceOf(ArgumentError);
        expect((error as Error).message).toMatch(message);
        expect((error as ArgumentError).argument).toBe(argument);
      }
      const all = cudaKernel(
        'take_all',
        { v: vec3f, b: bytes(4), d: dim3 },
        'struct B { char c[4]; }; __global__ void take_all(float3 v, B b, dim3 d) {}',
      );
      const fine = { v: [1, 2, 3], b: new Uint8Array(4), d: 1 };
      for (const [change, argument, limit] of [
        [{ v: [1, 2] }, 'v', 3],
        [{ v: { x: 1, y: 2 } }, 'v.z', undefined],
        [{ v: 3 }, 'v', undefined],
        [{ b: new Uint8Array(5) }, 'b', 4],
        [{ b: [1, 2, 3, 4] }, 'b', undefined],
        [{ d: [1, 2, 3, 4] }, 'd', 3],
        [{ d: -1 }, 'd.x', 0],
        [{ d: null }, 'd.x', undefined],
      ] as const) {
        const error = thrownBy(() => device.stream.launch(all, { grid: 1, block: 1 }, { ...fine, ...change } as never));
        expect(error).toBeInstanceOf(ArgumentError);
        expect([(error as ArgumentError).argument, (error as ArgumentError).limit]).toEqual([argument, limit]);
      }
      await device.stream.launch(all, { grid: 1, block: 1 }, fine as never).done;
    });

    rule('S448', 'null for an optional array is a null pointer, of a parameter and of a struct', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3]);
      using bias = device.full(3, 10);
      using sum = device.zeros(1);
      using y = device.zeros(3);
      const shape = { grid: 1, block: 32 };
      device.stream.launch(biased, shape, { x, bias, sum: null, y, n: 3 });
      expect([[...(await y.read())], await sum.item(0)]).toEqual([[11, 12, 13], 0]);
      device.stream.launch(biased, shape, { x, bias: null, sum, y, n: 3 });
      expect([[...(await y.read())], await sum.item(0)]).toEqual([[1, 2, 3], 1]);
      const source = `struct P { const float* x; const float* bias; float* y; };
__global__ void k(P p) { int i = threadIdx.x; p.y[i] = p.x[i] * 2 + (p.bias ? p.bias[i] : 0); }`;
      const inside = cudaKernel('k', { p: struct({ x: input(f32), bias: optional(input(f32)), y: output(f32) }) }, source);
      for (const [given, more] of [
        [bias, 10],
        [null, 0],
      ] as const) {
        device.stream.launch(inside, { grid: 1, block: 3 }, { p: { x, bias: given, y } });
        expect([...(await y.read())]).toEqual([2 + more, 4 + more, 6 + more]);
      }
    });

    rule('S448', 'null is refused for other arrays, and for every array of a TypeScript kernel', async () => {
      const { device } = chapter;
      using x = device.zeros(3);
      const given = { x, bias: x, sum: null, y: x, n: 3 };
      const launch = (change: object): unknown => thrownBy(() => device.stream.launch(biased, 1, { ...given, ...change } as never));
      expect(launch({ x: null })).toBeInstanceOf(ArgumentError);
      expect(launch({ bias: undefined })).toBeInstanceOf(ArgumentError);
      expect((launch({ x: null }) as Error).message).toMatch(
        /Argument x of kernel biased \(null\) is not a device array\. A null pointer needs optional/,
      );
      const typed = kernel('typed', { y: inout(f32) }, ({ y }, { i }) => {
        y[i] = 1;
      });
      expect(thrownBy(() => device.stream.launch(typed, 3, { y: null } as never))).toBeInstanceOf(ArgumentError);
      const refused = thrownBy(() => kernel('refused', { y: optional(inout(f32)) } as never, ((): void => undefined) as never));
      expect(refused).toBeInstanceOf(ArgumentError);
      expect((refused as Error).message).toMatch(/arrays that may be null are for kernels in CUDA C\+\+/);
      await device.synchronize();
    });
  });
});
