// Chapter 4: structs, vectors and bytes that kernels of CUDA C++ take by value.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  arrayOf,
  bool,
  bytes,
  CaptureError,
  CompileError,
  cudaKernel,
  cudaModule,
  dim3,
  f16,
  f32,
  f64,
  i16,
  i32,
  i64,
  i8,
  inout,
  input,
  output,
  struct,
  u16,
  u32,
  u64,
  u8,
  UpstreamError,
  vec,
  vec2d,
  vec2f,
  vec3f,
  vec4d,
  vec4f,
  vec4i,
} from 'millrace';
import type { Device, Kernel } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

const EVERY = `
struct Inner { signed char a; double b; };
struct Every {
  bool yes; signed char c; unsigned char d; short e; unsigned short f; int g; unsigned h; long long k; unsigned long long l;
  unsigned short half; float m; double n; float2 v2; float3 v3; float4 v4; double2 w2; double4 w4; int4 q; uchar4 r; dim3 size;
  float table[2][3]; Inner inner[2];
};
__global__ void every(Every p, double* y) {
  int i = 0;
  y[i++] = p.yes; y[i++] = p.c; y[i++] = p.d; y[i++] = p.e; y[i++] = p.f; y[i++] = p.g; y[i++] = p.h; y[i++] = p.k; y[i++] = p.l;
  y[i++] = p.half; y[i++] = p.m; y[i++] = p.n; y[i++] = p.v2.y; y[i++] = p.v3.z; y[i++] = p.v4.w; y[i++] = p.w2.y; y[i++] = p.w4.w;
  y[i++] = p.q.w; y[i++] = p.r.z; y[i++] = p.size.x * 100 + p.size.y * 10 + p.size.z; y[i++] = p.table[1][2];
  y[i++] = p.inner[1].a; y[i++] = p.inner[1].b;
}`;
const Every = struct({
  yes: bool,
  c: i8,
  d: u8,
  e: i16,
  f: u16,
  g: i32,
  h: u32,
  k: i64,
  l: u64,
  half: f16,
  m: f32,
  n: f64,
  v2: vec2f,
  v3: vec3f,
  v4: vec4f,
  w2: vec2d,
  w4: vec4d,
  q: vec4i,
  r: vec(u8, 4),
  size: dim3,
  table: arrayOf(arrayOf(f32, 3), 2),
  inner: arrayOf(struct({ a: i8, b: f64 }), 2),
});
const EVERY_VALUE = {
  yes: true,
  c: -5,
  d: 250,
  e: -30_000,
  f: 60_000,
  g: -2_000_000_000,
  h: 4_000_000_000,
  k: -(2n ** 40n),
  l: 2n ** 50n,
  half: 1.5,
  m: 0.25,
  n: Math.PI,
  v2: [1, 2],
  v3: { x: 1, y: 2, z: 3 },
  v4: new Float32Array([1, 2, 3, 4]),
  w2: [0, 0.1],
  w4: [0, 0, 0, 0.2],
  q: [0, 0, 0, -9],
  r: [1, 2, 200, 4],
  size: [3, 2],
  table: [
    [0, 0, 0],
    [0, 0, 7.5],
  ],
  inner: [
    { a: 0, b: 0 },
    { a: -1, b: 8.125 },
  ],
} as const;
const EVERY_RESULT = [
  1,
  -5,
  250,
  -30_000,
  60_000,
  -2_000_000_000,
  4_000_000_000,
  -(2 ** 40),
  2 ** 50,
  0x3e00,
  0.25,
  Math.PI,
  2,
  3,
  4,
  0.1,
  0.2,
  -9,
  200,
  321,
  7.5,
  -1,
  8.125,
];

const STEP = `
struct Params { const float* x; float* y; int n; float scale; };
__global__ void step(Params p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.y[i] = p.scale * p.x[i] + 1;
}
template <typename T> __global__ void step_of(T p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.y[i] = p.scale * p.x[i] + 2;
}
__global__ void meets(Params p) {
  p.n += threadIdx.x;
  p.scale = p.n * 2;
  __syncthreads();
  p.y[threadIdx.x] = p.x[0] + p.n + p.scale;
}`;
const Params = struct({ x: input(f32), y: inout(f32), n: i32, scale: f32 });
const step = cudaKernel('step', { p: Params }, STEP);

