// A network of layers that learns from parts of the data: one replica of a data-parallel training.
import type { Device, DeviceArray } from 'millrace';
import { add, elementwise, generator, matmul, mean, square, subtract } from 'millrace/ops';

export interface Sizes {
  /** Of every layer. */
  readonly width: number;
  readonly layers: number;
  /** Of each part of the data. */
  readonly rows: number;
}

type F32 = DeviceArray<'f32'>;

const rectify = elementwise((x: number) => Math.max(x, 0));
const whereActive = elementwise((gradient: number, output: number) => (output > 0 ? gradient : 0));
const scaledDifference = elementwise((a: number, b: number, scale: number) => (a - b) * scale);
const descend = elementwise((parameter: number, gradient: number, rate: number) => parameter - rate * gradient);

export class Replica implements Disposable {
  readonly parameters: readonly F32[];
  /** Of the step before, by layer; all replicas average theirs in place. */
  readonly gradients: readonly F32[];
  readonly #x: readonly F32[];
  readonly #y: readonly F32[];
  readonly #outputs: readonly F32[];
  /** The gradients of what a layer gives and of what it takes, in turn. */
  #given: F32;
  #taken: F32;
  readonly #ofPart: F32;
  readonly #sizes: Sizes;

  /** It has the parts of the data with these numbers. The first parameters and the network to be learnt are the same for all replicas. */
  constructor(device: Device, parts: readonly number[], sizes: Sizes) {
    this.#sizes = sizes;
    const { width, layers, rows } = sizes;
    const shape = [width, width] as const;
    const deviation = Math.sqrt(2 / width);
    const first = generator(0);
    const make = (): F32[] => Array.from({ length: layers }, () => first.normal(shape, { deviation, device }));
    this.parameters = make();
    this.gradients = this.parameters.map(() => device.zeros(shape));
    this.#outputs = this.parameters.map(() => device.empty([rows, width]));
    this.#given = device.empty([rows, width]);
    this.#taken = device.empty([rows, width]);
    this.#ofPart = device.empty(shape);
    this.#x = parts.map((part) => generator(1 + part).normal([rows, width], { device }));
    const truth = make();
    this.#y = this.#x.map((x) => this.#forward(x, truth).clone());
    for (const array of truth) array[Symbol.dispose]();
  }

  /** The mean of the squared errors. */
  async loss(): Promise<number> {
    let all = 0;
    for (const [part, x] of this.#x.entries()) {
      using errors = subtract(this.#forward(x, this.parameters), this.#y[part]!);
      using squares = square(errors);
      using one = mean(squares);
      all += (await one.item()) / this.#x.length;
    }
    return all;
  }

  get parts(): number {
    return this.#x.length;
  }

  /** What the network makes of a part, and how far that is from the truth. */
  forward(part: number): void {
    const made = this.#forward(this.#x[part]!, this.parameters);
    scaledDifference(made, this.#y[part]!, 1 / (this.#sizes.rows * this.parts), { out: this.#given });
  }

  /** The gradient of a layer, after those of the layers behind it. */
  backward(part: number, layer: number): void {
    const input = layer === 0 ? this.#x[part]! : this.#outputs[layer - 1]!;
    const gradient = this.gradients[layer]!;
    const given = this.#given;
    matmul(input.transpose(), given, { out: part === 0 ? gradient : this.#ofPart });
    if (part > 0) add(gradient, this.#ofPart, { out: gradient });
    if (layer === 0) return;
    matmul(given, this.parameters[layer]!.transpose(), { out: this.#taken });
    whereActive(this.#taken, input, { out: this.#taken });
    [this.#given, this.#taken] = [this.#taken, given];
  }

  step(): void {
    const rate = 1 / this.#sizes.width;
    for (const [layer, array] of this.parameters.entries()) descend(array, this.gradients[layer]!, rate, { out: array });
  }

  [Symbol.dispose](): void {
    for (const array of [
      ...this.parameters,
      ...this.gradients,
      ...this.#outputs,
      ...this.#x,
      ...this.#y,
      this.#given,
      this.#taken,
      this.#ofPart,
    ])
      array[Symbol.dispose]();
  }

  #forward(x: F32, parameters: readonly F32[]): F32 {
    let made = x;
    for (const [layer, array] of parameters.entries()) {
      made = matmul(made, array, { out: this.#outputs[layer]! });
      if (layer < parameters.length - 1) rectify(made, { out: made });
    }
    return made;
  }
}
