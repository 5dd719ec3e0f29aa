// Training: batches are made on the pool's threads while the device computes the steps before them.
import { type CpuTasks, type Device, type DeviceArray, type Graph, overlap, type PinnedArray } from 'millrace';
import { add, argmax, binCount, mean } from 'millrace/ops';
import type * as cpuStages from './cpu-stages.js';
import { type ANSWER, firstParameters, Network, PARAMETERS, type STEP, type TrainingState } from './network.js';
import { Refusal } from '../command-line.js';
import { CLASSES, PIXELS, SHEET } from './shape.js';

/** Digits of a step, and of a batch of answers. */
export const BATCH = 64;
export const ANSWERS = 100;
/** Batches that are being made at a time. */
const LANES = 3;
/** Steps that the device may have left to do when the next one is submitted. */
const MOST_PENDING = 2;
const RATE = 0.003;
/** Epochs until the rate has come down. It does not depend on how many are asked for, so more can be added later. */
const DECAY_EPOCHS = 12;
/** Numbers of a checkpoint before the parameters: epochs, digits, and the two halves of the seed. */
const HEAD = 4;

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
  readonly #state: TrainingState;
  readonly #losses: DeviceArray<'f32'>;
  readonly #buffers: readonly { readonly images: DeviceArray<'u8'>; readonly labels: DeviceArray<'u8'> }[];
  readonly #network: Network;
  readonly #answers: Network;
  readonly #stepGraph: Graph<typeof STEP>;
  readonly #answerGraph: Graph<typeof ANSWER>;
  #epoch = 0;
  #allLosses: readonly number[] = [];

  constructor(device: Device, data: DataSet, cpu: CpuTasks<typeof cpuStages>, { seed }: { seed: number }) {
    this.#device = device;
    this.#data = data;
    this.#cpu = cpu;
    this.#seed = seed;
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

  /** The loss of each step of all epochs that are done. */
  get losses(): readonly number[] {
    return this.#allLosses;
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
    const read = await losses.read();
    this.#allLosses = [...this.#allLosses, ...read];
    return read;
  }

  /** How often each digit (row) was taken for each digit (column). */
  async confusion({ digits, labels }: DataSet): Promise<Int32Array> {
    const { stream } = this.#device;
    using images = stream.empty(digits.length, 'u8');
    using shares = stream.empty([labels.length, CLASSES]);
    stream.copy(images, digits);
    for (let at = 0; at < labels.length; at += ANSWERS) {
      const part = { images: images.subarray(at * PIXELS, (at + ANSWERS) * PIXELS), answers: shares.view([at, at + ANSWERS]) };
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

  /** All that the next epoch depends on, and the losses so far. */
  async checkpoint(): Promise<Float32Array> {
    const { parameters, mean: first, square } = this.#state;
    const parts = await Promise.all([parameters, first, square].map((array) => array.read()));
    const head = [this.#epoch, this.#data.labels.length, this.#seed >>> 16, this.#seed & 0xffff];
    return Float32Array.from([...head, ...parts.flatMap((part) => [...part]), ...this.#allLosses]);
  }

  /** Throws Refusal for a checkpoint of another seed or other digits. */
  restore(checkpoint: Float32Array): void {
    const { parameters, mean: first, square } = this.#state;
    const [epoch = 0, digits = 0, high = 0, low = 0] = checkpoint;
    const seed = high * 2 ** 16 + low;
    const length = HEAD + 3 * PARAMETERS + epoch * Math.floor(digits / BATCH);
    if (checkpoint.length !== length) throw new Refusal(`The checkpoint has ${checkpoint.length} numbers, not ${length}.`);
    if (seed !== this.#seed) throw new Refusal(`The checkpoint is of --seed ${seed}, not ${this.#seed}.`);
    const sheets = [digits, this.#data.labels.length].map((count) => count / SHEET);
    if (sheets[0] !== sheets[1]) throw new Refusal(`The checkpoint is of --sheets ${sheets[0]}, not ${sheets[1]}.`);
    for (const [n, array] of [parameters, first, square].entries()) {
      this.#device.stream.copy(array, checkpoint.subarray(HEAD + n * PARAMETERS, HEAD + (n + 1) * PARAMETERS));
    }
    this.#epoch = epoch;
    this.#allLosses = [...checkpoint.subarray(HEAD + 3 * PARAMETERS)];
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

  /** From RATE down to 0 by a cosine, then a hundredth of RATE, with Adam's corrections. */
  #rateOf(step: number): number {
    const done = step / (DECAY_EPOCHS * this.stepsOfEpoch);
    const rate = done < 1 ? (RATE / 2) * (1 + Math.cos((Math.PI * step) / (DECAY_EPOCHS * this.stepsOfEpoch))) : RATE / 100;
    return (rate * Math.sqrt(1 - 0.999 ** (step + 1))) / (1 - 0.9 ** (step + 1));
  }
}
