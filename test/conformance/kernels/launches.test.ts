// Chapter 4, first half: launching, shapes, scalars, and CUDA C++ source.
import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  bool,
  CompileError,
  cudaKernel,
  cudaModule,
  type CudaParams,
  f32,
  f64,
  i16,
  i32,
  i64,
  i8,
  inout,
  input,
  output,
  u16,
  u32,
  u64,
  u8,
  type Kernel,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { unbuiltKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

const saxpy = cudaKernel(
  'saxpy',
  { n: i32, a: f32, x: input(f32), y: inout(f32) },
  `extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}`,
);

const where = cudaKernel(
  'where',
  { out: output(i32) },
  `extern "C" __global__ void where(int* out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}`,
);

const scalars = cudaKernel(
  'scalars',
  { b: bool, c: i8, d: u8, e: i16, f: u16, g: i32, h: u32, k: i64, l: u64, m: f32, n: f64, out: output(f64), wide: output(u64) },
  `extern "C" __global__ void scalars(bool b, signed char c, unsigned char d, short e, unsigned short f, int g, unsigned int h,
    long long k, unsigned long long l, float m, double n, double* out, unsigned long long* wide) {
  out[0] = b; out[1] = c; out[2] = d; out[3] = e; out[4] = f; out[5] = g; out[6] = h; out[7] = m; out[8] = n;
  wide[0] = (unsigned long long)k; wide[1] = l;
}`,
);

defineChapter((target) => {
  describe('4 kernels: launches', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S401', 'a CUDA C++ kernel runs over a grid of blocks', async () => {
      const { device } = chapter;
      const n = 10_007;
      using x = device.from(Float32Array.from({ length: n }, (_, i) => i));
      using y = device.full(n, 0.5);
      device.stream.launch(saxpy, { grid: Math.ceil(n / 128), block: 128 }, { n, a: 2, x, y });
      const values = await y.read();
      expect(values).toEqual(Float32Array.from({ length: n }, (_, i) => 2 * i + 0.5));
    });

    rule('S402', 'grid and block have up to three dimensions, x first', async () => {
      const { device } = chapter;
      using out = device.full(2 * 3 * 4 * 5 * 2 * 3, -1, 'i32');
      device.stream.launch(where, { grid: [2, 3, 4], block: [5, 2, 3] }, { out });
      const values = await out.read();
      const expected = Int32Array.from({ length: 720 }, (_, i) => Math.floor(i / 30) * 1000 + (i % 30));
      expect(values).toEqual(expected);
    });

    rule('S402', 'a launch by a number of threads runs at least that many threads', async () => {
      const { device } = chapter;
      for (const n of [1, 31, 257, 5000]) {
        using x = device.ones(n);
        using y = device.zeros(n);
        device.stream.launch(saxpy, n, { n, a: 3, x, y });
        expect(
          (await y.read()).every((value) => value === 3),
          `${n} threads`,
        ).toBe(true);
      }
    });

    rule('S403', 'a launch of no threads does nothing and completes', async () => {
      const { device } = chapter;
      using x = device.ones(4);
      using y = device.zeros(4);
      await device.stream.launch(saxpy, 0, { n: 4, a: 1, x, y }).done;
      expect(await y.read()).toEqual(new Float32Array(4));
    });

    rule('S404', 'scalars of every type arrive exactly', async () => {
      const { device } = chapter;
      using out = device.zeros(9, 'f64');
      using wide = device.zeros(2, 'u64');
      const values = { b: true, c: -128, d: 255, e: -32768, f: 65535, g: -2147483648, h: 4294967295, m: 0.1, n: 0.1 };
      device.stream.launch(scalars, { grid: 1, block: 1 }, { ...values, k: -1n, l: 2n ** 64n - 1n, out, wide });
      expect([...(await out.read())]).toEqual([1, -128, 255, -32768, 65535, -2147483648, 4294967295, Math.fround(0.1), 0.1]);
      expect([...(await wide.read())]).toEqual([2n ** 64n - 1n, 2n ** 64n - 1n]);
    });

    rule('S404', 'a scalar outside its type is refused with its value', () => {
      const { device } = chapter;
      using x = device.ones(4);
      using y = device.zeros(4);
      for (const n of [2 ** 31, 1.5, Number.NaN]) {
        const error = thrownBy(() => device.stream.launch(saxpy, 4, { n, a: 1, x, y }));
        expect(error, String(n)).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(String(n));
      }
    });

    rule('S405', 'an argument behind the last is refused with what to do instead, and nothing runs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.ones(4);
      const calls: Readonly<Record<string, () => unknown>> = {
        '{ threads: 1000, block: 128, label:': () =>
          stream.launch(saxpy, 4, { n: 4, a: 1, x, y: x }, ...([{ label: 'blur' }] as unknown as [])),
        // As CuPy has it.
        'are of the shape': () => stream.launch(saxpy, 1, 4 as never, ...([{ n: 4, a: 1, x, y: x }] as unknown as [])),
        'give a view of it': () => stream.fill(x, 0, ...([2] as unknown as [])),
        "the module's function zeros": () => device.zeros(4, 'f32', ...([{ stream }] as unknown as [])),
        "the module's function full": () => stream.full(4, 1, 'f32', ...([stream] as unknown as [])),
      };
      for (const [remedy, call] of Object.entries(calls)) {
        const error = thrownBy(call) as ArgumentError;
        expect(error, remedy).toBeInstanceOf(ArgumentError);
        expect(error.argument).toBe('surplus');
        expect(error.message).toContain('has an argument more than it takes (');
        expect(error.message).toContain(remedy);
      }
      expect(await x.read()).toEqual(new Float32Array([1, 1, 1, 1]));
      await stream.close();
    });

    rule('S405', 'missing, extra and wrong arguments are refused by name, and the stream continues', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.ones(4);
      using y = stream.zeros(4);
      using ints = stream.zeros(4, 'i32');
      const launch = (args: object): unknown => stream.launch(saxpy as Kernel, 4, args as never);
      const bad: readonly (readonly [object, string])[] = [
        [{ n: 4, a: 1, x }, 'y'],
        [{ n: 4, a: 1, x, y, z: 3 }, 'z'],
        [{ n: 4, a: 1, x: ints, y }, 'i32'],
        [{ n: 4, a: 'one', x, y }, 'one'],
        [{ n: 4, a: 1, x: 7, y }, 'x'],
      ];
      for (const [args, shown] of bad) {
        const error = thrownBy(() => launch(args));
        expect(error, shown).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(shown);
      }
      stream.launch(saxpy, 4, { n: 4, a: 2, x, y });
      expect(await y.read()).toEqual(new Float32Array([2, 2, 2, 2]));
      await stream.close();
    });

    rule('S406', 'a source that does not compile is a CompileError with the line of the source', async () => {
      const { device } = chapter;
      const broken = cudaKernel(
        'broken',
        { x: inout(f32) },
        `extern "C" __global__ void broken(float* x) {
  int good = 0;
  x[0] = undeclared_name + good;
}`,
      );
      const error = (await rejectionOf(device.compile(broken))) as CompileError;
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toContain('broken');
      const diagnostic = error.diagnostics.find(({ message }) => message.includes('undeclared_name'));
      expect(diagnostic?.line).toBeGreaterThan(0);
      expect(lineOf(diagnostic!.file, diagnostic!.line)).toContain('x[0] = undeclared_name + good');
      expect(error.log).toContain('undeclared_name');
    });

    rule('S407', 'a parameter list that differs from the source is refused with the name of the parameter', () => {
      const text = 'extern "C" __global__ void pair(float* first, int second) { first[0] = (float)second; }';
      const wrong: readonly (() => unknown)[] = [
        () => cudaKernel('pair', { first: inout(f32), second: f32 }, text),
        () => cudaKernel('pair', { first: inout(f64), second: i32 }, text),
        () => cudaKernel('pair', { first: inout(f32) }, text),
        () => cudaKernel('pair', { second: i32, first: inout(f32) }, text),
      ];
      for (const make of wrong) {
        const error = thrownBy(make);
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(/first|second/);
      }
    });

    rule('S407', 'a type that the source declares is compared as the type that it stands for', async () => {
      const { device } = chapter;
      const types = 'typedef unsigned long long Id; struct Pair { int a; float b; }; enum class Mode : unsigned char { off, on };';
      const text = `${types} extern "C" __global__ void keep(Id* out, Id id, Mode mode) { out[0] = id; out[1] = (Id)mode; }`;
      const params = { out: inout(u64), id: u64, mode: u8 };
      for (const wrong of [{ id: i32 }, { id: f64 }, { mode: i32 }, { out: inout(f64) }]) {
        const error = thrownBy(() => cudaKernel('keep', { ...params, ...wrong }, text));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(`'${Object.keys(wrong)[0]!}'`);
      }
      for (const type of ['Pair', 'float4'])
        expect(thrownBy(() => cudaKernel('k', { p: f32 }, `${types} extern "C" __global__ void k(${type} p) {}`))).toBeInstanceOf(
          ArgumentError,
        );
      using out = device.stream.zeros(2, 'u64');
      device.stream.launch(cudaKernel('keep', params, text), { grid: 1, block: 1 }, { out, id: 2n ** 64n - 1n, mode: 200 });
      expect(await out.read()).toEqual(new BigUint64Array([2n ** 64n - 1n, 200n]));
    });

    rule('S407', 'a type that only the compiler knows is compared by the compiler', async () => {
      // The compiler of the fake driver rewrites parameter lists before it compiles.
      if (target.name === 'fake-cuda') return;
      const { device } = chapter;
      const text = `#define N 1
namespace own { template <class T> struct Of { typedef T Value; }; typedef double Real; }
extern "C" __global__ void put(own::Real* out, own::Real a, own::Of<long long>::Value b) { out[0] = a; out[N] = b; }`;
      const params = { out: inout(f64), a: f64, b: i64 };
      // Every type and its wrong ones: test/unit/toolchain/parameter-checks.test.ts.
      for (const [wrong, make] of [
        [{ a: i64 }, (own: CudaParams) => cudaKernel('put', own, text)],
        [{ out: inout(f32) }, (own: CudaParams) => cudaModule(text).kernel('put', own)],
      ] as const) {
        const error = (await rejectionOf(device.compile(make({ ...params, ...wrong })))) as CompileError;
        expect(error).toBeInstanceOf(CompileError);
        expect(error.message).toContain(`The parameter '${Object.keys(wrong)[0]!}' (${Object.values(wrong)[0]!.dtype}`);
        expect(error.message).toContain('own::');
      }
      for (const kernel of [cudaKernel('put', params, text), cudaModule(text).kernel('put', params)]) {
        using out = device.stream.zeros(2, 'f64');
        device.stream.launch(kernel, { grid: 1, block: 1 }, { out, a: 0.1, b: -5n });
        expect(await out.read()).toEqual(new Float64Array([0.1, -5]));
      }
    });

    rule('S407', 'a source without the named kernel is a CompileError', () => {
      const text = 'extern "C" __global__ void present(float* x) { x[0] = 1; }';
      const error = thrownBy(() => cudaKernel('absent', { x: inout(f32) }, text));
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toContain('absent');
    });

    rule('S408', 'building a kernel delays only the streams that need it', async () => {
      const { device } = chapter;
      const needs = device.createStream();
      const free = device.createStream();
      using x = needs.zeros(1, 'i32');
      using y = free.zeros(1, 'i32');
      await device.synchronize();
      const build = needs.launch(unbuiltKernel(), { grid: 1, block: 1 }, { x });
      const fill = free.fill(y, 1);
      const first = await Promise.race([build.done.then(() => 'build'), fill.done.then(() => 'fill')]);
      expect(first).toBe('fill');
      await build.done;
      expect((await x.read())[0]).toBe(1);
      await Promise.all([needs.close(), free.close()]);
    });

    rule('S408', 'work after a launch whose kernel is being built keeps its order', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const kernel = unbuiltKernel();
      using x = stream.zeros(1, 'i32');
      stream.launch(kernel, { grid: 1, block: 1 }, { x });
      stream.fill(x, 10);
      stream.launch(kernel, { grid: 1, block: 1 }, { x });
      expect((await x.read())[0]).toBe(11);
      await stream.close();
    });

    rule('S409', 'compile builds ahead, and only once', async () => {
      const { device } = chapter;
      const kernel = unbuiltKernel();
      await Promise.all([device.compile(kernel), device.compile(kernel, saxpy)]);
      using x = device.zeros(1, 'i32');
      await device.stream.launch(kernel, { grid: 1, block: 1 }, { x }).done;
      expect((await x.read())[0]).toBe(1);
    });
  });
});

/** A line of the file that a diagnostic names. */
function lineOf(file: string | undefined, line: number): string {
  return file === undefined ? '' : (readFileSync(file, 'utf8').split('\n')[line - 1] ?? '');
}
