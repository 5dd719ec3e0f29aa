// Chapter 4: textures and surfaces of CUDA C++ kernels, against the formulas of CUDA's programming guide in plain JavaScript. The sources are
// in test/cuda-texts.
import { describe, expect } from 'vitest';
import { type CudaModule, cudaModule, type Device, f16, i16, i8, type Texture, u16, u8, vec, vec4f } from 'millrace';
import { textOf } from '../../cuda-texts/text-case.js';
import { expectAlike } from '../../cuda-texts/text-check.js';
import { TEXTURE_TEXTS } from '../../cuda-texts/texture-cases.js';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { type ModelTexture, sample } from '../../support/texture-model.js';

type Name = keyof typeof TEXTURE_TEXTS;
/** By file: all kernels of one are compiled at once. */
const modules = new Map<string, CudaModule>();
function kernelOf<N extends Name>(name: N) {
  const { file, kernel, params } = TEXTURE_TEXTS[name];
  const module = modules.get(file) ?? cudaModule(textOf(file));
  modules.set(file, module);
  return module.kernel(kernel, params as (typeof TEXTURE_TEXTS)[N]['params']);
}

const TILE = [16, 8] as const;
function tiles(width: number, height: number): { grid: readonly [number, number]; block: readonly [number, number] } {
  return { grid: [Math.ceil(width / TILE[0]), Math.ceil(height / TILE[1])], block: TILE };
}
function indices(width: number, height: number): readonly (readonly [x: number, y: number])[] {
  return Array.from({ length: width * height }, (_, i) => [i % width, Math.floor(i / width)] as const);
}

/** Values without a pattern, small enough to be exact. */
function picture(length: number, levels = 64): Float32Array {
  return Float32Array.from({ length }, (_, i) => (i * 7919 + ((i * i) % 13)) % levels);
}
/** Rounding of coordinates moves a weight by at most one of its 256 steps in each axis; the values differ by less than `levels`. */
const ofSteps = (axes: number, levels: number): number => (axes * levels) / 256;

function expectNear(found: ArrayLike<number>, expected: readonly number[], difference: number, what: string): void {
  expect(found.length, what).toBe(expected.length);
  for (const [i, right] of expected.entries()) {
    const isNear = Math.abs(found[i]! - right) <= difference;
    expect(isNear, `${what}[${i}]: ${found[i]} for ${right}`).toBe(true);
  }
}

