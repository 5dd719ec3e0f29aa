// The network: two convolutions with pooling and a layer of ten sums. Its parameters lie in one array, so that Adam is one launch and a checkpoint one
// read.
import { type Device, type DeviceArray, f32, type Graph, i32, input, output, type Recorder, u8 } from 'millrace';
import { generator, matmul, sum } from 'millrace/ops';
import { adam, brightness, FILTER, patches, poolRelu, softmax, softmaxLoss, unpatch, unpool } from './kernels.js';
import { CLASSES, PIXELS, SIDE } from './shape.js';

interface Layer {
  /** Rows and columns of its input, and of its result. */
  readonly side: number;
  readonly half: number;
  readonly channels: number;
  readonly filters: number;
}
const LAYERS: readonly Layer[] = [
  { side: SIDE, half: 12, channels: 1, filters: 8 },
  { side: 12, half: 4, channels: 8, filters: 16 },
];
const TAPS = LAYERS.map(({ channels }) => FILTER * FILTER * channels);
const LAST = 4 * 4 * 16;
/** Rows and columns of the weights of each layer; a bias for each column follows. */
const WEIGHTS: readonly (readonly [rows: number, columns: number])[] = [
  ...LAYERS.map(({ filters }, n) => [TAPS[n]!, filters] as const),
  [LAST, CLASSES],
];
export const PARAMETERS = WEIGHTS.reduce((count, [rows, columns]) => count + (rows + 1) * columns, 0);

/** The values of a launch of each graph. */
export const ANSWER = { images: input(u8), answers: output(f32, 2) } as const;
export const STEP = { images: input(u8), labels: input(u8), step: i32, rate: f32 } as const;

type F32 = DeviceArray<'f32'>;
interface Views {
  readonly weights: F32;
  readonly bias: F32;
}

/** The weights and the bias of each layer, as views of one array. */
function viewsOf(flat: F32): readonly Views[] {
  let at = 0;
  return WEIGHTS.map(([rows, columns]) => {
    const weights = flat.subarray(at, at + rows * columns).reshape([rows, columns]);
    at += (rows + 1) * columns;
    return { weights, bias: flat.subarray(at - columns, at) };
  });
}

/** Normal numbers of He's deviation; every bias 0. The same for the same seed on each device. */
export function firstParameters(device: Device, seed: number): F32 {
  const flat = device.zeros(PARAMETERS);
  const numbers = generator(seed);
  for (const [n, { weights }] of viewsOf(flat).entries())
    numbers.normal(weights.shape, { deviation: Math.sqrt(2 / WEIGHTS[n]![0]), out: weights });
  return flat;
}

/** What one convolution keeps from the way forth for the way back. */
interface Kept {
  readonly patches: F32;
  readonly z: F32;
  readonly y: F32;
}

/** The network for batches of one size. `parameters` belongs to the caller, and several networks may use it. */
export class Network {
  readonly batch: number;
  readonly #views: readonly Views[];
  readonly #made: F32[] = [];
  readonly #device: Device;
  readonly #x: F32;
  readonly #layers: readonly Kept[];
  readonly #z: F32;

  constructor(device: Device, parameters: F32, batch: number) {
    this.batch = batch;
    this.#device = device;
    this.#views = viewsOf(parameters);
    this.#x = this.#empty(batch * PIXELS);
    this.#layers = LAYERS.map(({ side, half, filters }, n) => {
      const places = batch * (side - FILTER + 1) ** 2;
      return {
        patches: this.#empty(places, TAPS[n]!),
        z: this.#empty(places, filters),
        y: this.#empty(batch * half ** 2, filters),
      };
    });
    this.#z = this.#empty(batch, CLASSES);
  }

  /** The probabilities of the ten digits for each picture of a batch, as a graph. */
  captureAnswer(): Graph<typeof ANSWER> {
    return this.#device.stream.capture(
      ANSWER,
      (stream, { images, answers }) => {
        stream.launch(brightness, this.#x.length, { bytes: images, values: this.#x });
        this.#forth(stream);
        stream.launch(softmax, this.batch, { z: this.#z, bias: this.#views.at(-1)!.bias, shares: answers });
      },
      { label: 'answer' },
    );
  }

  /** A step of training as one graph: forth, back, and Adam. `losses` gets a loss for each picture of each step. */
  captureStep(state: TrainingState, losses: F32): Graph<typeof STEP> {
    const gradients = this.#empty(PARAMETERS);
    const grads = viewsOf(gradients);
    const dz = this.#empty(this.batch, CLASSES);
    const back = this.#layers.map(({ patches: taps, z, y }) => ({
      patches: this.#empty(...(taps.shape as [number, number])),
      z: this.#empty(...(z.shape as [number, number])),
      y: this.#empty(...(y.shape as [number, number])),
    }));
    const { mean, square, parameters } = state;
    return this.#device.stream.capture(
      STEP,
      (stream, { images, labels, step, rate }) => {
        stream.launch(brightness, this.#x.length, { bytes: images, values: this.#x });
        this.#forth(stream);
        const last = this.#views.at(-1)!;
        stream.launch(softmaxLoss, this.batch, { z: this.#z, bias: last.bias, labels, dz, losses, step });
        const flat = this.#layers.at(-1)!.y.reshape([this.batch, LAST]);
        matmul(flat.transpose(), dz, { stream, out: grads.at(-1)!.weights });
        sum(dz, { axis: 0, stream, out: grads.at(-1)!.bias });
        matmul(dz, last.weights.transpose(), { stream, out: back.at(-1)!.y.reshape([this.batch, LAST]) });
        for (let n = LAYERS.length - 1; n >= 0; n--) {
          const [{ z, y, patches: taps }, d, { weights, bias }, { side, half }] = [this.#layers[n]!, back[n]!, this.#views[n]!, LAYERS[n]!];
          stream.launch(unpool, z.shape, { z, bias, y, dy: d.y, dz: d.z, side: half });
          matmul(taps.transpose(), d.z, { stream, out: grads[n]!.weights });
          sum(d.z, { axis: 0, stream, out: grads[n]!.bias });
          if (n === 0) break;
          matmul(d.z, weights.transpose(), { stream, out: d.patches });
          const dx = back[n - 1]!.y;
          stream.launch(unpatch, dx.shape, { patches: d.patches, dx, side });
        }
        stream.launch(adam, PARAMETERS, { parameters, gradients, mean, square, rate });
      },
      { label: 'step' },
    );
  }

  [Symbol.dispose](): void {
    for (const array of this.#made) array[Symbol.dispose]();
  }

  #forth(stream: Recorder): void {
    let x = this.#x;
    for (const [n, { side, half, channels }] of LAYERS.entries()) {
      const [{ patches: taps, z, y }, { weights, bias }] = [this.#layers[n]!, this.#views[n]!];
      stream.launch(patches, taps.shape, { x, patches: taps, side, channels });
      matmul(taps, weights, { stream, out: z });
      stream.launch(poolRelu, y.shape, { z, bias, y, side: half });
      x = y.reshape([y.length]);
    }
    matmul(x.reshape([this.batch, LAST]), this.#views.at(-1)!.weights, { stream, out: this.#z });
  }

  #empty(...shape: number[]): F32 {
    const array = this.#device.empty(shape);
    this.#made.push(array);
    return array;
  }
}

/** What a step changes: the parameters, and Adam's means of the gradients and of their squares. */
export interface TrainingState {
  readonly parameters: F32;
  readonly mean: F32;
  readonly square: F32;
}
