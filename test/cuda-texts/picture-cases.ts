// More idioms of image processing: histograms, shapes, colours, fractals.
import { f32, i32, input, output, struct, u16, u32, u64, u8, vec } from 'millrace';
import { type TextCase } from './text-case.js';

const f = Math.fround;
const noise = (i: number): number => (Math.imul(i + 1, 2_654_435_761) >>> 9) & 255;

// ── equalised tiles in an image of 70 x 37, in rows of 80 bytes ──
const [WIDTH, HEIGHT, PITCH] = [70, 37, 80];
const levels = Uint8Array.from({ length: PITCH * HEIGHT }, (_unused, i) => 60 + (noise(i) >> 2) + ((i % PITCH) >> 1));
function equalised(tileWidth: number, tileHeight: number, clip: number): Uint8Array {
  const out = new Uint8Array(levels.length);
  for (let y0 = 0; y0 < HEIGHT; y0 += tileHeight)
    for (let x0 = 0; x0 < WIDTH; x0 += tileWidth) {
      const places: number[] = [];
      for (let y = y0; y < Math.min(y0 + tileHeight, HEIGHT); y++)
        for (let x = x0; x < Math.min(x0 + tileWidth, WIDTH); x++) places.push(y * PITCH + x);
      let counts = Array.from({ length: 256 }, () => 0);
      for (const at of places) counts[levels[at]!]!++;
      if (clip > 0) {
        const excess = counts.reduce((sum, n) => sum + Math.max(0, n - clip), 0);
        counts = counts.map((n) => Math.min(n, clip) + Math.floor(excess / 256));
      }
      let sum = 0;
      const sums = counts.map((n) => (sum += n));
      const least = sums.find((n) => n > 0)!;
      for (const at of places)
        out[at] = Math.min(255, Math.floor((255 * (sums[levels[at]!]! - least) + Math.floor((sum - least) / 2)) / (sum - least)));
    }
  return out;
}
function equaliseCase(tileWidth: number, tileHeight: number, clip: number): TextCase {
  return {
    file: 'images/histogram-equalise',
    kernel: `equaliseTiles<${tileWidth}, ${tileHeight}>`,
    params: { src: input(u8), dst: output(u8), width: i32, height: i32, pitch: u64, clip: u32 },
    launch: { grid: [Math.ceil(WIDTH / tileWidth), Math.ceil(HEIGHT / tileHeight)], block: 256 },
    given: { src: levels, dst: new Uint8Array(levels.length), width: WIDTH, height: HEIGHT, pitch: BigInt(PITCH), clip },
    results: { dst: equalised(tileWidth, tileHeight, clip) },
  };
}

// ── erosion and dilation of 45 x 19 pixels ──
const [NX, NY] = [45, 19];
const heights = Uint16Array.from({ length: NX * NY }, (_unused, i) => noise(i) * 250 + 7);
function reduced(window: readonly number[], better: (...values: number[]) => number): Uint16Array {
  const r = window.length >> 1;
  return heights.map((_unused, at) => {
    const near: number[] = [];
    for (let dy = -r; dy <= r; dy++)
      for (let dx = -window[dy + r]!; dx <= window[dy + r]!; dx++) {
        const [x, y] = [(at % NX) + dx, Math.floor(at / NX) + dy];
        if (x >= 0 && y >= 0 && x < NX && y < NY) near.push(heights[y * NX + x]!);
      }
    return better(...near);
  });
}
function morphologyCase(kernel: string, r: number, out: Uint16Array): TextCase {
  return {
    file: 'images/morphology-policies',
    kernel,
    params: { in: input(u16), out: output(u16), size: struct({ width: i32, height: i32 }) },
    launch: { grid: [2, 3], block: [32, 8], sharedBytes: 2 * (32 + 2 * r) * (8 + 2 * r) },
    given: { in: heights, out: new Uint16Array(NX * NY), size: { width: NX, height: NY } },
    results: { out },
  };
}

// ── brightness and chroma of 38 x 22 pixels ──
const [YUV_W, YUV_H] = [38, 22];
const rgba = Uint8Array.from({ length: 4 * YUV_W * YUV_H }, (_unused, i) => noise(7 * i + 1));
const MATRIX = [
  [0.25, 0.5, 0.125],
  [-0.125, -0.25, 0.375],
  [0.4375, -0.375, -0.0625],
];
const mixed = (pixel: number, row: number): number => MATRIX[row]!.reduce((sum, weight, c) => sum + weight * rgba[4 * pixel + c]!, 0);
const quadOf = (x: number, y: number): number[] => [y * YUV_W + x, y * YUV_W + x + 1, (y + 1) * YUV_W + x, (y + 1) * YUV_W + x + 1];
const nv12 = Uint8Array.from({ length: (YUV_W * YUV_H * 3) / 2 }, (_unused, i) => {
  if (i < YUV_W * YUV_H) return mixed(i, 0);
  const at = i - YUV_W * YUV_H;
  const [x, y] = [(at % YUV_W) & ~1, 2 * Math.floor(at / YUV_W)];
  const mean = quadOf(x, y).reduce((sum, pixel) => sum + mixed(pixel, 1 + (at % 2)), 0) / 4;
  return Math.min(Math.max(mean + 128, 0), 255);
});
const thumbnail = Uint32Array.from({ length: (YUV_W * YUV_H) / 4 }, (_unused, i) => {
  const pixels = quadOf(2 * (i % (YUV_W / 2)), 2 * Math.floor(i / (YUV_W / 2)));
  const [r, g, b] = [0, 1, 2].map((c) => {
    const [p, q, s, t] = pixels.map((pixel) => rgba[4 * pixel + c]!) as [number, number, number, number];
    const most = Math.max(0, Math.max((p + q + 1) >> 1, (s + t + 1) >> 1) - 16);
    return Math.trunc(f(f(Math.min(1, f(most / (c === 1 ? 127.5 : 255)))) * 255));
  }) as [number, number, number];
  return ((255 << 24) | (r << 16) | (g << 8) | b) >>> 0;
});

