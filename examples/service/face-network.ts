// The face detector on a device. Pictures are [image, row, column, channel], so a convolution of single places is a product of matrices.
import { type Device, type DeviceArray, f32, type Graph, i32, input, kernel, output, u8 } from 'millrace';
import { matmul } from 'millrace/ops';
import { ANSWER } from '../training/network.js';
import { ANCHORS, COLUMNS, FIRST, LAYERS, SIDE, sidesOf, VALUES, WEIGHTS } from './face-shape.js';

/** The first convolution, 3 x 3 without a border, and what `pool` does. `side` is that of the picture. */
const first = kernel(
  'face_first',
  { pixels: input(u8), weights: input(f32, 2), bias: input(f32, 2), y: output(f32, 2), side: i32 },
  ({ pixels, weights, bias, y, side }, { i, j, idiv, f32: toFloat }) => {
    const half = idiv(side - 2, 2);
    const row = 2 * (idiv(i, half) % half);
    const corner = ((idiv(i, half * half) * side + row) * side + 2 * (i % half)) * 3;
    let most = -3e38;
    for (let place = 0; place < 4; place++) {
      const from = corner + (idiv(place, 2) * side + (place % 2)) * 3;
      let sum = bias.at(0, j);
      for (let down = 0; down < 3; down++) {
        for (let tap = 0; tap < 9; tap++) sum += toFloat(pixels[from + down * side * 3 + tap]!) * weights.at(9 * down + tap, j);
      }
      most = Math.max(most, sum);
    }
    y.set(i, j, Math.max(most, 0.1 * most));
  },
);

/** A filter of 3 x 3 places for each channel, with a border of zeros. Rows are places, columns channels. */
const depthwise = kernel(
  'face_depthwise',
  { x: input(f32, 2), weights: input(f32, 2), y: output(f32, 2), side: i32 },
  ({ x, weights, y, side }, { i, j, idiv }) => {
    const row = idiv(i, side) % side;
    const column = i % side;
    let sum = 0;
    for (let down = Math.max(-1, -row); down <= Math.min(1, side - 1 - row); down++) {
      for (let right = Math.max(-1, -column); right <= Math.min(1, side - 1 - column); right++) {
        sum += x.at(i + down * side + right, j) * weights.at(3 * down + right + 4, j);
      }
    }
    y.set(i, j, sum);
  },
);

/** Bias, the maximum of 2 x 2 places, and leaky ReLU. A window at the end has fewer places. `side` is that of `z`, `half` that of `y`. */
const pool = kernel(
  'face_pool',
  { z: input(f32, 2), bias: input(f32, 2), y: output(f32, 2), side: i32, half: i32, stride: i32 },
  ({ z, bias, y, side, half, stride }, { i, j, idiv }) => {
    const row = stride * (idiv(i, half) % half);
    const column = stride * (i % half);
    const image = idiv(i, half * half) * side;
    const above = (image + row) * side;
    const below = (image + Math.min(row + 1, side - 1)) * side;
    const right = Math.min(column + 1, side - 1);
    const most = Math.max(
      Math.max(z.at(above + column, j), z.at(above + right, j)),
      Math.max(z.at(below + column, j), z.at(below + right, j)),
    );
    const value = most + bias.at(0, j);
    y.set(i, j, Math.max(value, 0.1 * value));
  },
);

/** Centre, width, height, as parts of the picture, and score of each box; a thread a number, a row an image. `side` is that of the last layer. */
const boxes = kernel(
  'face_boxes',
  { z: input(f32, 2), bias: input(f32, 2), anchors: input(f32), answers: output(f32, 2), side: i32 },
  ({ z, bias, anchors, answers, side }, { i, j, idiv, f32: toFloat }) => {
    const cell = idiv(j, COLUMNS);
    const column = j % COLUMNS;
    const part = column % VALUES;
    const value = z.at(i * side * side + cell, column) + bias.at(0, column);
    const share = 1 / (1 + Math.exp(-value));
    const place = part === 0 ? cell % side : idiv(cell, side);
    let result = share;
    if (part < 2) result = (toFloat(place) + share) / toFloat(side);
    else if (part < 4) result = (Math.exp(value) * anchors[column]!) / toFloat(side);
    answers.set(i, j, result);
  },
  { constants: { COLUMNS, VALUES } },
);

type F32 = DeviceArray<'f32'>;

/** The detector on one stream at a time, for batches of up to `most` pictures. `parameters` belongs to the caller, and several networks may use it. */
export class FaceNetwork {
  readonly #device: Device;
  readonly #weights: readonly F32[];
  readonly #anchors: F32;
  readonly #sides: readonly number[];
  readonly #side: number;
  /** What a layer reads and, over it, what it makes; behind its depthwise filters; behind its product. */
  readonly #x: F32;
  readonly #y: F32;
  readonly #z: F32;

  constructor(device: Device, parameters: F32, most: number, side: number = SIDE) {
    this.#device = device;
    let at = 0;
    this.#weights = WEIGHTS.map(({ rows, columns }) => parameters.subarray(at, (at += rows * columns)).reshape([rows, columns]));
    this.#anchors = device.from(Float32Array.from(ANCHORS.flatMap(([width, height]) => [0, 0, width, height, 0])));
    this.#side = side;
    this.#sides = sidesOf(side);
    // The first layer's are the largest.
    const places = most * this.#sides[0]! ** 2;
    this.#x = device.empty(places * FIRST);
    this.#y = device.empty(places * FIRST);
    this.#z = device.empty(places * LAYERS[0]!.filters);
  }

  /** The boxes of a batch as a graph: [batch, places of the last layer * 25]. */
  capture(batch: number): Graph<typeof ANSWER> {
    const sides = this.#sides;
    const view = (flat: F32, n: number, columns: number): F32 => {
      const rows = batch * sides[n]! ** 2;
      return flat.subarray(0, rows * columns).reshape([rows, columns]);
    };
    return this.#device.stream.capture(
      ANSWER,
      (stream, { images, answers }) => {
        const [weights, bias, ...others] = this.#weights as [F32, F32, ...F32[]];
        let x = view(this.#x, 0, FIRST);
        stream.launch(first, x.shape, { pixels: images, weights, bias, y: x, side: this.#side });
        for (const [n, { channels, filters, stride }] of LAYERS.entries()) {
          const [filter, points, offsets] = others.splice(0, 3) as [F32, F32, F32];
          const [side, half] = [sides[n]!, sides[n + 1]!];
          const y = view(this.#y, n, channels);
          stream.launch(depthwise, y.shape, { x, weights: filter, y, side });
          const z = view(this.#z, n, filters);
          matmul(y, points, { stream, out: z });
          x = view(this.#x, n + 1, filters);
          stream.launch(pool, x.shape, { z, bias: offsets, y: x, side, half, stride });
        }
        const [points, offsets] = others as [F32, F32];
        const z = view(this.#z, LAYERS.length, COLUMNS);
        matmul(x, points, { stream, out: z });
        const side = sides.at(-1)!;
        stream.launch(boxes, [batch, side * side * COLUMNS], { z, bias: offsets, anchors: this.#anchors, answers, side });
      },
      { label: 'faces' },
    );
  }

  [Symbol.dispose](): void {
    for (const array of [this.#anchors, this.#x, this.#y, this.#z]) array[Symbol.dispose]();
  }
}
