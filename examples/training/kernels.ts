// What the layers need beside `millrace/ops`: patches of pictures, pooling with the way back, the loss, and Adam. Pictures are [image, row, column,
// channel], so a convolution is a product of matrices: patches [image * row * column, 5 * 5 * channels] times weights.
import { f32, i32, inout, input, kernel, output, u8 } from 'millrace';
import { CLASSES } from './shape.js';

/** Rows and columns of the filters. */
export const FILTER = 5;

/** Bytes of pictures as numbers from 0 to 1. */
export const brightness = kernel('brightness', { bytes: input(u8), values: output(f32) }, ({ bytes, values }, { i, f32: toFloat }) => {
  values[i] = toFloat(bytes[i]!) / 255;
});

/** im2col: row i of `patches` has what the filter sees at place i. `side` is that of `x`, which has `channels`. */
export const patches = kernel(
  'patches',
  { x: input(f32), patches: output(f32, 2), side: i32, channels: i32 },
  ({ x, patches: to, side, channels }, { i, j, idiv }) => {
    const places = side - FILTER + 1;
    const image = idiv(i, places * places);
    const row = idiv(i, places) % places;
    const tap = idiv(j, channels);
    const from = ((image * side + row + idiv(tap, FILTER)) * side + (i % places) + (tap % FILTER)) * channels + (j % channels);
    to.set(i, j, x[from]!);
  },
  { constants: { FILTER } },
);

/** The way back of `patches`: each element of `x` gets the sum of its copies. One thread an element: rows of `dx` are places, columns channels. */
export const unpatch = kernel(
  'unpatch',
  { patches: input(f32, 2), dx: output(f32, 2), side: i32 },
  ({ patches: from, dx, side }, { i, j, idiv }) => {
    const places = side - FILTER + 1;
    const channels = dx.shape[1];
    const image = idiv(i, side * side);
    const row = idiv(i, side) % side;
    const column = i % side;
    let sum = 0;
    for (let down = Math.max(0, row - places + 1); down <= Math.min(FILTER - 1, row); down++) {
      for (let right = Math.max(0, column - places + 1); right <= Math.min(FILTER - 1, column); right++) {
        sum += from.at((image * places + row - down) * places + column - right, (down * FILTER + right) * channels + j);
      }
    }
    dx.set(i, j, sum);
  },
  { constants: { FILTER } },
);

/** Bias, ReLU and the maximum of 2 x 2 places. Rows of `z` and `y` are places, columns channels; `side` is that of `y`. */
export const poolRelu = kernel(
  'pool_relu',
  { z: input(f32, 2), bias: input(f32), y: output(f32, 2), side: i32 },
  ({ z, bias, y, side }, { i, j, idiv }) => {
    const corner = (2 * idiv(i, side) * side + (i % side)) * 2;
    const below = corner + 2 * side;
    const most = Math.max(Math.max(z.at(corner, j), z.at(corner + 1, j)), Math.max(z.at(below, j), z.at(below + 1, j)));
    y.set(i, j, Math.max(most + bias[j]!, 0));
  },
);

/** The way back of `poolRelu`: the place that was the maximum gets what came back, and the others 0. `side` is that of `y`. */
export const unpool = kernel(
  'unpool',
  { z: input(f32, 2), bias: input(f32), y: input(f32, 2), dy: input(f32, 2), dz: output(f32, 2), side: i32 },
  ({ z, bias, y, dy, dz, side }, { i, j, idiv }) => {
    const at = idiv(idiv(i, 2 * side), 2) * side + idiv(i % (2 * side), 2);
    const isMost = y.at(at, j) > 0 && y.at(at, j) === z.at(i, j) + bias[j]!;
    dz.set(i, j, isMost ? dy.at(at, j) : 0);
  },
);

/** Softmax and its cross entropy, a thread an image; `dz` is the gradient of the mean loss. */
export const softmaxLoss = kernel(
  'softmax_loss',
  { z: input(f32, 2), bias: input(f32), labels: input(u8), dz: output(f32, 2), losses: inout(f32), step: i32 },
  ({ z, bias, labels, dz, losses, step }, { i, f32: toFloat }) => {
    const images = z.shape[0];
    let most = z.at(i, 0) + bias[0]!;
    for (let c = 1; c < CLASSES; c++) most = Math.max(most, z.at(i, c) + bias[c]!);
    let sum = toFloat(0);
    for (let c = 0; c < CLASSES; c++) sum += Math.exp(z.at(i, c) + bias[c]! - most);
    const label = labels[i]!;
    for (let c = 0; c < CLASSES; c++) {
      const share = Math.exp(z.at(i, c) + bias[c]! - most) / sum;
      dz.set(i, c, (share - (c === label ? 1 : 0)) / toFloat(images));
    }
    losses[step * images + i] = Math.log(sum) + most - z.at(i, label) - bias[label]!;
  },
  { constants: { CLASSES } },
);

/** The probabilities of an answer, a thread an image. */
export const softmax = kernel(
  'softmax',
  { z: input(f32, 2), bias: input(f32), shares: output(f32, 2) },
  ({ z, bias, shares }, { i, f32: toFloat }) => {
    let most = z.at(i, 0) + bias[0]!;
    for (let c = 1; c < CLASSES; c++) most = Math.max(most, z.at(i, c) + bias[c]!);
    let sum = toFloat(0);
    for (let c = 0; c < CLASSES; c++) sum += Math.exp(z.at(i, c) + bias[c]! - most);
    for (let c = 0; c < CLASSES; c++) shares.set(i, c, Math.exp(z.at(i, c) + bias[c]! - most) / sum);
  },
  { constants: { CLASSES } },
);

/** Kingma and Ba's Adam. `rate` includes the corrections of the first steps. */
export const adam = kernel(
  'adam',
  { parameters: inout(f32), gradients: input(f32), mean: inout(f32), square: inout(f32), rate: f32 },
  ({ parameters, gradients, mean, square, rate }, { i }) => {
    const gradient = gradients[i]!;
    const m = 0.9 * mean[i]! + 0.1 * gradient;
    const s = 0.999 * square[i]! + 0.001 * gradient * gradient;
    mean[i] = m;
    square[i] = s;
    parameters[i] = parameters[i]! - (rate * m) / (Math.sqrt(s) + 1e-7);
  },
);

export const KERNELS = [brightness, patches, unpatch, poolRelu, unpool, softmaxLoss, softmax, adam] as const;
