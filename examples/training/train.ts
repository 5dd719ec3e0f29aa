// Training: batches are made on the pool's threads while the device computes the steps before them.
import { type CpuTasks, type Device, type DeviceArray, type Graph, overlap, type PinnedArray } from 'millrace';
import { add, argmax, binCount, mean } from 'millrace/ops';
import type * as cpuStages from './cpu-stages.js';
import { type ANSWER, firstParameters, Network, PARAMETERS, type STEP, type TrainingState } from './network.js';
import { CLASSES, PIXELS } from './shape.js';

/** Digits of a step, and of a batch of answers. */
export const BATCH = 64;
export const ANSWERS = 100;
/** Batches that are being made at a time. */
const LANES = 3;
/** Steps that the device may have left to do when the next one is submitted. */
const MOST_PENDING = 2;
const RATE = 0.003;

export interface DataSet {
  readonly digits: PinnedArray<'u8'>;
  readonly labels: Uint8Array;
}

interface Batch {
  readonly step: number;
  readonly numbers: readonly number[];
}

/** A network in training. */
export class Trainer implements AsyncDisposable {
  readonly stepsOfEpoch: number;
  readonly #device: Device;
  readonly #data: DataSet;
  readonly #cpu: CpuTasks<typeof cpuStages>;
  readonly #seed: number;
  readonly #epochs: number;
  readonly #state: TrainingState;
  readonly #losses: DeviceArray<'f32'>;
  readonly #buffers: readonly { readonly images: DeviceArray<'u8'>; readonly labels: DeviceArray<'u8'> }[];
  readonly #network: Network;
  readonly #answers: Network;
  readonly #stepGraph: Graph<typeof STEP>;
  readonly #answerGraph: Graph<typeof ANSWER>;
  #epoch = 0;