defineChapter((target) => {
  describe('4 kernels: textures', () => {
    const rule = rulesOf(target);
    const isOnCpu = target.spec.startsWith('cpu');
    const chapter = chapterDevice(target);

    rule('S490', 'an image is rotated: linear filter, normalized coordinates, repeated', async () => {
      const { device } = chapter;
      const [width, height, angle] = [40, 24, 0.4];
      const data = picture(width * height);
      using image = device.createTexture({ shape: [height, width], data, filter: 'linear', address: 'wrap', normalizedCoordinates: true });
      using out = device.empty([height, width]);
      device.stream.launch(kernelOf('rotate'), tiles(width, height), { out, image, width, height, angle });
      const model: ModelTexture = { size: [width, height], values: data, filter: 'linear', address: 'wrap', normalized: true };
      const expected = indices(width, height).map(([x, y]) => {
        const [u, v] = [(x + 0.5) / width - 0.5, (y + 0.5) / height - 0.5];
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        return sample(model, u * c - v * s + 0.5, v * c + u * s + 0.5);
      });
      expectNear(await out.read(), expected, ofSteps(2, 64), 'rotated');
    });

    rule('S490', 'sums along the rows of an image: threads that read a texture wait for each other', async () => {
      const { device } = chapter;
      const [width, height] = [100, 9];
      const data = picture(width * height);
      using image = device.createTexture({ shape: [height, width], data });
      using sums = device.empty(height);
      device.stream.launch(kernelOf('lineSums'), { grid: height, block: 64 }, { image, sums, width });
      const expected = Array.from({ length: height }, (_, y) => data.subarray(y * width, (y + 1) * width).reduce((a, b) => a + b, 0));
      expectAlike(await sums.read(), Float32Array.from(expected), 'sums');
    });

    rule('S490', 'threads that wait for each other, and macros, read a texture', async () => {
      const { device } = chapter;
      const [n, block] = [500, 128];
      const values = picture(n);
      using x = device.from(values);
      using texture = device.createTexture({ array: x });
      const sumsOf = (size: number): Float32Array =>
        Float32Array.from({ length: 512 / size }, (_, at) => values.subarray(at * size, at * size + size).reduce((a, b) => a + b, 0));
      using sums = device.empty(512 / block);
      device.stream.launch(kernelOf('sumTexture'), { grid: 4, block, sharedBytes: 4 * block }, { values: texture, sums, n });
      expect(await sums.read()).toEqual(sumsOf(block));
      using ofWarps = device.empty(512 / 32);
      device.stream.launch(kernelOf('sumInWarps'), { grid: 4, block }, { values: texture, sums: ofWarps, n });
      expect(await ofWarps.read()).toEqual(sumsOf(32));
      using counts = device.zeros(2, 'i32');
      device.stream.launch(kernelOf('countLarge'), { grid: 4, block }, { values: texture, counts, least: 40, n });
      expect([...(await counts.read())]).toEqual([values.filter((v) => v >= 40).length, 1]);
    });

    rule('S490', 'a table of colours: one dimension, four channels, exact at multiples of 1/256', async () => {
      const { device } = chapter;
      const n = 16;
      const data = picture(4 * n);
      using table = device.createTexture({ shape: n, dtype: vec4f, data, filter: 'linear' });
      const density = Float32Array.from({ length: 200 }, (_, i) => -3 + (i * 29) / 256);
      using given = device.from(density);
      using colours = device.empty([density.length, 4]);
      device.stream.launch(kernelOf('applyTable'), { grid: 2, block: 64 }, { density: given, colours, table, n: density.length });
      const channel = (c: number): ModelTexture => ({ size: [n], values: data.filter((_, i) => i % 4 === c), filter: 'linear' });
      const expected = [...density].flatMap((at) => [0, 1, 2, 3].map((c) => sample(channel(c), at)));
      expectAlike(await colours.read(), Float32Array.from(expected), 'colours');
    });

    rule('S490', 'a volume is summed along rays: three dimensions, bytes as normalized floats', async () => {
      const { device } = chapter;
      const [width, height, depth] = [6, 5, 4];
      const data = Uint8Array.from(picture(width * height * depth, 256));
      using volume = device.createTexture({
        shape: [depth, height, width],
        data,
        filter: 'linear',
        read: 'normalizedFloat',
        address: 'border',
      });
      const rays = Float32Array.of(0, 0.5, 0.5, 0.25, 0.25, 0.125, 5.5, 4.75, 3.5, -0.5, -0.25, -0.25, 3, 2, -1, 0, 0, 0.5);
      using given = device.from(rays);
      using sums = device.empty(3);
      const steps = 12;
      device.stream.launch(kernelOf('march'), { grid: 1, block: 32 }, { volume, rays: given, sums, steps, count: 3 });
      const model: ModelTexture = {
        size: [width, height, depth],
        values: [...data].map((v) => v / 255),
        filter: 'linear',
        address: 'border',
      };
      const expected = [0, 6, 12].map((at) => {
        const [x, y, z, dx, dy, dz] = rays.subarray(at, at + 6) as unknown as [number, number, number, number, number, number];
        return Array.from({ length: steps }, (_, n) => sample(model, x + n * dx, y + n * dy, z + n * dz)).reduce((a, b) => a + b);
      });
      // GPUs interpolate normalized bytes with fewer bits than floats.
      expectNear(await sums.read(), expected, steps / 512, 'sums');
    });

    rule('S490', 'a picture is enlarged: two channels, the value by a pointer', async () => {
      const { device } = chapter;
      const [width, height] = [9, 7];
      const data = picture(width * height * 2);
      using image = device.createTexture({ shape: [height, width], channels: 2, data, filter: 'linear' });
      using out = device.empty([4 * height, 4 * width, 2]);
      device.stream.launch(kernelOf('upscale'), tiles(4 * width, 4 * height), { image, out, width, height });
      const channel = (c: number): ModelTexture => ({
        size: [width, height],
        values: data.filter((_, i) => i % 2 === c),
        filter: 'linear',
      });
      const expected = indices(4 * width, 4 * height).flatMap(([x, y]) =>
        [0, 1].map((c) => sample(channel(c), (x + 0.5) / 4, (y + 0.5) / 4)),
      );
      expectAlike(await out.read(), Float32Array.from(expected), 'enlarged');
    });

    for (const address of ['clamp', 'border', 'wrap', 'mirror'] as const) {
      rule('S491', `the address mode ${address}, with both filters`, async () => {
        const { device } = chapter;
        const [width, height] = [8, 4];
        const data = picture(width * height);
        const normalizedModes = address === 'wrap' || address === 'mirror' ? [true] : [false, true];
        const modes = normalizedModes.flatMap((normalized) => (['point', 'linear'] as const).map((filter) => ({ normalized, filter })));
        for (const { normalized, filter } of modes) {
          const how = { filter, address, normalizedCoordinates: normalized };
          const what = `${filter} ${normalized ? 'normalized' : 'in elements'}`;
          // CUDA does not say how a GPU rounds the weights to 1/256: an H100 differs from the model by up to 1/256 of the distance of neighbours
          // in each direction. The CPU device rounds as the model.
          const slack = filter === 'linear' && !isOnCpu ? ofSteps(2, 64) : 1e-4;
          // In elements, on no edge: multiples of 1/8 and an odd number of 1/16.
          const places = Array.from({ length: 90 }, (_, i) => -2.5 * width + i * 0.5 + 0.0625 * (1 + 2 * (i % 3)));
          const scale = normalized ? width : 1;
          using line = device.createTexture({ shape: width, data: data.subarray(0, width), ...how });
          using x = device.from(Float32Array.from(places, (at) => at / scale));
          using out = device.empty(places.length);
          device.stream.launch(kernelOf('sampleLine'), { grid: 1, block: 128 }, { line, x, out, n: places.length });
          const model: ModelTexture = { size: [width], values: data.subarray(0, width), filter, address, normalized };
          expectNear(
            await out.read(),
            places.map((at) => sample(model, at / scale)),
            slack,
            `line, ${what}`,
          );

          using plane = device.createTexture({ shape: [height, width], data, ...how });
          const at = places.flatMap((own, i) => [own / scale, places[(i * 7) % places.length]! / 2 / (normalized ? height : 1)]);
          using given = device.from(Float32Array.from(at));
          device.stream.launch(kernelOf('samplePlane'), { grid: 1, block: 128 }, { plane, at: given, out, n: places.length });
          const model2: ModelTexture = { size: [width, height], values: data, filter, address, normalized };
          expectNear(
            await out.read(),
            places.map((_, i) => sample(model2, at[2 * i]!, at[2 * i + 1]!)),
            slack,
            `plane, ${what}`,
          );
        }
      });
    }

    rule('S491', 'each axis has an address mode of its own, in shape order', async () => {
      const { device } = chapter;
      const data = picture(8);
      using plane = device.createTexture({ shape: [2, 4], data, address: ['clamp', 'border'] });
      using at = device.from(Float32Array.of(5.5, 0.5, 3.5, 9.5, -1.5, 1.5));
      using out = device.empty(3);
      device.stream.launch(kernelOf('samplePlane'), { grid: 1, block: 32 }, { plane, at, out, n: 3 });
      expect([...(await out.read())]).toEqual([0, data[7], 0]);
    });

    rule('S492', 'elements of every type, as they are and as normalized floats', async () => {
      const { device } = chapter;
      const [width, height] = [13, 5];
      const bytes = Uint8Array.from(picture(4 * width * height, 256));
      using pixels = device.createTexture({ shape: [height, width], dtype: vec(u8, 4), data: bytes });
      using floats = device.createTexture({ shape: [height, width], channels: 4, data: bytes, read: 'normalizedFloat' });
      using swapped = device.empty([height, width, 4], 'u8');
      using bright = device.empty([height, width]);
      const size = { width, height };
      device.stream.launch(kernelOf('swapChannels'), tiles(width, height), { pixels, out: swapped, ...size });
      device.stream.launch(kernelOf('brightness'), tiles(width, height), { pixels: floats, out: bright, ...size });
      const at = (i: number, c: number): number => bytes[4 * i + c]!;
      expect(await swapped.read()).toEqual(Uint8Array.from(bytes, (_, i) => at(i >> 2, [2, 1, 0, 3][i & 3]!)));
      const light = indices(width, height).map((_, i) => (0.299 * at(i, 0) + 0.587 * at(i, 1) + 0.114 * at(i, 2) + 2 * at(i, 3)) / 255);
      expectAlike(await bright.read(), Float32Array.from(light), 'brightness');

      const row = async (own: Texture, n: number): Promise<number[]> => {
        using out = device.empty(n);
        device.stream.launch(kernelOf('readRow'), { grid: 1, block: 32 }, { values: own, out, n });
        return [...(await out.read())];
      };
      using i8s = device.createTexture({ shape: 5, dtype: i8, data: Int8Array.of(-128, -127, 0, 64, 127), read: 'normalizedFloat' });
      expectNear(await row(i8s, 5), [-1, -1, 0, 64 / 127, 1], 1e-6, 'i8');
      using i16s = device.createTexture({ shape: 4, dtype: i16, data: Int16Array.of(-32768, -1, 1, 32767), read: 'normalizedFloat' });
      expectNear(await row(i16s, 4), [-1, -1 / 32767, 1 / 32767, 1], 1e-6, 'i16');
      using u16s = device.createTexture({ shape: 3, dtype: u16, data: Uint16Array.of(0, 30000, 65535), read: 'normalizedFloat' });
      expectNear(await row(u16s, 3), [0, 30000 / 65535, 1], 1e-6, 'u16');
      using halves = device.createTexture({ shape: 6, dtype: f16, data: Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7c00, 0x8400, 0x3555) });
      expect(await row(halves, 6)).toEqual([1, -2, 2 ** -24, Number.POSITIVE_INFINITY, -(2 ** -14), 0.333251953125]);
      for (const [dtype, data] of [
        ['i8', Int8Array.of(-128, 5)],
        ['i16', Int16Array.of(-32768, 5)],
        ['i32', Int32Array.of(-(2 ** 31), 5)],
      ] as const) {
        using values = device.createTexture({ shape: 2, dtype, data: data as never });
        using out = device.empty(2, 'i32');
        device.stream.launch(kernelOf('readSignedRow'), { grid: 1, block: 32 }, { values, out, n: 2 });
        expect([...(await out.read())], dtype).toEqual([...data]);
      }
    });

    rule('S493', 'a blur in two passes: a kernel writes the surface that the next one reads as a texture', async () => {
      const { device } = chapter;
      const [width, height] = [37, 21];
      const data = picture(width * height);
      const shape = [height, width];
      using source = device.createTexture({ shape, data });
      using half = device.createTexture({ shape, surface: true });
      using whole = device.createTexture({ shape, surface: true });
      const size = { width, height };
      device.stream.launch(kernelOf('blurRows'), tiles(width, height), { source, target: half.surface, ...size });
      // On another stream: it waits for the first.
      device.createStream().launch(kernelOf('blurColumns'), tiles(width, height), { source: half, target: whole.surface, ...size });
      const weights = [1, 6, 15, 20, 15, 6, 1].map((w) => w / 64);
      const blurred = (values: ArrayLike<number>, dx: number, dy: number): Float32Array =>
        Float32Array.from({ length: width * height }, (_, i) => {
          const [x, y] = [i % width, Math.floor(i / width)];
          const at = (k: number): number => sample({ size: [width, height], values }, x + k * dx + 0.5, y + k * dy + 0.5);
          return weights.reduce((sum, w, k) => sum + w * at(k - 3), 0);
        });
      expectAlike(await whole.read(), blurred(blurred(data, 1, 0), 0, 1), 'blurred');
    });

    rule('S493', 'accesses beyond the edges of a surface: clamped, or zeros and no write', async () => {
      const { device } = chapter;
      const [width, height] = [5, 4];
      using plane = device.createTexture({ shape: [height, width], dtype: i16, surface: true });
      device.stream.launch(kernelOf('mark'), { grid: 1, block: [width + 2, height + 2] }, { plane: plane.surface, width, height });
      const expected = indices(width, height).map(([x, y]) => 100 * y + x);
      expect([...(await plane.read())]).toEqual(expected);
      const [w, h] = [width + 4, height + 4];
      using clamped = device.zeros(w * h, 'i16');
      using zeros = device.full(w * h, 7, 'i16');
      device.stream.launch(kernelOf('look'), { grid: 1, block: [w, h] }, { plane: plane.surface, clamped, zeros });
      const within = (at: number, most: number): number => Math.min(most, Math.max(0, at));
      const places = indices(w, h).map(([x, y]) => [x - 2, y - 2] as const);
      expect([...(await clamped.read())]).toEqual(places.map(([x, y]) => 100 * within(y, height - 1) + within(x, width - 1)));
      const isInside = ([x, y]: readonly [number, number]): boolean => x >= 0 && x < width && y >= 0 && y < height;
      expect([...(await zeros.read())]).toEqual(places.map((at) => (isInside(at) ? 100 * at[1] + at[0] : 0)));
    });

    rule('S493', 'surfaces of one and three dimensions are read and written', async () => {
      const { device } = chapter;
      const [width, height, depth] = [4, 3, 2];
      const data = Uint32Array.from({ length: 2 * width * height * depth }, (_, i) => i);
      using volume = device.createTexture({ shape: [depth, height, width], channels: 2, data, surface: true });
      using line = device.createTexture({ shape: width, data: Float32Array.of(1, 2, 3, 4), surface: true });
      const shape = { grid: 1, block: [width, height, depth] } as const;
      for (let n = 0; n < 2; n++) device.stream.launch(kernelOf('grow'), shape, { volume: volume.surface, line: line.surface });
      const place = (i: number): number =>
        1000 * (i % width) + 100 * (Math.floor(i / width) % height) + 10 * Math.floor(i / width / height);
      expect(await volume.read()).toEqual(data.map((v, i) => (i % 2 === 0 ? v + 2 * place(i >> 1) : 4 * v)));
      expect([...(await line.read())]).toEqual([2, 3, 4, 5]);
    });

    rule('S494', 'a sparse product gathers a vector through a texture of its memory', async () => {
      const { device } = chapter;
      const n = 50;
      const entries = Array.from({ length: n }, (_, row) => Array.from({ length: row % 5 }, (_unused, k) => (row * 31 + k * 17) % n));
      const rows = Int32Array.from({ length: n + 1 }, (_, row) => entries.slice(0, row).flat().length);
      const columns = Int32Array.from(entries.flat());
      const values = picture(columns.length);
      const vector = picture(n);
      using x = device.from(vector);
      using texture = device.createTexture({ array: x });
      using y = device.empty(n);
      using given = arraysOf(device, rows, columns, values);
      const launch = (): void => {
        const [r, c, v] = given.arrays;
        device.stream.launch(kernelOf('spmv'), { grid: 1, block: 64 }, { rows: r, columns: c, values: v, x: texture, y, n });
      };
      const product = (by: ArrayLike<number>): Float32Array =>
        Float32Array.from(entries, (list, row) => list.reduce((sum, column, k) => sum + values[rows[row]! + k]! * by[column]!, 0));
      launch();
      expectAlike(await y.read(), product(vector), 'y');
      // There is no copy: the texture shows the contents of the array.
      device.createStream().fill(x, 2);
      launch();
      expectAlike(await y.read(), product(vector.map(() => 2)), 'y of twos');

      const pairs = Int32Array.from({ length: 20 }, (_, i) => i * i);
      using own = device.from(pairs, { shape: [10, 2] });
      using linear = device.createTexture({ array: own, channels: 2 });
      using index = device.from(Int32Array.of(9, 0, 4, 10, -1));
      using out = device.empty([5, 2], 'i32');
      device.stream.launch(kernelOf('gatherPairs'), { grid: 1, block: 32 }, { pairs: linear, index, out, n: 5 });
      expect([...(await out.read())]).toEqual([18 ** 2, 19 ** 2, 0, 1, 64, 81, 0, 0, 0, 0]);
    });

    rule('S494', 'rows of an array are a texture of two dimensions', async () => {
      const { device } = chapter;
      const [width, height] = [16, 6];
      const data = picture(width * height * 2);
      using array = device.from(data, { shape: [height, width, 2] });
      using image = device.createTexture({ array, channels: 2, filter: 'linear', address: 'border' });
      expect([image.shape, image.dtype]).toEqual([[height, width], 'f32']);
      using out = device.empty([4 * height, 4 * width, 2]);
      device.stream.launch(kernelOf('upscale'), tiles(4 * width, 4 * height), { image, out, width, height });
      const channel = (c: number): ModelTexture => ({
        size: [width, height],
        values: data.filter((_, i) => i % 2 === c),
        filter: 'linear',
        address: 'border',
      });
      const expected = indices(4 * width, 4 * height).flatMap(([x, y]) =>
        [0, 1].map((c) => sample(channel(c), (x + 0.5) / 4, (y + 0.5) / 4)),
      );
      expectAlike(await out.read(), Float32Array.from(expected), 'enlarged');
      device.stream.copy(
        image,
        data.map((v) => v + 1),
      );
      expect(await array.item(0, 0, 0)).toBe(data[0]! + 1);
    });
  });
});

function arraysOf(device: Device, rows: Int32Array, columns: Int32Array, values: Float32Array) {
  const arrays = [device.from(rows), device.from(columns), device.from(values)] as const;
  return {
    arrays,
    [Symbol.dispose](): void {
      for (const array of arrays) array[Symbol.dispose]();
    },
  };
}
