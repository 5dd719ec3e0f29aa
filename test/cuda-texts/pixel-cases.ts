// Idioms of images, the rest: labels, rays, sizes.
import { f32, i16, i32, inout, input, output, struct, u32, u64, u8, vec2i } from 'millrace';
import { floats, type TextCase } from './text-case.js';

const noise = (i: number): number => (Math.imul(i + 1, 2_654_435_761) >>> 9) & 255;
const clamp = (v: number, low: number, high: number): number => Math.min(Math.max(v, low), high);

// ── labels of 45 x 21 pixels of two values, by tiles of 16 x 8 ──
const [COLS, ROWS] = [45, 21];
const binary = Uint8Array.from({ length: COLS * ROWS }, (_unused, i) => (noise(i) % 5 < 2 || i % COLS === 7 ? 1 : 0));
const tileOf = (i: number): number => Math.floor((i % COLS) / 16) + 8 * Math.floor(i / COLS / 8);
/** The least index that is connected with each pixel by equal pixels for which `joins` holds. */
function labelled(joins: (a: number, b: number) => boolean): Uint32Array {
  const labels = Uint32Array.from({ length: binary.length }, (_unused, i) => i);
  for (let isChanging = true; isChanging; ) {
    isChanging = false;
    for (let i = 0; i < labels.length; i++)
      for (const other of [i % COLS > 0 ? i - 1 : i, i >= COLS ? i - COLS : i]) {
        if (binary[i] !== binary[other] || labels[i] === labels[other] || !joins(i, other)) continue;
        labels[i] = labels[other] = Math.min(labels[i]!, labels[other]!);
        isChanging = true;
      }
  }
  return labels;
}
const whole = labelled(() => true);
// Trees with the labels as roots: each pixel points to the next smaller pixel of its component.
const trees = whole.map((label, i) => (label === i ? i : whole.lastIndexOf(label, i - 1)));

// ── rays through 44 x 23 pixels to 5 spheres ──
type Vector = [number, number, number];
const [VIEW_W, VIEW_H, SPHERES] = [44, 23, 5];
const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const along = (a: Vector, t: number, b: Vector): Vector => [a[0] + t * b[0], a[1] + t * b[1], a[2] + t * b[2]];
const RADIUS = 0.625;
function colour(from: Vector, to: Vector, depth: number): Vector {
  let [nearest, found] = [Infinity, -1];
  const centre = (i: number): Vector => [i - SPHERES / 2, 0.25 * (i % 3), -2 - 0.5 * i];
  for (let i = 0; i < (depth > 0 ? SPHERES : 0); i++) {
    const between = along(from, -1, centre(i));
    const [a, b, c] = [dot(to, to), dot(between, to), dot(between, between) - RADIUS ** 2];
    if (b * b - a * c <= 0) continue;
    const t = (-b - Math.sqrt(b * b - a * c)) / a;
    if (t > 0.001 && t < nearest) [nearest, found] = [t, i];
  }
  if (found < 0) {
    const t = 0.5 * (to[1] / Math.sqrt(dot(to, to)) + 1);
    return [1 - t + 0.5 * t, 1 - t + 0.75 * t, 1];
  }
  const at = along(from, nearest, to);
  const normal = along([0, 0, 0], 1 / RADIUS, along(at, -1, centre(found)));
  if (found % 2 === 0) return [0.25 * found, 0.5, 1].map((c) => Math.max(0, normal[1]) * c) as Vector;
  return colour(at, along(to, -2 * dot(to, normal), normal), depth - 1).map((c) => 0.75 * c) as Vector;
}
const view = Array.from({ length: VIEW_W * VIEW_H }, (_unused, at) =>
  colour([0, 0, 0], [(4 * (at % VIEW_W)) / VIEW_W - 2, (2 * Math.floor(at / VIEW_W)) / VIEW_H - 1, -1], 4),
).flat();

// ── other sizes of 45 x 30 pixels; all positions are exact floats ──
const [SOURCE_W, SOURCE_H, SOURCE_PITCH] = [45, 30, 192];
const source = Uint8Array.from({ length: SOURCE_PITCH * SOURCE_H }, (_unused, i) => noise(i));
function resized(
  mode: 'Nearest' | 'Bilinear' | 'Area',
  channels: 1 | 4,
  width: number,
  height: number,
  grid: readonly [number, number],
): TextCase {
  const [sx, sy] = [SOURCE_W / width, SOURCE_H / height];
  const pixel = (x: number, y: number, c: number): number =>
    source[clamp(y, 0, SOURCE_H - 1) * SOURCE_PITCH + channels * clamp(x, 0, SOURCE_W - 1) + c]!;
  const dst = floats(width * height * channels, (at) => {
    const [x, y, c] = [Math.floor(at / channels) % width, Math.floor(at / channels / width), at % channels];
    if (mode === 'Nearest') return pixel(Math.floor((x + 0.5) * sx), Math.floor((y + 0.5) * sy), c);
    let [sum, weights] = [0, 0];
    const [fx, fy] = [(x + 0.5) * sx - 0.5, (y + 0.5) * sy - 0.5];
    for (let v = Math.floor(y * sy) - 2; v < (y + 1) * sy + 2; v++)
      for (let u = Math.floor(x * sx) - 2; u < (x + 1) * sx + 2; u++) {
        const overlap = (from: number, scale: number, i: number): number =>
          Math.max(0, Math.min(i + 1, (from + 1) * scale) - Math.max(i, from * scale));
        const tent = (d: number): number => Math.max(0, 1 - Math.abs(d));
        const weight = mode === 'Area' ? overlap(x, sx, u) * overlap(y, sy, v) : tent(u - fx) * tent(v - fy);
        sum += weight * pixel(u, v, c);
        weights += weight;
      }
    return sum / weights;
  });
  return {
    file: 'images/resize-samplers',
    kernel: `imgproc::detail::resize<imgproc::detail::Interpolation::${mode}${channels === 4 ? '' : ', 1'}>`,
    params: { src: struct({ data: input(u8), size: vec2i, pitch: i32 }), dst: output(f32), size: vec2i },
    launch: { grid, block: [32, 4] },
    given: {
      src: { data: source, size: [SOURCE_W, SOURCE_H], pitch: SOURCE_PITCH },
      dst: new Float32Array(dst.length),
      size: [width, height],
    },
    results: { dst },
    tolerance: 1e-5,
  };
}

