// The face detector in plain TypeScript: what a service without a device runs, and what the device's answers are compared with.
import { ANCHORS, COLUMNS, FIRST, LAST, LAYERS, SIDE, sidesOf, VALUES } from './face-shape.js';

/** 3 x 3 pixels of three colours. */
const TAPS = 27;

/** Five numbers for each box, as the device's network makes them, for one picture of `side` x `side` RGB. */
export function plainBoxes(parameters: Float32Array, pixels: Uint8Array, side: number = SIDE): Float32Array {
  let at = 0;
  const next = (count: number): Float32Array => parameters.subarray(at, (at += count));
  const sides = sidesOf(side);
  let x = pool(multiply(patches(pixels, side), TAPS, next(TAPS * FIRST)), side - 2, 2, next(FIRST));
  for (const [n, { channels, filters, stride }] of LAYERS.entries()) {
    const y = depthwise(x, sides[n]!, next(9 * channels));
    x = pool(multiply(y, channels, next(channels * filters)), sides[n]!, stride, next(filters));
  }
  const [z, bias, last] = [multiply(x, LAST, next(LAST * COLUMNS)), next(COLUMNS), sides.at(-1)!];
  return z.map((sum, index) => {
    const [cell, column] = [Math.floor(index / COLUMNS), index % COLUMNS];
    const [part, value] = [column % VALUES, sum + bias[column]!];
    const share = 1 / (1 + Math.exp(-value));
    if (part === 4) return share;
    if (part < 2) return ((part === 0 ? cell % last : Math.floor(cell / last)) + share) / last;
    return (Math.exp(value) * ANCHORS[Math.floor(column / VALUES)]![part - 2]!) / last;
  });
}

/** A row for each place at which 3 x 3 pixels fit. */
function patches(pixels: Uint8Array, side: number): Float32Array {
  const places = side - 2;
  const rows = new Float32Array(places * places * TAPS);
  for (let at = 0, row = 0; row < places; row++) {
    for (let column = 0; column < places; column++) {
      for (let down = 0; down < 3; down++) {
        const from = ((row + down) * side + column) * 3;
        for (let tap = 0; tap < 9; tap++) rows[at++] = pixels[from + tap]!;
      }
    }
  }
  return rows;
}

/** Rows of `inner` numbers times a matrix. */
function multiply(x: Float32Array, inner: number, weights: Float32Array): Float32Array<ArrayBuffer> {
  const [rows, columns] = [x.length / inner, weights.length / inner];
  const z = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let k = 0; k < inner; k++) {
      const value = x[row * inner + k]!;
      for (let column = 0; column < columns; column++) z[row * columns + column]! += value * weights[k * columns + column]!;
    }
  }
  return z;
}

/** The maximum of 2 x 2 places, fewer at the end, with its bias and leaky ReLU. */
function pool(z: Float32Array, side: number, stride: number, bias: Float32Array): Float32Array {
  const [half, channels] = [Math.ceil(side / stride), bias.length];
  const y = new Float32Array(half * half * channels).fill(-Infinity);
  for (let row = 0; row < half * half; row++) {
    for (let window = 0; window < 4; window++) {
      const down = stride * Math.floor(row / half) + (window >> 1);
      const right = stride * (row % half) + (window & 1);
      if (down >= side || right >= side) continue;
      for (let channel = 0; channel < channels; channel++) {
        const at = row * channels + channel;
        y[at] = Math.max(y[at]!, z[(down * side + right) * channels + channel]!);
      }
    }
  }
  for (const [at, most] of y.entries()) {
    const value = most + bias[at % channels]!;
    y[at] = Math.max(value, 0.1 * value);
  }
  return y;
}

/** A filter of 3 x 3 places for each channel, with a border of zeros. */
function depthwise(x: Float32Array, side: number, weights: Float32Array): Float32Array {
  const channels = weights.length / 9;
  const y = new Float32Array(x.length);
  for (let place = 0; place < side * side; place++) {
    for (let tap = 0; tap < 9; tap++) {
      const [row, column] = [Math.floor(place / side) + Math.floor(tap / 3) - 1, (place % side) + (tap % 3) - 1];
      if (row < 0 || row >= side || column < 0 || column >= side) continue;
      for (let channel = 0; channel < channels; channel++)
        y[place * channels + channel]! += x[(row * side + column) * channels + channel]! * weights[tap * channels + channel]!;
    }
  }
  return y;
}
