// Chapter 4: making, copying, ordering and ending textures, and the arguments that are refused.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  CaptureError,
  CompileError,
  cudaKernel,
  type Device,
  f32,
  f64,
  i32,
  output,
  StateError,
  StreamHazardError,
  struct,
  surface,
  type Texture,
  texture,
  u64,
  u8,
  UpstreamError,
} from 'millrace';
import { textOf } from '../cuda-texts/text-case.js';
import { hold } from '../support/latch.js';
import { chapterDevice, rulesOf, withDevice } from '../support/rule.js';
import type { Target } from '../support/target.js';
import { rejectionOf, thrownBy } from '../support/wait.js';

const SOURCE = `extern "C" __global__ void show(cudaTextureObject_t t, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<float>(t, i + 0.5f);
}
extern "C" __global__ void put(cudaSurfaceObject_t s, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) surf1Dwrite(value + i, s, i * 4);
}
extern "C" __global__ void fetch(cudaTextureObject_t t, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(t, i);
}`;
const N = 64;
const ONE = { grid: 1, block: N } as const;
const show = cudaKernel('show', { t: texture, out: output(f32), n: i32 }, SOURCE);
const fetched = cudaKernel('fetch', { t: texture, out: output(f32), n: i32 }, SOURCE);
const put = cudaKernel('put', { s: surface, value: f32, n: i32 }, SOURCE);
const counted = (from: number): Float32Array => Float32Array.from({ length: N }, (_, i) => from + i);

async function shown(device: Device, t: Texture<'f32'>): Promise<Float32Array> {
  using out = device.empty(N);
  device.stream.launch(show, ONE, { t, out, n: N });
  return out.read();
}