// ── a level of a pyramid over 133 x 37 pixels ──
const [BASE_W, BASE_H] = [133, 37];
const base = Int16Array.from({ length: BASE_W * BASE_H }, (_unused, i) => noise(i) * 257 - 32_768);
const mirrored = (i: number, n: number): number => n - 1 - Math.abs(n - 1 - Math.abs(i));
const [LEVEL_W, LEVEL_H] = [67, 19];
const level = Int16Array.from({ length: LEVEL_W * LEVEL_H }, (_unused, at) => {
  const [x, y] = [2 * (at % LEVEL_W), 2 * Math.floor(at / LEVEL_W)];
  const weights = [1, 4, 6, 4, 1];
  let sum = 0;
  for (const [i, wy] of weights.entries())
    for (const [j, wx] of weights.entries()) sum += wx * wy * base[mirrored(y + i - 2, BASE_H) * BASE_W + mirrored(x + j - 2, BASE_W)]!;
  const [floor, rest] = [Math.floor(sum / 256), sum & 255];
  return rest > 128 || (rest === 128 && floor % 2 !== 0) ? floor + 1 : floor;
});

// ── the brightest of 13 slices of 21 x 10 numbers, in rows of 96 bytes ──
const SLICES = { width: 21, height: 10, depth: 13, pitch: 96 };
const volume = floats((SLICES.pitch / 4) * SLICES.height * SLICES.depth, (i) => (noise(i) % 128) / 128);
const RAMP = [
  [0, 0, 0],
  [128, 0, 32],
  [255, 128, 64],
  [255, 255, 255],
] as const;
const brightest = Array.from({ length: SLICES.width * SLICES.height }, (_unused, at) => {
  const [x, y] = [at % SLICES.width, Math.floor(at / SLICES.width)];
  const line = Array.from({ length: SLICES.depth }, (_unused_too, z) => volume[((z * SLICES.height + y) * SLICES.pitch) / 4 + x]!);
  const best = Math.max(...line);
  const low = Math.min(Math.trunc(3 * best), 2);
  const colours = [0, 1, 2].map((c) => Math.trunc(RAMP[low]![c]! + (3 * best - low) * (RAMP[low + 1]![c]! - RAMP[low]![c]!)));
  return { colours, depth: line.indexOf(best) / (SLICES.depth - 1) };
});

export const PIXEL_CASES: readonly TextCase[] = [
  {
    file: 'images/connected-components',
    kernel: 'labeling::LocalMerge',
    params: { img: input(u8), labels: output(u32), cols: i32, rows: i32 },
    launch: { grid: [3, 3], block: [16, 8] },
    given: { img: binary, labels: new Uint32Array(binary.length), cols: COLS, rows: ROWS },
    results: { labels: labelled((a, b) => tileOf(a) === tileOf(b)) },
  },
  {
    file: 'images/connected-components',
    kernel: 'PathCompression',
    params: { labels: inout(u32), n: i32 },
    launch: { grid: 8, block: 128 },
    given: { labels: trees, n: trees.length },
    results: { labels: whole },
  },
  {
    file: 'images/ray-spheres',
    kernel: 'render',
    params: { fb: output(f32), max_x: i32, max_y: i32, spheres: i32 },
    launch: { grid: [6, 3], block: [8, 8] },
    given: { fb: new Float32Array(view.length), max_x: VIEW_W, max_y: VIEW_H, spheres: SPHERES },
    results: { fb: Float32Array.from(view) },
    tolerance: 1e-4,
  },
  resized('Nearest', 4, 72, 24, [3, 6]),
  resized('Bilinear', 4, 36, 24, [2, 6]),
  resized('Area', 1, 36, 24, [2, 6]),
  {
    file: 'images/gaussian-pyramid',
    kernel: 'pyramid::pyrDown<short>',
    params: { src: input(i16), cols: i32, rows: i32, dst: output(i16), dst_cols: i32 },
    launch: { grid: [3, LEVEL_H], block: 64 },
    given: { src: base, cols: BASE_W, rows: BASE_H, dst: new Int16Array(level.length), dst_cols: LEVEL_W },
    results: { dst: level },
  },
  {
    file: 'images/pitched-volume',
    kernel: 'projection::maximum',
    params: {
      volume: struct({ ptr: input(f32), pitch: u64, xsize: u64, ysize: u64 }),
      extent: struct({ width: u64, height: u64, depth: u64 }),
      image: output(u8),
      depth: output(f32),
    },
    launch: { grid: [3, 3], block: [8, 4] },
    given: {
      volume: { ptr: volume, pitch: BigInt(SLICES.pitch), xsize: BigInt(SLICES.pitch), ysize: BigInt(SLICES.height) },
      extent: { width: BigInt(SLICES.width), height: BigInt(SLICES.height), depth: BigInt(SLICES.depth) },
      image: new Uint8Array(3 * brightest.length),
      depth: new Float32Array(brightest.length),
    },
    results: {
      image: Uint8Array.from(brightest.flatMap(({ colours }) => colours)),
      depth: Float32Array.from(brightest, ({ depth }) => depth),
    },
  },
];
