// Idioms of layers over images: patches, pooling.
import { arrayOf, f32, f64, i32, inout, input, output, struct, u32 } from 'millrace';
import { doubles, floats, type TextCase } from './text-case.js';

const value = (i: number): number => ((i * 7919) % 97) / 24 - 2;

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

// ── maximum pooling of 2 planes of 17 x 23 in windows of 3 x 3, every second place; the last windows are smaller ──
const POOL = { planes: 2, height: 17, width: 23, kernel: 3, stride: 2, outHeight: 9, outWidth: 12 };
const planes = floats(POOL.planes * POOL.height * POOL.width, value);
const largest = Array.from({ length: POOL.planes * POOL.outHeight * POOL.outWidth }, (_unused, at) => {
  const [x, y, plane] = [
    at % POOL.outWidth,
    Math.floor(at / POOL.outWidth) % POOL.outHeight,
    Math.floor(at / (POOL.outWidth * POOL.outHeight)),
  ];
  let [best, where] = [-Infinity, -1];
  for (let h = y * POOL.stride; h < Math.min(y * POOL.stride + POOL.kernel, POOL.height); h++)
    for (let w = x * POOL.stride; w < Math.min(x * POOL.stride + POOL.kernel, POOL.width); w++) {
      const v = planes[(plane * POOL.height + h) * POOL.width + w]!;
      if (v > best) [best, where] = [v, h * POOL.width + w];
    }
  return [best, where] as const;
});
const tensor = <A>(data_: A) => struct({ data_: data_ as never, sizes_: arrayOf(i32, 3), strides_: arrayOf(i32, 3) });
const layout = (height: number, width: number): { sizes_: number[]; strides_: number[] } => ({
  sizes_: [POOL.planes, height, width],
  strides_: [height * width, width, 1],
});

export const CONVOLUTION_CASES: readonly TextCase[] = [
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
  {
    file: 'learning/max-pool-accessor',
    kernel: 'max_pool2d<float>',
    params: { input: tensor(inout(f32)), output: tensor(inout(f32)), indices: tensor(inout(i32)), kernel: i32, stride: i32 },
    launch: { grid: [2, 3, POOL.planes], block: [8, 4] },
    given: {
      input: { data_: planes, ...layout(POOL.height, POOL.width) },
      output: { data_: new Float32Array(largest.length), ...layout(POOL.outHeight, POOL.outWidth) },
      indices: { data_: new Int32Array(largest.length), ...layout(POOL.outHeight, POOL.outWidth) },
      kernel: POOL.kernel,
      stride: POOL.stride,
    },
    results: {
      'output.data_': Float32Array.from(largest, ([best]) => best),
      'indices.data_': Int32Array.from(largest, ([, where]) => where),
    },
  },
];