  constructor(device: Device, data: DataSet, cpu: CpuTasks<typeof cpuStages>, { seed, epochs }: { seed: number; epochs: number }) {
    this.#device = device;
    this.#data = data;
    this.#cpu = cpu;
    this.#seed = seed;
    this.#epochs = epochs;
    this.stepsOfEpoch = Math.floor(data.labels.length / BATCH);
    const parameters = firstParameters(device, seed);
    this.#state = { parameters, mean: device.zeros(PARAMETERS), square: device.zeros(PARAMETERS) };
    this.#losses = device.zeros(this.stepsOfEpoch * BATCH);
    this.#buffers = Array.from({ length: MOST_PENDING }, () => ({
      images: device.empty(BATCH * PIXELS, 'u8'),
      labels: device.empty(BATCH, 'u8'),
    }));
    this.#network = new Network(device, parameters, BATCH);
    this.#answers = new Network(device, parameters, ANSWERS);
    this.#stepGraph = this.#network.captureStep(this.#state, this.#losses);
    this.#answerGraph = this.#answers.captureAnswer();
  }

  /** Epochs that are done. */
  get epoch(): number {
    return this.#epoch;
  }

  /** One epoch; the loss of each of its steps. With `isOverlapped` false, a batch is made when the device has done the step before it. */
  async trainEpoch(isOverlapped = true): Promise<Float32Array> {
    const { digits, labels } = this.#data;
    const made = overlap(
      this.#device,
      () => this.#batches(),
      { depth: isOverlapped ? LANES : 1 },
      async (batch, lane) => {
        const images = lane.pinned(BATCH * PIXELS, 'u8');
        const task = { digits: digits.data, numbers: batch.numbers, seed: this.#seedOf(batch.step), into: images.data };
        await lane.time('make batch', this.#cpu.run('makeBatch', task));
        return { batch, images: lane.detach(images) };
      },
    );
    const { stream } = this.#device;
    const upload = this.#device.createStream({ label: 'upload' });
    const pending: Promise<unknown>[] = [];
    for await (const { batch, images } of made) {
      using pinned = images;
      const buffer = this.#buffers[batch.step % MOST_PENDING]!;
      upload.copy(buffer.images, pinned);
      upload.copy(
        buffer.labels,
        Uint8Array.from(batch.numbers, (number) => labels[number]!),
      );
      const step = this.#epoch * this.stepsOfEpoch + batch.step;
      pending.push(stream.launch(this.#stepGraph, { ...buffer, step: batch.step, rate: this.#rateOf(step) }).done);
      if (!isOverlapped) await Promise.all(pending.splice(0));
      else if (pending.length >= MOST_PENDING) await pending.shift();
    }
    await Promise.all(pending);
    await upload.close();
    this.#epoch++;
    using losses = mean(this.#losses.reshape([this.stepsOfEpoch, BATCH]), { axis: 1 });
    return await losses.read();
  }

  /** How often each digit (row) was taken for each digit (column). */
  async confusion({ digits, labels }: DataSet): Promise<Int32Array> {
    const { stream } = this.#device;
    using images = stream.empty(digits.length, 'u8');
    using shares = stream.empty([labels.length, CLASSES]);
    stream.copy(images, digits);
    for (let at = 0; at < labels.length; at += ANSWERS) {
      const part = { images: images.subarray(at * PIXELS, (at + ANSWERS) * PIXELS), shares: shares.view([at, at + ANSWERS]) };
      stream.launch(this.#answerGraph, part);
    }
    using rows = stream.from(Int32Array.from(labels, (label) => label * CLASSES));
    using answers = argmax(shares, { axis: 1 });
    using cells = add(rows, answers);
    using counts = binCount(cells, CLASSES ** 2);
    return await counts.read();
  }

  parameters(): Promise<Float32Array> {
    return this.#state.parameters.read();
  }

  /** All that the next epoch depends on. */
  async checkpoint(): Promise<Float32Array> {
    const { parameters, mean: first, square } = this.#state;
    const parts = await Promise.all([parameters, first, square].map((array) => array.read()));
    return Float32Array.from([this.#epoch, ...parts.flatMap((part) => [...part])]);
  }

  restore(checkpoint: Float32Array): void {
    const { parameters, mean: first, square } = this.#state;
    if (checkpoint.length !== 1 + 3 * PARAMETERS)
      throw new Error(`The checkpoint has ${checkpoint.length} numbers, not ${1 + 3 * PARAMETERS}.`);
    for (const [n, array] of [parameters, first, square].entries()) {
      this.#device.stream.copy(array, checkpoint.subarray(1 + n * PARAMETERS, 1 + (n + 1) * PARAMETERS));
    }
    this.#epoch = checkpoint[0]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#stepGraph.close(), this.#answerGraph.close()]);
    const { parameters, mean: first, square } = this.#state;
    const arrays = [parameters, first, square, this.#losses, ...this.#buffers.flatMap(({ images, labels }) => [images, labels])];
    for (const one of [this.#network, this.#answers, ...arrays]) one[Symbol.dispose]();
  }

  /** The training set in the order of this epoch. */
  *#batches(): Generator<Batch> {
    const order = Array.from(this.#data.labels.keys());
    let state = this.#seedOf(-1);
    for (let at = order.length - 1; at > 0; at--) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      const other = Math.floor((state / 2 ** 32) * (at + 1));
      [order[at], order[other]] = [order[other]!, order[at]!];
    }
    for (let step = 0; step < this.stepsOfEpoch; step++) yield { step, numbers: order.slice(step * BATCH, (step + 1) * BATCH) };
  }

  #seedOf(step: number): number {
    return Math.imul(this.#seed + 31 * this.#epoch + 1, 0x9e37_79b1) ^ Math.imul(step + 2, 0x85eb_ca6b);
  }

  /** From RATE down to 0 by a cosine, with Adam's corrections. */
  #rateOf(step: number): number {
    const rate = (RATE / 2) * (1 + Math.cos((Math.PI * step) / (this.#epochs * this.stepsOfEpoch)));
    return (rate * Math.sqrt(1 - 0.999 ** (step + 1))) / (1 - 0.9 ** (step + 1));
  }
}
