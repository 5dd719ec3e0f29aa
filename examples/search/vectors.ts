// Vectors that look random and are the same in every run, with the structure of real embeddings: most of their variance lies in a few dimensions.
import type { Device, DeviceArray } from 'millrace';
import { add, astype, divide, generator, matmul, multiply, norm, tidy } from 'millrace/ops';
import type { Precision } from './vector-index.js';

/** Dimensions in which the vectors differ most. */
const INNER = 24;
const NOISE = 0.3;
/** Rows that are made at a time. */
const PART = 50_000;

/** Unit vectors on the device. */
export function makeVectors(
  device: Device,
  count: number,
  size: number,
  seed: number,
  precision: Precision = 'f32',
): DeviceArray<Precision> {
  const numbers = generator(seed);
  const all = device.empty([count, size], precision);
  // The same directions for every seed, so that queries lie among the vectors.
  using directions = generator(0).normal([INNER, size], { device, deviation: 1 / Math.sqrt(INNER) });
  for (let from = 0; from < count; from += PART) {
    const rows = Math.min(PART, count - from);
    using part = tidy(() => {
      const x = add(
        matmul(numbers.normal([rows, INNER], { device }), directions),
        multiply(numbers.normal([rows, size], { device }), NOISE),
      );
      return astype(divide(x, norm(x, { axis: 1, keepDims: true })), precision);
    });
    device.stream.copy(all.view([from, from + rows]), part);
  }
  return all;
}