export function textureOrder(target: Target): void {
  describe('4 kernels: making and ordering textures', () => {
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
        [{ shape: 4, address: ['clamp', 'clamp'] }, 'one for each of 1 axes', 1],
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

    rule('S496', 'elements are copied from and to every kind of array', async () => {
      const { device } = chapter;
      const { stream } = device;
      using t = device.createTexture({ shape: N });
      const host = counted(1);
      await stream.copy(t, host).done;
      host.fill(0);
      expect(await shown(device, t)).toEqual(counted(1));
      using array = device.from(counted(2));
      stream.copy(t, array);
      expect(await t.read()).toEqual(counted(2));
      using matrix = device.from(
        Float32Array.from({ length: 2 * N }, (_, i) => (i % 2 === 0 ? i / 2 : -1)),
        { shape: [N, 2] },
      );
      stream.copy(t, matrix.view(undefined, 0));
      expect(await t.read()).toEqual(counted(0));
      using pinned = device.pinned(N);
      pinned.data.set(counted(3));
      stream.copy(t, pinned);
      stream.copy(array, t);
      expect(await array.read()).toEqual(counted(3));
      stream.copy(t, counted(4), { transfer: true, label: 'upload' });
      await stream.copy(pinned, t).done;
      expect([...pinned.data]).toEqual([...counted(4)]);
      const into = new Float32Array(N);
      const copied = stream.copy(into, t, { label: 'back' });
      await copied.done;
      expect([...into, copied.label]).toEqual([...counted(4), 'back']);
      stream.copy(matrix.view(undefined, 1), t);
      expect(await matrix.view(undefined, 1).read()).toEqual(counted(4));
    });

    rule('S496', 'ends that do not fit are refused', () => {
      const { device } = chapter;
      const { stream } = device;
      using t = device.createTexture({ shape: [2, 3], channels: 2 });
      using other = device.createTexture({ shape: [2, 3], channels: 2 });
      using ints = device.zeros(12, 'i32');
      for (const [copy, what] of [
        [() => stream.copy(t, new Float32Array(6)), '6 values'],
        [() => stream.copy(t, ints as never), 'dtype i32'],
        [() => stream.copy(t, new Int32Array(12) as never), 'typed array of f32'],
        [() => stream.copy(t, other as never), 'neither a device array'],
        [() => stream.copy(t, new Float32Array(12), { count: 2 } as never), "no option 'count'"],
      ] as const) {
        const error = thrownBy(copy);
        expect(error, what).toBeInstanceOf(ArgumentError);
        expect(error.message).toContain(what);
      }
    });

    rule('S496', 'tracked streams order launches and copies by the texture: reads after writes, writes after reads', async () => {
      const { device } = chapter;
      const [one, two] = [device.createStream(), device.createStream()];
      using t = one.createTexture({ shape: N, surface: true });
      using first = device.empty(N);
      using second = device.empty(N);
      {
        await using latch = await hold(target, one, show, put);
        one.launch(put, ONE, { s: t.surface, value: 1, n: N });
        two.launch(show, ONE, { t, out: first, n: N });
        one.copy(t, counted(50));
        const last = two.launch(show, ONE, { t, out: second, n: N });
        expect(last.isComplete).toBe(false);
        latch.open();
      }
      expect(await first.read()).toEqual(counted(1));
      expect(await second.read()).toEqual(counted(50));
      await Promise.all([one.close(), two.close()]);
    });

    rule('S496', 'a checked stream refuses a use of a texture that nothing orders', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const checked = device.createStream({ ordering: 'checked' });
      using t = stream.createTexture({ shape: N, data: counted(0), surface: true });
      using out = checked.empty(N);
      expect(thrownBy(() => checked.launch(show, ONE, { t, out, n: N }))).toBeInstanceOf(StreamHazardError);
      checked.waitStream(stream);
      checked.launch(show, ONE, { t, out, n: N });
      const other = device.createStream({ ordering: 'checked' });
      other.waitStream(stream);
      // A launch that gets the surface writes, and nothing orders it after the read.
      expect(thrownBy(() => other.launch(put, ONE, { s: t.surface, value: 0, n: N }))).toBeInstanceOf(StreamHazardError);
      expect(await out.read()).toEqual(counted(0));
      await Promise.all([stream.close(), checked.close(), other.close()]);
    });

    rule('S497', 'the memory is freed after the operations that use it; later uses are refused', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using out = device.empty(N);
      let kept;
      {
        await using latch = await hold(target, stream, show);
        using t = stream.createTexture({ shape: N, data: counted(7), surface: true });
        stream.launch(show, ONE, { t, out, n: N });
        kept = t;
        latch.open();
      }
      const gone = kept;
      expect([gone.isDisposed, (await out.read())[3]]).toEqual([true, 10]);
      for (const use of [() => stream.launch(show, ONE, { t: gone, out, n: N }), () => stream.copy(gone, counted(0)), () => gone.surface])
        expect(thrownBy(use)).toBeInstanceOf(StateError);
      expect(await rejectionOf(gone.read())).toBeInstanceOf(StateError);
      gone[Symbol.dispose]();

      // Many times: the memory and the objects are used again.
      for (let n = 0; n < 100; n++) {
        using t = stream.createTexture({ shape: [4, N], data: new Float32Array(4 * N).fill(n), surface: true });
        stream.launch(put, ONE, { s: t.surface, value: n, n: 1 });
      }
      await stream.close();
    });

    rule('S497', 'a texture over an array ends with it', async () => {
      const { device } = chapter;
      const array = device.from(counted(9));
      using t = device.createTexture({ array });
      using out = device.empty(N);
      device.stream.launch(fetched, ONE, { t, out, n: N });
      array[Symbol.dispose]();
      expect(await out.read()).toEqual(counted(9));
      expect(t.isDisposed).toBe(true);
      expect(thrownBy(() => device.stream.launch(fetched, ONE, { t, out, n: N }))).toBeInstanceOf(StateError);
    });

    rule('S497', 'a launch that fails poisons the texture whose surface it gets; an upload clears that', async () => {
      const { device } = chapter;
      const broken = cudaKernel('put', { s: surface, value: f32, n: i32 }, SOURCE.replace('value + i', 'value + undeclared'));
      using t = device.createTexture({ shape: N, data: counted(0), surface: true });
      using out = device.empty(N);
      const failed = device.stream.launch(broken, ONE, { s: t.surface, value: 1, n: N });
      const reading = device.stream.launch(show, ONE, { t, out, n: N });
      expect(await rejectionOf(failed.done)).toBeInstanceOf(CompileError);
      expect(await rejectionOf(reading.done)).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(t.read())).toBeInstanceOf(UpstreamError);
      device.stream.copy(t, counted(5));
      expect(await shown(device, t)).toEqual(counted(5));
    });

    rule('S497', 'a device closes with textures that are in use', async () => {
      await withDevice(target, {}, async (device) => {
        const t = device.createTexture({ shape: N, surface: true });
        device.stream.launch(put, ONE, { s: t.surface, value: 1, n: N });
        expect((await t.read())[1]).toBe(2);
        device.createTexture({ shape: [8, 8], data: new Float32Array(64) });
      });
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
      expect(thrownBy(() => struct({ t: texture as never }))).toBeInstanceOf(ArgumentError);
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

    rule('S498', 'a texture reference, which CUDA no longer has, is refused with the remedy', async () => {
      const { device } = chapter;
      const made = cudaKernel('copy_picture', { out: output(f32), width: i32 }, textOf('texture-reference'));
      const error = await rejectionOf(device.compile(made));
      expect(error).toBeInstanceOf(CompileError);
      expect(error.message).toContain("declares a texture reference ('texture<...>'), which CUDA 12 removed: pass a cudaTextureObject_t");
      expect((error as CompileError).diagnostics[0]).toMatchObject({ code: 'K706' });
    });

    rule('S499', 'a graph launches kernels with textures and surfaces, and keeps their memory', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const t = stream.createTexture({ shape: N, data: counted(0), surface: true });
      using out = device.empty(N);
      const graph = stream.capture({ value: f32 }, (s, { value }) => {
        s.launch(put, ONE, { s: t.surface, value, n: N });
        s.launch(show, ONE, { t, out, n: N });
      });
      stream.launch(graph, { value: 3 });
      expect(await out.read()).toEqual(counted(3));
      stream.copy(t, counted(0));
      stream.launch(graph, { value: 4 });
      // The launch of the graph wrote the texture, so this comes after it.
      expect(await shown(device, t)).toEqual(counted(4));
      t[Symbol.dispose]();
      stream.launch(graph, { value: 8 });
      expect(await out.read()).toEqual(counted(8));
      await graph.close();
      await stream.close();
    });

    rule('S499', 'creating and copying textures in a capture is a CaptureError by name', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using t = stream.createTexture({ shape: N });
      using array = stream.zeros(N);
      for (const [call, what] of [
        [() => stream.createTexture({ shape: 4 }), 'cannot create a texture'],
        [() => stream.copy(t, array), 'copies to and from textures'],
        [() => stream.copy(array, t), 'copies to and from textures'],
      ] as const) {
        const error = thrownBy(() => stream.capture(() => void call()));
        expect(error, what).toBeInstanceOf(CaptureError);
        expect(error.message).toContain(what);
      }
      await stream.close();
    });
  });
}
