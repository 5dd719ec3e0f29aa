// The four filters as kernels: four TypeScript functions and two CUDA C++ texts. `reference.ts` says the same in plain
// TypeScript.
//
// Pictures are interleaved RGB bytes seen as two-dimensional arrays: a row of the array is a row of the picture, so an
// RGB picture of w x h pixels is [h, w * 3] and a grey one [h, w]. Bytes come in and go out, what lies between is
// float, and every result is rounded once, at the end: so two devices that add in another order differ by 1 at most.
import { cudaKernel, f32, i32, inout, input, kernel, output, u8, u32 } from 'millrace';

/** Brightness in whole numbers, so that everything made of it is the same on every device. */
export const brightness = kernel('brightness', { rgb: input(u8, 2), grey: output(u8, 2) }, ({ rgb, grey }, { i, j }) => {
  grey.set(i, j, (77 * rgb.at(i, 3 * j) + 150 * rgb.at(i, 3 * j + 1) + 29 * rgb.at(i, 3 * j + 2)) >> 8);
});

/** The Gaussian blur is separable: along the rows first. Pixels beyond the edge repeat it. */
export const blurRows = kernel(
  'blurRows',
  { rgb: input(u8, 2), weights: input(f32), radius: i32, rows: output(f32, 2) },
  ({ rgb, weights, radius, rows }, { i, j }) => {
    const channel = j % 3;
    const last = rgb.shape[1] - 3 + channel;
    let sum = 0;
    for (let k = -radius; k <= radius; k++) {
      sum += weights[k + radius]! * rgb.at(i, Math.min(Math.max(j + 3 * k, channel), last));
    }
    rows.set(i, j, sum);
  },
);

/** Then along the columns. `smooth` keeps the fractions for the unsharp mask. */
export const blurColumns = kernel(
  'blurColumns',
  { rows: input(f32, 2), weights: input(f32), radius: i32, smooth: output(f32, 2), blurred: output(u8, 2) },
  ({ rows, weights, radius, smooth, blurred }, { i, j, i32: toInt }) => {
    const last = rows.shape[0] - 1;
    let sum = 0;
    for (let k = -radius; k <= radius; k++) {
      sum += weights[k + radius]! * rows.at(Math.min(Math.max(i + k, 0), last), j);
    }
    smooth.set(i, j, sum);
    blurred.set(i, j, toInt(Math.min(sum + 0.5, 255)));
  },
);

/** Sobel's edges: the length of the gradient of the brightness. */
export const edges = kernel(
  'edges',
  { grey: input(u8, 2), gradient: output(u8, 2) },
  ({ grey, gradient }, { i, j, i32: toInt, f32: toFloat }) => {
    const up = Math.max(i - 1, 0);
    const down = Math.min(i + 1, grey.shape[0] - 1);
    const left = Math.max(j - 1, 0);
    const right = Math.min(j + 1, grey.shape[1] - 1);
    const x =
      grey.at(up, right) + 2 * grey.at(i, right) + grey.at(down, right) - grey.at(up, left) - 2 * grey.at(i, left) - grey.at(down, left);
    const y =
      grey.at(down, left) + 2 * grey.at(down, j) + grey.at(down, right) - grey.at(up, left) - 2 * grey.at(up, j) - grey.at(up, right);
    gradient.set(i, j, toInt(Math.min(Math.sqrt(toFloat(x * x + y * y)) + 0.5, 255)));
  },
);

/** Unsharp mask: adds what the blur took away. One thread a byte. */
export const sharpen = cudaKernel(
  'sharpen',
  { rgb: input(u8, 2), smooth: input(f32, 2), sharp: output(u8, 2), amount: f32, count: i32 },
  `
extern "C" __global__ void sharpen(const unsigned char* rgb, const float* smooth, unsigned char* sharp, float amount, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  float value = rgb[at] + amount * (rgb[at] - smooth[at]);
  sharp[at] = (unsigned char)(fminf(fmaxf(value, 0.0f), 255.0f) + 0.5f);
}
`,
);

/** How many pixels have each of 256 brightnesses. Every thread takes pixels a whole grid apart; `bins` starts at zero. */
export const histogram = cudaKernel(
  'histogram',
  { grey: input(u8, 2), bins: inout(u32), count: i32 },
  `
extern "C" __global__ void histogram(const unsigned char* grey, unsigned int* bins, int count) {
  int stride = gridDim.x * blockDim.x;
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) atomicAdd(&bins[grey[at]], 1u);
}
`,
);

export const BINS = 256;
export const BLUR_RADIUS = 4;
export const SHARPEN_AMOUNT = 1.5;

/** The weights of a Gaussian bell of that radius; they add up to 1. */
export function gaussian(radius: number): Float32Array<ArrayBuffer> {
  const sigma = radius / 2;
  const bell = Array.from({ length: 2 * radius + 1 }, (_, at) => Math.exp(-((at - radius) ** 2) / (2 * sigma * sigma)));
  const sum = bell.reduce((total, weight) => total + weight, 0);
  return Float32Array.from(bell, (weight) => weight / sum);
}