// ── the Mandelbrot set, in pairs of floats ──
type Pair = readonly [high: number, low: number];
function plus([a, b]: Pair, [c, d]: Pair): Pair {
  const t = f(a + c);
  const e = f(t - a);
  const rest = f(f(f(c - e) + f(a - f(t - e))) + f(b + d));
  const sum = f(t + rest);
  return [sum, f(rest - f(sum - t))];
}
function times([a, b]: Pair, [c, d]: Pair): Pair {
  const p = f(a * c);
  // The product of two floats is exact in a double.
  const e = f(f(a * c - p) + f(f(a * d) + f(b * c)));
  const high = f(p + e);
  return [high, f(e - f(high - p))];
}
const negated = ([a, b]: Pair): Pair => [-a, -b];
const [FRACTAL_W, FRACTAL_H, CRUNCH, STEP] = [50, 27, 60, f(0.004)];
const X_OFFSET: Pair = [f(-0.77), f(-0.77 - f(-0.77))];
const Y_OFFSET: Pair = [f(0.06), f(0.06 - f(0.06))];
const COLORS = [3, 5, 7, 0];
const fractal = Uint8Array.from({ length: 4 * FRACTAL_W * FRACTAL_H }, (_unused, at) => {
  const pixel = at >> 2;
  const [re, im] = [plus([f((pixel % FRACTAL_W) * STEP), 0], X_OFFSET), plus([f(Math.floor(pixel / FRACTAL_W) * STEP), 0], Y_OFFSET)];
  let [x, y] = [re, im];
  let i = CRUNCH;
  while (--i > 0) {
    const [high, low] = plus(times(x, x), times(y, y));
    if (high > 4 || (high === 4 && low > 0)) break;
    const both = times(x, y);
    [x, y] = [plus(plus(times(x, x), negated(times(y, y))), re), plus(plus(both, both), im)];
  }
  const m = i > 0 ? CRUNCH - i : 0;
  if (m === 0) return 0;
  return at % 4 === 3 ? Math.abs(m - CRUNCH / 2) : m * COLORS[at % 4]!;
});
const Double = struct({ hi: f32, lo: f32 });

export const PICTURE_CASES: readonly TextCase[] = [
  equaliseCase(24, 16, 0),
  equaliseCase(32, 20, 4),
  morphologyCase('morph::filter<morph::Least, morph::Disk, uint16_t>', 2, reduced([1, 2, 2, 2, 1], Math.min)),
  morphologyCase('filter<morph::Most, morph::Square<3>, uint16_t>', 3, reduced([3, 3, 3, 3, 3, 3, 3], Math.max)),
  morphologyCase(
    'filter<morph::Least, morph::Square<1>, uint16_t, true>',
    1,
    reduced([1, 1, 1], Math.min).map((v, i) => heights[i]! - v),
  ),
  {
    file: 'images/rgba-to-yuv',
    kernel: 'rgba_to_nv12',
    params: { rgba: input(u32), nv12: output(u8), thumbnail: output(u32), width: i32, height: i32 },
    launch: { grid: [2, 3], block: [16, 4] },
    given: {
      rgba: new Uint32Array(rgba.buffer),
      nv12: new Uint8Array(nv12.length),
      thumbnail: new Uint32Array(thumbnail.length),
      width: YUV_W,
      height: YUV_H,
    },
    results: { nv12, thumbnail },
  },
  {
    file: 'images/mandelbrot-double-single',
    kernel: 'Mandelbrot_ds',
    params: {
      dst: output(u8),
      imageW: i32,
      imageH: i32,
      crunch: i32,
      xOff: Double,
      yOff: Double,
      scale: f32,
      colors: vec(u8, 4),
      gridWidth: i32,
      numBlocks: i32,
    },
    launch: { grid: 3, block: [16, 8] },
    given: {
      dst: new Uint8Array(fractal.length),
      imageW: FRACTAL_W,
      imageH: FRACTAL_H,
      crunch: CRUNCH,
      xOff: { hi: X_OFFSET[0], lo: X_OFFSET[1] },
      yOff: { hi: Y_OFFSET[0], lo: Y_OFFSET[1] },
      scale: STEP,
      colors: COLORS,
      gridWidth: 4,
      numBlocks: 16,
    },
    results: { dst: fractal },
  },
];
