// Idioms of image processing: gradients, filters, sums.
import { f32, i16, i32, inout, input, output, struct, u16, u32, u64, u8 } from 'millrace';
import { floats, type TextCase } from './text-case.js';

const clamp = (v: number, low: number, high: number): number => Math.min(Math.max(v, low), high);
const noise = (i: number): number => (Math.imul(i + 1, 2_654_435_761) >>> 9) & 255;

// ── Sobel's gradient of 70 x 13 pixels in rows of 72 bytes ──
const [GRAY_W, GRAY_H, PITCH] = [70, 13, 72];
const gray = Uint8Array.from({ length: PITCH * GRAY_H }, (_unused, i) => (i % PITCH < GRAY_W ? noise(i) >> (i % 3) : 0));
const edges = Uint8Array.from({ length: GRAY_W * GRAY_H }, (_unused, at) => {
  const [x, y] = [at % GRAY_W, Math.floor(at / GRAY_W)];
  const pixel = (dx: number, dy: number): number => (x + dx < 0 ? 0 : gray[clamp(y + dy, 0, GRAY_H - 1) * PITCH + x + dx]!);
  const across = pixel(1, -1) + 2 * pixel(1, 0) + pixel(1, 1) - pixel(-1, -1) - 2 * pixel(-1, 0) - pixel(-1, 1);
  const down = pixel(-1, -1) + 2 * pixel(0, -1) + pixel(1, -1) - pixel(-1, 1) - 2 * pixel(0, 1) - pixel(1, 1);
  return Math.min(255, Math.trunc(0.5 * (Math.abs(across) + Math.abs(down))));
});

// ── the bilateral filter ──
const [NX, NY] = [37, 21];
const Picture = struct({ data: input(u8), step: u64, cols: i32, rows: i32 });
const Target = struct({ data: output(u8), step: u64, cols: i32, rows: i32 });
const FloatPicture = struct({ data: input(f32), step: u64, cols: i32, rows: i32 });
const FloatTarget = struct({ data: output(f32), step: u64, cols: i32, rows: i32 });
const [SPATIAL, COLOUR] = [-0.125, -0.0005];
/** `channels` numbers a pixel; `at` is the index of the pixel that a place outside of the image takes. */
function filtered(
  image: ArrayLike<number>,
  channels: number,
  cols: number,
  rows: number,
  at: (i: number, last: number) => number,
): number[] {
  return Array.from({ length: cols * rows }, (_unused, pixel) => {
    const [x, y] = [pixel % cols, Math.floor(pixel / cols)];
    const sums = Array.from({ length: channels }, () => 0);
    let weights = 0;
    for (let dy = -2; dy <= 2; dy++)
      for (let dx = -2; dx <= 2; dx++) {
        if (dx * dx + dy * dy > 4) continue;
        const other = at(y + dy, rows - 1) * cols + at(x + dx, cols - 1);
        const values = sums.map((_unused_too, c) => image[other * channels + c]!);
        const distance = values.reduce((sum, v, c) => sum + Math.abs(v - image[pixel * channels + c]!), 0);
        const weight = Math.exp((dx * dx + dy * dy) * SPATIAL + distance ** 2 * COLOUR);
        for (const [c, v] of values.entries()) sums[c]! += weight * v;
        weights += weight;
      }
    return sums.map((sum) => sum / weights);
  }).flat();
}
const colours = Uint8Array.from({ length: 4 * NX * NY }, (_unused, i) => 30 + (noise(55 * i + 3) >> 1)); // No mean is near a half.
const smooth = floats(NX * NY, (i) => noise(i) / 4);
const BILATERAL = { ksz: 5, sigma_spatial2_inv_half: SPATIAL, sigma_color2_inv_half: COLOUR };
const scalars = { ksz: i32, sigma_spatial2_inv_half: f32, sigma_color2_inv_half: f32 };

// ── the integral image of 80 x 45 bytes ──
const [SUM_W, SUM_H] = [80, 45];
const summed = Uint8Array.from({ length: SUM_W * SUM_H }, (_unused, i) => noise(i));
const rowSums = new Uint32Array(summed.length);
for (const [i, v] of summed.entries()) rowSums[i] = v + (i % SUM_W === 0 ? 0 : rowSums[i - 1]!);
const integral = new Uint32Array(summed.length);
for (const [i, v] of rowSums.entries()) integral[i] = v + (i < SUM_W ? 0 : integral[i - SUM_W]!);

export const IMAGE_CASES: readonly TextCase[] = [
  {
    file: 'images/sobel-separable',
    kernel: 'SobelShared',
    params: { pSobelOriginal: input(u8), SobelPitch: u16, pOut: output(u8), w: i16, h: i16, fScale: f32 },
    launch: { grid: [3, 4], block: [32, 4] },
    given: { pSobelOriginal: gray, SobelPitch: PITCH, pOut: new Uint8Array(edges.length), w: GRAY_W, h: GRAY_H, fScale: 0.5 },
    results: { pOut: edges },
  },
  {
    file: 'images/bilateral-borders',
    kernel: 'cv::cuda::device::bilateral_kernel<float, cv::cuda::device::BrdReflect101>',
    params: { src: FloatPicture, dst: FloatTarget, ...scalars },
    launch: { grid: [2, 3], block: [32, 8] },
    given: {
      src: { data: smooth, step: 4n * BigInt(NX), cols: NX, rows: NY },
      dst: { data: new Float32Array(smooth.length), step: 4n * BigInt(NX), cols: NX, rows: NY },
      ...BILATERAL,
    },
    results: {
      'dst.data': Float32Array.from(filtered(smooth, 1, NX, NY, (i, last) => Math.abs(last - Math.abs(last - i)) % (last + 1))),
    },
    tolerance: 1e-5,
  },
  {
    file: 'images/bilateral-borders',
    kernel: 'bilateral_kernel<uchar4, cv::cuda::device::BrdReplicate>',
    params: { src: Picture, dst: Target, ...scalars },
    launch: { grid: [2, 3], block: [32, 8] },
    given: {
      src: { data: colours, step: 4n * BigInt(NX), cols: NX, rows: NY },
      dst: { data: new Uint8Array(colours.length), step: 4n * BigInt(NX), cols: NX, rows: NY },
      ...BILATERAL,
    },
    results: {
      'dst.data': Uint8Array.from(
        filtered(colours, 4, NX, NY, (i, last) => clamp(i, 0, last)),
        Math.round,
      ),
    },
  },
  {
    file: 'images/integral-image-shuffles',
    kernel: 'shfl_intimage_rows',
    params: { img: input(u8), integral_image: output(u32), groups: i32, height: i32 },
    launch: { grid: 12, block: [32, 4] },
    given: { img: summed, integral_image: new Uint32Array(summed.length), groups: SUM_W / 16, height: SUM_H },
    results: { integral_image: rowSums },
  },
  {
    file: 'images/integral-image-shuffles',
    kernel: 'shfl_vertical_shfl',
    params: { img: inout(u32), width: i32, height: i32 },
    launch: { grid: 10, block: [8, 32] },
    given: { img: rowSums, width: SUM_W, height: SUM_H },
    results: { img: integral },
  },
];
