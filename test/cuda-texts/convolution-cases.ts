// Idioms of layers over images: convolution, patches, pooling, batch normalisation.
import { f32, f64, i32, input, output, struct, u32 } from 'millrace';
import { doubles, floats, type TextCase } from './text-case.js';

const value = (i: number): number => ((i * 7919) % 97) / 24 - 2;

// ── a convolution with constant filters ──
const [WIDTH, HEIGHT] = [37, 21];
const picture = floats(WIDTH * HEIGHT, value);
const FILTERS = [
  [],
  [1, 2, 1, 2, 4, 2, 1, 2, 1].map((w) => w / 16),
  [1, 2, 3, 2, 1, 0, 1, 2, 1, 0, -1, 0, 1, 0, -1, 0, -1, -2, -1, 0, -1, -2, -3, -2, -1],
];
function convolved(r: number, isClamped: boolean): Float32Array {
  return picture.map((_unused, at) => {
    let sum = 0;
    for (const [i, weight] of FILTERS[r]!.entries()) {
      const [x, y] = [(at % WIDTH) + (i % (2 * r + 1)) - r, Math.floor(at / WIDTH) + Math.floor(i / (2 * r + 1)) - r];
      const [nearX, nearY] = [Math.min(Math.max(x, 0), WIDTH - 1), Math.min(Math.max(y, 0), HEIGHT - 1)];
      if (isClamped || (x === nearX && y === nearY)) sum += weight * picture[nearY * WIDTH + nearX]!;
    }
    return 0.5 * sum - 1.25;
  });
}
const convolution = {
  file: 'learning/convolution-constant-tile',
  params: { in: input(f32), out: output(f32), width: i32, height: i32, border: i32 },
  launch: { grid: [3, 3], block: [16, 8] },
  tolerance: 1e-5,
} as const;
const convolutionOf = (border: number): TextCase['given'] => ({
  in: picture,
  out: new Float32Array(picture.length),
  width: WIDTH,
  height: HEIGHT,
  border,
});

// ── patches: 3 channels of 19 x 14, of which every second place is taken ──
const PATCH = { channels: 3, height: 14, width: 19, ksize: 3, pad: 2, stride: 2, dilation: 2 };
const extent = (side: number): number => Math.floor((side + 2 * PATCH.pad - (PATCH.dilation * (PATCH.ksize - 1) + 1)) / PATCH.stride) + 1;
const [OUT_W, OUT_H] = [extent(PATCH.width), extent(PATCH.height)];
const channels = doubles(PATCH.channels * PATCH.height * PATCH.width, value);
const columns = doubles(PATCH.channels * PATCH.ksize ** 2 * OUT_H * OUT_W, (at) => {
  const [x, y, patch] = [at % OUT_W, Math.floor(at / OUT_W) % OUT_H, Math.floor(at / (OUT_W * OUT_H))];
  const [j, i, channel] = [patch % PATCH.ksize, Math.floor(patch / PATCH.ksize) % PATCH.ksize, Math.floor(patch / PATCH.ksize ** 2)];
  const h = y * PATCH.stride - PATCH.pad + i * PATCH.dilation;
  const w = x * PATCH.stride - PATCH.pad + j * PATCH.dilation;
  return h < 0 || w < 0 || h >= PATCH.height || w >= PATCH.width ? 0 : channels[(channel * PATCH.height + h) * PATCH.width + w]!;
});
function division(divisor: number): { divisor: number; multiplier: number; shift_right: number } {
  const log = Math.ceil(Math.log2(divisor));
  return { divisor, multiplier: Math.floor((2 ** (31 + log) + divisor - 1) / divisor), shift_right: log - 1 };
}
const Division = struct({ divisor: i32, multiplier: u32, shift_right: u32 });

export const CONVOLUTION_CASES: readonly TextCase[] = [
  { ...convolution, kernel: 'convolution_1', given: convolutionOf(1), results: { out: convolved(1, true) } },
  { ...convolution, kernel: 'convolution_2', given: convolutionOf(0), results: { out: convolved(2, false) } },
  {
    file: 'learning/im2col-fast-division',
    kernel: 'im2col_kernel<double>',
    params: {
      n: i32,
      data_im: input(f64),
      s: struct({ w_out: Division, h_out: Division, height: i32, width: i32, ksize: i32, pad: i32, stride: i32, dilation: i32 }),
      data_col: output(f64),
    },
    launch: { grid: 2, block: 64 },
    given: {
      n: PATCH.channels * OUT_H * OUT_W,
      data_im: channels,
      s: {
        w_out: division(OUT_W),
        h_out: division(OUT_H),
        height: PATCH.height,
        width: PATCH.width,
        ksize: PATCH.ksize,
        pad: PATCH.pad,
        stride: PATCH.stride,
        dilation: PATCH.dilation,
      },
      data_col: new Float64Array(columns.length),
    },
    results: { data_col: columns },
  },
];