function largest(byteLength: number): Kernel<{ p: ReturnType<typeof bytes>; y: ReturnType<typeof inoutBytes> }> {
  const source = `struct Large { unsigned char at[${byteLength}]; };
__global__ void large(Large p, unsigned char* y) { y[0] = p.at[0]; y[1] = p.at[${byteLength - 1}]; y[2] = p.at[threadIdx.x + ${byteLength >> 1}]; }`;
  return cudaKernel('large', { p: bytes(byteLength), y: inoutBytes() }, source);
}
const inoutBytes = () => inout(u8);
/** A pointer after bytes whose number is a multiple of 8 takes 8 more. */
const [SMALL_LIMIT, LARGE_LIMIT] = [4096, 32_764];

defineChapter((target) => {
  describe('4 kernels: parameters by value', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S447', 'a struct with fields of every type reaches the kernel exactly', async () => {
      const { device } = chapter;
      using y = device.zeros(EVERY_RESULT.length, 'f64');
      const every = cudaKernel('every', { p: Every, y: output(f64) }, EVERY);
      device.stream.launch(every, { grid: 1, block: 1 }, { p: EVERY_VALUE, y });
      expect([...(await y.read())]).toEqual(EVERY_RESULT.map((value, at) => ([10].includes(at) ? Math.fround(value) : value)));
    });

    rule('S447', 'vectors, dim3 and bytes are parameters of their own', async () => {
      const { device } = chapter;
      const source = `struct Odd { char c[7]; };
__global__ void take_all(char pre, float3 v, Odd o, double4 w, dim3 d, uchar2 u, float* y) {
  y[0] = pre; y[1] = v.x + 10 * v.y + 100 * v.z; y[2] = o.c[6]; y[3] = w.w; y[4] = d.x + 10 * d.y + 100 * d.z; y[5] = u.y;
}`;
      const all = cudaKernel('take_all', { pre: i8, v: vec3f, o: bytes(7), w: vec4d, d: dim3, u: vec(u8, 2), y: output(f32) }, source);
      using y = device.zeros(6);
      const o = Uint8Array.of(0, 0, 0, 0, 0, 0, 77);
      for (const [v, d, sizes] of [
        [[1, 2, 3], 4, 114],
        [{ x: 1, y: 2, z: 3 }, [4, 5], 154],
        [new Float32Array([1, 2, 3]), { z: 6, x: 4 }, 614],
      ] as const) {
        device.stream.launch(all, { grid: 1, block: 1 }, { pre: -3, v, o, w: [0, 0, 0, 4.5], d, u: [8, 9], y });
        expect([...(await y.read())]).toEqual([-3, 321, 77, 4.5, sizes, 9]);
      }
    });

    rule('S447', 'each thread has its own copy, which it may change', async () => {
      const { device } = chapter;
      using x = device.full(1, 1000);
      using y = device.zeros(64);
      const meets = cudaKernel('meets', { p: Params }, STEP);
      device.stream.launch(meets, { grid: 1, block: 64 }, { p: { x, y, n: 3, scale: 0 } });
      expect([...(await y.read())]).toEqual(Array.from({ length: 64 }, (_, i) => 1000 + 3 * (3 + i)));
    });

    const made = [
      ['kernels of modules take structs', () => cudaModule(STEP).kernel('step', { p: Params }), 1],
      ['templates take structs', () => cudaKernel('step_of<Params>', { p: Params }, STEP), 2],
    ] as const;
    for (const [title, make, more] of made) {
      rule('S447', title, async () => {
        const { device } = chapter;
        using x = device.from([1, 2, 3]);
        using y = device.zeros(3);
        device.stream.launch(make(), { grid: 1, block: 32 }, { p: { x, y, n: 3, scale: 10 } });
        expect([...(await y.read())]).toEqual([10 + more, 20 + more, 30 + more]);
      });
    }

    rule('S447', 'pointers in a struct are ordered and poisoned like array arguments', async () => {
      const { device } = chapter;
      using x = device.zeros(1 << 16);
      using y = device.zeros(1 << 16);
      const [one, other] = [device.createStream(), device.createStream()];
      one.fill(x, 3);
      other.launch(step, { threads: x.length, block: 256 }, { p: { x, y, n: x.length, scale: 2 } });
      one.launch(step, { threads: x.length, block: 256 }, { p: { x: y, y: x, n: x.length, scale: 1 } });
      expect([await y.item(7), await x.item(65_535)]).toEqual([7, 8]);

      const checked = device.createStream({ ordering: 'checked' });
      one.fill(x, 1);
      const late = thrownBy(() => checked.launch(step, { threads: 1, block: 1 }, { p: { x, y, n: 1, scale: 2 } }));
      expect(late).toMatchObject({ code: 'ERR_MILLRACE_HAZARD' });
      await device.synchronize();
      // A view of a part is ordered by its own bytes, and its pointer begins there.
      one.launch(step, { threads: 2, block: 2 }, { p: { x: x.subarray(4, 6), y: y.subarray(8, 10), n: 2, scale: 4 } });
      expect([await y.item(7), await y.item(8), await y.item(10)]).toEqual([7, 5, 7]);

      const failing = cudaKernel('none', { x: output(f32) }, '__global__ void none(float* x) { no }');
      const failed = one.launch(failing, { grid: 1, block: 1 }, { x });
      const poisoned = other.launch(step, { threads: 1, block: 1 }, { p: { x, y, n: 1, scale: 2 } });
      await expect(failed.done).rejects.toThrow(CompileError);
      await expect(poisoned.done).rejects.toThrow(UpstreamError);
    });

    rule('S449', 'parameters may be as large as the device allows, and no larger', async () => {
      const { device } = chapter;
      const { computeCapability = [7, 0] } = device.info;
      const limit = computeCapability[0] >= 7 ? LARGE_LIMIT : SMALL_LIMIT;
      using y = device.zeros(3, 'u8');
      for (const size of [SMALL_LIMIT - 8, LARGE_LIMIT - 12]) {
        if (size + 8 > limit) continue;
        const p = Uint8Array.from({ length: size }, (_, at) => at % 251);
        device.stream.launch(largest(size), { grid: 1, block: 1 }, { p, y });
        expect([...(await y.read())]).toEqual([0, (size - 1) % 251, (size >> 1) % 251]);
      }
      const error = thrownBy(() => largest(LARGE_LIMIT));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error).toMatchObject({ value: 32_776, limit: LARGE_LIMIT });
      expect(thrownBy(() => struct({ at: arrayOf(f64, 4096) }))).toMatchObject({ value: 32_768, limit: LARGE_LIMIT });
    });

    rule('S449', 'in a graph, values are fixed at the capture, and arrays in a struct may be slots', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3]);
      using y = device.zeros(3);
      const p = { x, y, n: 3, scale: 10 };
      const fixed = device.stream.capture((s) => {
        s.launch(step, { grid: 1, block: 32 }, { p });
        s.launch(step, { grid: 1, block: 32 }, { p: { ...p, x: y, y: x, scale: 1 } });
      });
      p.scale = 0;
      for (let n = 0; n < 2; n++) device.stream.launch(fixed);
      expect([...(await y.read())]).toEqual([121, 221, 321]);
      await fixed.close();

      const slotted = device.stream.capture({ from: input(f32), to: inout(f32) }, (s, { from, to }) => {
        s.launch(step, { grid: 1, block: 32 }, { p: { x: from, y: to, n: 3, scale: 5 } });
      });
      for (const value of [1, 2]) {
        using from = device.full(3, value);
        using to = device.zeros(3);
        device.stream.launch(slotted, { from, to });
        expect([...(await to.read())]).toEqual([5 * value + 1, 5 * value + 1, 5 * value + 1]);
      }
      await slotted.close();

      const refused = thrownBy(() =>
        device.stream.capture({ scale: f32 }, (s, { scale }) => {
          s.launch(step, { grid: 1, block: 32 }, { p: { x, y, n: 3, scale: scale as never } });
        }),
      );
      expect(refused).toBeInstanceOf(CaptureError);
      expect((refused as Error).message).toMatch(/slot scale is argument p\.scale of kernel step/);
    });

    rule('S449', 'a kernel that launches kernels, and a cooperative one, take structs', async () => {
      const { device } = chapter as { readonly device: Device };
      const source = `struct P { float* y; int n; double by[3]; };
__global__ void child(P p) { p.y[threadIdx.x] += p.by[2] + p.n; }
__global__ void parent(P p, int unused) { if (threadIdx.x == 0) { p.n = 100; child<<<1, 4>>>(p); } }`;
      const p = struct({ y: inout(f32), n: i32, by: arrayOf(f64, 3) });
      const parent = cudaKernel('parent', { p, unused: i32 }, source);
      using y = device.zeros(4);
      device.stream.launch(parent, { grid: 1, block: 2 }, { p: { y, n: 1, by: [0, 0, 0.5] }, unused: 0 });
      const graph = device.stream.capture((s) => {
        s.launch(parent, { grid: 1, block: 2 }, { p: { y, n: 1, by: [0, 0, 0.25] }, unused: 0 });
      });
      device.stream.launch(graph);
      expect([...(await y.read())]).toEqual([200.75, 200.75, 200.75, 200.75]);
      await graph.close();

      const together = cudaKernel('step', { p: Params }, STEP);
      using x = device.full(4, 2);
      device.stream.launch(together, { grid: 2, block: 2, cooperative: true }, { p: { x, y, n: 4, scale: 3 } });
      expect([...(await y.read())]).toEqual([7, 7, 7, 7]);
    });
  });
});
