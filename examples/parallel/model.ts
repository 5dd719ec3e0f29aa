// A linear model that learns from a part of the data: one replica of a data-parallel training.
import type { Device, DeviceArray } from 'millrace';
import { generator, matmul, mean, multiply, subtract } from 'millrace/ops';

export const FEATURES = 16;
const RATE = 0.1;

type F32 = DeviceArray<'f32'>;

export class Replica implements Disposable {
  readonly parameters: F32;
  /** Of the step before; all replicas average theirs in place. */
  readonly gradients: F32;
  readonly #x: F32;
  readonly #y: F32;

  /** Its rows are those of rank `rank`; the first parameters and the rule to be learnt are the same for all. */
  constructor(device: Device, rank: number, rows: number) {
    this.parameters = device.zeros([FEATURES, 1]);
    this.gradients = device.empty([FEATURES, 1]);
    this.#x = generator(1 + rank).normal([rows, FEATURES], { device });
    using rule = generator(0).normal([FEATURES, 1], { device });
    this.#y = matmul(this.#x, rule);
  }

  /** The mean of the squared errors. */
  async loss(): Promise<number> {
    using errors = this.#errors();
    using squares = multiply(errors, errors);
    using all = mean(squares);
    return await all.item();
  }

  differentiate(): void {
    using errors = this.#errors();
    matmul(this.#x.transpose(), errors, { out: this.gradients });
    multiply(this.gradients, 1 / errors.length, { out: this.gradients });
  }

  step(): void {
    using change = multiply(this.gradients, RATE);
    subtract(this.parameters, change, { out: this.parameters });
  }

  [Symbol.dispose](): void {
    for (const array of [this.parameters, this.gradients, this.#x, this.#y]) array[Symbol.dispose]();
  }

  #errors(): F32 {
    const made = matmul(this.#x, this.parameters);
    return subtract(made, this.#y, { out: made });
  }
}
