// Chapter 4: copying, ordering and ending textures.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  CaptureError,
  CompileError,
  cudaKernel,
  type Device,
  f32,
  i32,
  OutOfMemoryError,
  StateError,
  StreamHazardError,
  surface,
  type Texture,
  UpstreamError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { counted, fetched, N, ONE, put, show, SOURCE } from '../../support/texture-kernels.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

async function shown(device: Device, t: Texture<'f32'>): Promise<Float32Array> {
  using out = device.empty(N);
  device.stream.launch(show, ONE, { t, out, n: N });
  return out.read();
}

defineChapter((target) => {
  describe('4 kernels: making and ordering textures', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

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

    rule(
      'S497',
      'a texture that there is no memory for fails its uses, and the cause is the OutOfMemoryError',
      async () => {
        await withDevice(target, {}, async (device) => {
          const { totalMemoryBytes } = device.info;
          const height = Math.min(65_536, Math.floor(totalMemoryBytes / (4 * 4 * 8192)));
          const shape = [height, 8192];
          const stream = device.createStream();
          using out = stream.empty(N);
          // Together they have more bytes than the device.
          const many = Math.ceil(totalMemoryBytes / (4 * 4 * 8192 * height)) + 1;
          const made = Array.from({ length: many }, () => stream.createTexture({ shape, channels: 4 }));
          const reads = made.map((t) => stream.launch(show, ONE, { t, out, n: 1 }));
          const last = await rejectionOf(reads.at(-1)!.done);
          expect(last).toBeInstanceOf(UpstreamError);
          expect(last.cause).toBeInstanceOf(OutOfMemoryError);
          for (const t of made) t[Symbol.dispose]();
          await device.synchronize();
          // The memory of the others is used again.
          using again = stream.createTexture({ shape: N, data: counted(3) });
          expect(await again.read()).toEqual(counted(3));
        });
      },
      { unless: !target.supports.memoryLimit && 'allocations of this device only fail when the whole machine is out of memory' },
    );

    rule('S497', 'a device closes with textures that are in use', async () => {
      await withDevice(target, {}, async (device) => {
        const t = device.createTexture({ shape: N, surface: true });
        device.stream.launch(put, ONE, { s: t.surface, value: 1, n: N });
        expect((await t.read())[1]).toBe(2);
        device.createTexture({ shape: [8, 8], data: new Float32Array(64) });
      });
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
});
