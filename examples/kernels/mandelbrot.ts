// The Mandelbrot set: for every pixel c, how many steps z = z^2 + c takes until it leaves the circle of radius 2.
//
// Threads of one block take different numbers of steps; each goes on until it is done, which is why a picture costs what
// its darkest parts cost. The picture is an array of three dimensions, [height, width, 3].
//
// On the edge of the set the last bit of a product decides the number of steps. Numbers are f64, as JavaScript's are, and
// `fmad: false` has products and sums rounded each for itself: so every pixel is the one that JavaScript computes.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { cudaKernel, f64, func, i32, input, kernel, output, u8, type Device } from 'millrace';
import { compare, FORMS, OUT, type Outcome, runAlone, timed } from './lesson.js';

/** Pixels that took as many steps belong to the set. */
const LIMIT = 512;
const [HEIGHT, WIDTH] = [640, 960];
const [LEFT, TOP, PIXEL] = [-2.55, -1.2, 2.4 / HEIGHT];

const stepsAt = func([f64, f64, i32], i32, (re, im, limit) => {
  let x = 0.0;
  let y = 0.0;
  let count = 0;
  while (count < limit && x * x + y * y <= 4) {
    const next = x * x - y * y + re;
    y = 2 * x * y + im;
    x = next;
    count++;
  }
  return count;
});

export const mandelbrot = kernel(
  'mandelbrot',
  { colours: input(u8, 2), picture: output(u8, 3), left: f64, top: f64, pixel: f64 },
  ({ colours, picture, left, top, pixel }, { i, j, steps }) => {
    const count = steps(left + j * pixel, top + i * pixel, colours.shape[0] - 1);
    for (let channel = 0; channel < 3; channel++) picture[i]![j]![channel] = colours[count]![channel]!;
  },
  { functions: { steps: stepsAt }, fmad: false },
);

export const mandelbrotText = cudaKernel(
  'mandelbrot',
  { colours: input(u8, 2), picture: output(u8, 3), left: f64, top: f64, pixel: f64, height: i32, width: i32, limit: i32 },
  `__device__ int steps(double re, double im, int limit) {
  double x = 0, y = 0;
  int count = 0;
  for (; count < limit && x * x + y * y <= 4; count++) {
    double next = x * x - y * y + re;
    y = 2 * x * y + im;
    x = next;
  }
  return count;
}
extern "C" __global__ void mandelbrot(const unsigned char* colours, unsigned char* picture, double left, double top, double pixel,
                                      int height, int width, int limit) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= height || j >= width) return;
  const unsigned char* colour = colours + 3 * steps(left + j * pixel, top + i * pixel, limit);
  for (int channel = 0; channel < 3; channel++) picture[3 * (i * width + j) + channel] = colour[channel];
}`,
  { options: ['--fmad=false'] },
);

export function reference(colours: Uint8Array): Uint8Array {
  const picture = new Uint8Array(3 * HEIGHT * WIDTH);
  for (let i = 0; i < HEIGHT; i++) {
    for (let j = 0; j < WIDTH; j++) {
      const [re, im] = [LEFT + j * PIXEL, TOP + i * PIXEL];
      let [x, y, count] = [0, 0, 0];
      for (; count < LIMIT && x * x + y * y <= 4; count++) [x, y] = [x * x - y * y + re, 2 * x * y + im];
      for (let channel = 0; channel < 3; channel++) picture[3 * (i * WIDTH + j) + channel] = colours[3 * count + channel]!;
    }
  }
  return picture;
}

/** A colour for each number of steps: waves that lengthen, and black for the set. */
export function palette(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: 3 * (LIMIT + 1) }, (_, at) => {
    const count = Math.floor(at / 3);
    const phase = 1.6 * Math.sqrt(count) + 3.6 - 0.9 * (at % 3);
    return count === LIMIT ? 0 : 127.5 * (1 - Math.cos(phase)) * Math.min(1, count / 8);
  });
}

export async function run(device: Device, out: string = OUT): Promise<readonly Outcome[]> {
  const shades = palette();
  const expected = reference(shades);
  const where = { left: LEFT, top: TOP, pixel: PIXEL };
  await Promise.all([device.compile(mandelbrot), device.compile(mandelbrotText), mkdir(out, { recursive: true })]);

  const outcomes: Outcome[] = [];
  using colours = device.from(shades, { shape: [LIMIT + 1, 3] });
  for (const form of FORMS) {
    using picture = device.empty([HEIGHT, WIDTH, 3], 'u8');
    const ms = await timed(device, () => {
      if (form === 'TypeScript') device.stream.launch(mandelbrot, [HEIGHT, WIDTH], { colours, picture, ...where });
      else {
        const args = { colours, picture, ...where, height: HEIGHT, width: WIDTH, limit: LIMIT };
        device.stream.launch(mandelbrotText, { threads: [HEIGHT, WIDTH], block: [32, 8] }, args);
      }
    });
    const pixels = await picture.read();
    outcomes.push(compare({ kernel: 'mandelbrot', form, ms }, pixels, expected, 0));
    if (form === 'TypeScript') {
      await sharp(pixels, { raw: { width: WIDTH, height: HEIGHT, channels: 3 } }).toFile(join(out, 'mandelbrot.png'));
    }
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
