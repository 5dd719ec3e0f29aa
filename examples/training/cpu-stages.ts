// What runs on the pool's threads: pictures are decoded, and each digit is turned, scaled and moved a little. Bytes are read from and written to pinned
// memory in place; only numbers travel in the messages.
import sharp from 'sharp';
import { PIXELS, SIDE } from './shape.js';

sharp.concurrency(1);
sharp.cache(false);

export interface DecodeTask {
  readonly file: string;
  /** Receives the digits of the file, one after the other. */
  readonly into: Uint8Array;
}

/** A sheet of digits, whose rows of pixels become rows of single digits. */
export async function decode({ file, into }: DecodeTask): Promise<void> {
  const { data, info } = await sharp(file).toColourspace('b-w').raw().toBuffer({ resolveWithObject: true });
  if (info.channels !== 1 || data.length !== into.length)
    throw new Error(`${file} has ${data.length} bytes where ${into.length} were announced.`);
  const columns = info.width / SIDE;
  for (let y = 0; y < info.height; y++) {
    for (let column = 0; column < columns; column++) {
      const digit = Math.floor(y / SIDE) * columns + column;
      const from = y * info.width + column * SIDE;
      into.set(data.subarray(from, from + SIDE), digit * PIXELS + (y % SIDE) * SIDE);
    }
  }
}

export interface BatchTask {
  /** All digits of the training set. */
  readonly digits: Uint8Array;
  readonly numbers: readonly number[];
  /** The same seed gives the same batch. */
  readonly seed: number;
  readonly into: Uint8Array;
}

/** The digits of these numbers, each turned by up to 14 degrees, scaled and slanted by up to a tenth, and moved by up to two pixels. */
export function makeBatch({ digits, numbers, seed, into }: BatchTask): void {
  let state = seed;
  const random = (most: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return most * ((2 * state) / 2 ** 32 - 1);
  };
  for (const [at, number] of numbers.entries()) {
    const angle = random(0.25);
    const [cos, sin] = [Math.cos(angle) / (1 + random(0.1)), Math.sin(angle) / (1 + random(0.1))];
    const slant = random(0.1);
    warp(digits.subarray(number * PIXELS, (number + 1) * PIXELS), into.subarray(at * PIXELS, (at + 1) * PIXELS), {
      xx: cos + slant * sin,
      xy: slant * cos - sin,
      yx: sin,
      yy: cos,
      right: random(2),
      down: random(2),
    });
  }
}

interface Affine {
  readonly xx: number;
  readonly xy: number;
  readonly yx: number;
  readonly yy: number;
  readonly right: number;
  readonly down: number;
}

/** Each pixel of `to` is the bilinear mean of four pixels of `from`; outside of it is black. */
function warp(from: Uint8Array, to: Uint8Array, { xx, xy, yx, yy, right, down }: Affine): void {
  const middle = (SIDE - 1) / 2;
  const pixel = (x: number, y: number): number => (x < 0 || y < 0 || x >= SIDE || y >= SIDE ? 0 : from[y * SIDE + x]!);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const [dx, dy] = [x - middle - right, y - middle - down];
      const [sourceX, sourceY] = [middle + xx * dx + xy * dy, middle + yx * dx + yy * dy];
      const [left, top] = [Math.floor(sourceX), Math.floor(sourceY)];
      const [u, v] = [sourceX - left, sourceY - top];
      const above = pixel(left, top) * (1 - u) + pixel(left + 1, top) * u;
      const below = pixel(left, top + 1) * (1 - u) + pixel(left + 1, top + 1) * u;
      to[y * SIDE + x] = above * (1 - v) + below * v + 0.5;
    }
  }
}
