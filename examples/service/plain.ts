// The network of examples/training in plain TypeScript: what a service without a device would run, and what the device's answers are compared with.
import { CLASSES, PIXELS, SIDE } from '../training/shape.js';

const FILTER = 5;

/** The probabilities of the ten digits for one picture of 28 x 28 bytes. */
export function plainShares(parameters: Float32Array, pixels: Uint8Array): Float32Array {
  let at = 0;
  const next = (count: number): Float32Array => parameters.subarray(at, (at += count));
  let x = Float32Array.from(pixels.subarray(0, PIXELS), (byte) => byte / 255);
  let [side, channels] = [SIDE, 1];
  for (const filters of [8, 16]) {
    const weights = next(FILTER * FILTER * channels * filters);
    x = convolve(x, side, channels, weights, next(filters));
    [side, channels] = [(side - FILTER + 1) / 2, filters];
  }
  const [weights, bias] = [next(x.length * CLASSES), next(CLASSES)];
  const z = Float32Array.from(bias);
  for (let row = 0; row < x.length; row++) {
    for (let column = 0; column < CLASSES; column++) z[column]! += x[row]! * weights[row * CLASSES + column]!;
  }
  const most = Math.max(...z);
  const powers = z.map((value) => Math.exp(value - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** A convolution, its bias, ReLU, and the maximum of 2 x 2 places. Pictures are [row, column, channel]. */
function convolve(x: Float32Array, side: number, channels: number, weights: Float32Array, bias: Float32Array): Float32Array<ArrayBuffer> {
  const [places, filters] = [side - FILTER + 1, bias.length];
  const half = places / 2;
  const y = new Float32Array(half * half * filters);
  const sums = new Float32Array(filters);
  for (let row = 0; row < places; row++) {
    for (let column = 0; column < places; column++) {
      sums.set(bias);
      for (let down = 0; down < FILTER; down++) {
        const from = ((row + down) * side + column) * channels;
        for (let tap = 0; tap < FILTER * channels; tap++) {
          const value = x[from + tap]!;
          if (value === 0) continue;
          const weight = (down * FILTER * channels + tap) * filters;
          for (let filter = 0; filter < filters; filter++) sums[filter]! += value * weights[weight + filter]!;
        }
      }
      const to = ((row >> 1) * half + (column >> 1)) * filters;
      for (let filter = 0; filter < filters; filter++) y[to + filter] = Math.max(y[to + filter]!, sums[filter]!);
    }
  }
  return y;
}
