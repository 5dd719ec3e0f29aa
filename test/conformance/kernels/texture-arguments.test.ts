// Chapter 4: the options of textures, and textures as arguments of kernels.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  arrayOf,
  CompileError,
  cudaKernel,
  cudaModule,
  f32,
  f64,
  i32,
  output,
  struct,
  surface,
  texture,
  u64,
  u8,
} from 'millrace';
import { textOf } from '../../cuda-texts/text-case.js';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { counted, N, ONE, put, show, SOURCE } from '../../support/texture-kernels.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('4 kernels: textures as arguments', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S495', 'a texture has the options that it was created with, and defaults for the others', () => {
      const { device } = chapter;
      using plain = device.createTexture({ shape: [3, 4] });
      expect(plain).toMatchObject({
        dtype: 'f32',
        channels: 1,
        filter: 'point',
        address: ['clamp', 'clamp'],
        normalizedCoordinates: false,
      });
      expect([plain.readMode, plain.byteLength, plain.length, plain.label]).toEqual(['element', 48, 12, 'texture f32[3, 4]']);
      using other = device.stream.createTexture({
        shape: 5,
        dtype: u8,
        channels: 4,
        read: 'normalizedFloat',
        filter: 'linear',
        surface: true,
      });
      expect([other.shape, other.byteLength, other.readMode, other.label]).toEqual([[5], 20, 'normalizedFloat', 'texture u8x4[5]']);
      expect(other.surface.texture).toBe(other);
    });

    rule('S495', 'bad options are refused with the value and the limit', () => {
      const { device } = chapter;
      using array = device.zeros([4, 12]);
      using wide = device.zeros([4, 16]);
      using line = device.zeros(256);
      using doubles = device.zeros(8, 'f64');
      const cases: readonly (readonly [opts: object, what: string, limit?: unknown])[] = [
        [{ shape: [] }, '1 to 3 dimensions', 3],
        [{ shape: [1, 2, 3, 4] }, '1 to 3 dimensions', 3],
        [{ shape: 0 }, 'below the minimum (1)', 1],
        [{ shape: [2, 131073] }, '131073'],
        [{ shape: [70000, 2] }, '70000'],
        [{ shape: [2, 2, 16385] }, '16385'],
        [{ shape: 4, dtype: f64 }, 'f64'],
        [{ shape: 4, channels: 3 }, 'not 1, 2 or 4'],
        [{ shape: 4, filter: 'cubic' }, "'cubic'"],
        [{ shape: 4, filter: 'linear', dtype: u8 }, "read: 'normalizedFloat'", 'u8'],
        [{ shape: 4, read: 'normalizedFloat' }, 'integers of 8 or 16 bits', 'f32'],
        [{ shape: 4, address: 'wrap' }, 'normalizedCoordinates: true'],
        [{ shape: 4, address: ['clamp', 'clamp'] }, 'one mode for each axis (1)', 1],
        [{ shape: 4, surface: 1 }, 'not true or false'],
        [{ shape: 4, sampler: 'none' }, "no option 'sampler'"],
        [{ shape: 4, data: new Float32Array(3) }, '3 values', 4],
        [{ array: doubles }, 'f64'],
        [{ array: array.transpose() }, 'not contiguous'],
        [{ array }, 'multiple of 32 bytes', 32],
        [{ array: line.subarray(1) }, 'multiple of 512', 512],
        [{ array: line, filter: 'linear' }, 'tex1Dfetch'],
        [{ array: wide, channels: 2 }, 'channels (2)', 2],
        [{ array: wide, shape: 64 }, "no option 'shape'"],
      ];
      for (const [opts, what, limit] of cases) {
        const error = thrownBy(() => device.createTexture(opts as never)) as ArgumentError;
        expect(error, what).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(what);
        if (limit !== undefined) expect(error.limit, what).toEqual(limit);
      }
      using plain = device.createTexture({ shape: 4 });
      expect(thrownBy(() => plain.surface).message).toContain('surface: true');
    });

    rule('S498', 'declared parameters are compared with the source, and arguments with the declaration', () => {
      const { device } = chapter;
      using t = device.createTexture({ shape: N, surface: true });
      using out = device.empty(N);
      const declare = (params: object): Error => thrownBy(() => cudaKernel('show', params as never, SOURCE));
      for (const [params, what] of [
        [{ t: u64, out: output(f32), n: i32 }, 'a texture is declared with texture'],
        [{ t: surface, out: output(f32), n: i32 }, 'it is a texture there'],
        [{ t: texture, out: texture, n: i32 }, 'a texture needs a cudaTextureObject_t'],
        [{ t: texture, out: output(f32), n: texture }, 'a texture needs a cudaTextureObject_t'],
      ] as const) {
        expect(declare(params), what).toBeInstanceOf(ArgumentError);
        expect(declare(params).message).toContain(what);
      }
      for (const [launch, what] of [
        [() => device.stream.launch(show, ONE, { t: t.surface as never, out, n: N }), 'is not a texture: pass its texture'],
        [() => device.stream.launch(put, ONE, { s: t as never, value: 1, n: N }), 'is not a surface: pass its surface'],
        [() => device.stream.launch(show, ONE, { t: out as never, out, n: N }), 'is not a texture'],
        [() => device.stream.launch(show, ONE, { out, n: N } as never), 'is missing'],
      ] as const) {
        expect(thrownBy(launch), what).toBeInstanceOf(ArgumentError);
        expect(thrownBy(launch).message).toContain(what);
      }
    });

    rule('S498', 'structs have textures and surfaces as fields', async () => {
      const { device } = chapter;
      const source = `struct Job { float scale; cudaTextureObject_t source; int n; cudaSurfaceObject_t target[2]; };
extern "C" __global__ void scaled(const Job job) {
  const int i = threadIdx.x;
  if (i >= job.n) return;
  const float value = job.scale * tex1D<float>(job.source, i + 0.5f);
  surf1Dwrite(value, job.target[0], i * 4);
  surf1Dwrite(-value, job.target[1], i * 4);
}`;
      const Job = struct({ scale: f32, source: texture, n: i32, target: arrayOf(surface, 2) });
      expect([Job.byteSize, Job.offsets]).toEqual([40, { scale: 0, source: 8, n: 16, target: 24 }]);
      const scaled = cudaKernel('scaled', { job: Job }, source);
      using given = device.createTexture({ shape: N, data: counted(1) });
      using up = device.createTexture({ shape: N, surface: true });
      using down = device.createTexture({ shape: N, surface: true });
      const job = { scale: 2, source: given, n: N, target: [up.surface, down.surface] };
      device.stream.launch(scaled, ONE, { job });
      expect(await up.read()).toEqual(counted(1).map((v) => 2 * v));
      expect(await down.read()).toEqual(counted(1).map((v) => -2 * v));
      expect(thrownBy(() => device.stream.launch(scaled, ONE, { job: { ...job, source: up.surface as never } })).message).toContain(
        'Argument job.source of kernel scaled (Surface) is not a texture: pass its texture.',
      );
      const wrong = struct({ scale: f32, source: u64, n: i32, target: arrayOf(surface, 2) });
      expect(thrownBy(() => cudaKernel('scaled', { job: wrong }, source))).toBeInstanceOf(ArgumentError);
    });

    rule('S498', 'a texture reference, which CUDA no longer has, is refused with the remedy', async () => {
      const { device } = chapter;
      const made = cudaKernel('copy_picture', { out: output(f32), width: i32 }, textOf('texture-reference'));
      const error = await rejectionOf(device.compile(made));
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toContain("declares a texture reference ('texture<...>'), which CUDA 12 removed: pass a cudaTextureObject_t");
      expect((error as CompileError).diagnostics[0]).toMatchObject({ code: 'K706' });
    });

    rule('S498', 'a texture reference concerns only the kernels that use it', async () => {
      const { device } = chapter;
      const text = `texture<float, 2, cudaReadModeElementType> picture, other;
static texture<float> line; __device__ float at(int i) { return tex1Dfetch(line, i); }
__global__ void old(float* out) { out[0] = tex2D(picture, 1.0f, 2.0f) + at(3); }
__global__ void counted(int* out) { out[threadIdx.x] = threadIdx.x; }`;
      const module = cudaModule(text);
      using out = device.zeros(4, 'i32');
      for (const made of [cudaKernel('counted', { out: output(i32) }, text), module.kernel('counted', { out: output(i32) })]) {
        device.stream.fill(out, 7);
        device.stream.launch(made, { grid: 1, block: 4 }, { out });
        expect([...(await out.read())]).toEqual([0, 1, 2, 3]);
      }
      for (const made of [cudaKernel('old', { out: output(f32) }, text), module.kernel('old', { out: output(f32) })]) {
        const error = await rejectionOf(device.compile(made));
        expect((error as CompileError).diagnostics[0]).toMatchObject({ code: 'K706' });
      }
    });
  });
});
