// The membrane and its weather: what a period of steps submits, the graph that a capture makes of it, and the values of every period.
import { createHash } from 'node:crypto';
import { f32, i32, type Device, type DeviceArray, type Graph, type GraphValues, type LaunchArgs, type Recorder } from 'millrace';
import { drop, DROP_RADIUS, shade, wave } from './kernels.js';

/** Steps of a period: one graph. An even number, so that the two arrays have their roles again at its end. */
export const PERIOD = 20;
/** Operations of a period: the steps, and a drop before them. */
export const OPERATIONS = PERIOD + 1;

/** What changes from period to period. */
export const VALUES = { damping: f32, row: i32, column: i32, strength: f32 } as const;
export type Values = GraphValues<typeof VALUES>[0];
/** Numbers, or the slots that stand for them in a capture. */
type Given = LaunchArgs<typeof VALUES>;

/** Periods between two drops. */
const DROP_EVERY = 14;
/** The deepest point of a dent is -1. */
const STRENGTH = 1 / DROP_RADIUS ** 4;
/** It rains during this part of the run; then the damping grows, and the membrane comes to rest. */
const RAIN = 0.8;

export class Membrane {
  readonly #device: Device;
  readonly #a: DeviceArray<'f32'>;
  readonly #b: DeviceArray<'f32'>;
  readonly #picture: DeviceArray<'u8'>;

  constructor(device: Device, size: number) {
    this.#device = device;
    this.#a = device.zeros([size, size]);
    this.#b = device.zeros([size, size]);
    this.#picture = device.empty([size, size, 3], 'u8');
  }

  /** Submits the operations of one period. In a capture `values` are slots, otherwise numbers: the calls are the same. */
  submit(stream: Recorder, { damping, row, column, strength }: Given): void {
    const [a, b] = [this.#a, this.#b];
    const across = 2 * DROP_RADIUS + 1;
    stream.launch(drop, [across, across], { now: a, before: b, row, column, strength });
    for (let step = 0; step < PERIOD; step += 2) {
      stream.launch(wave, a.shape, { now: a, before: b, damping });
      stream.launch(wave, a.shape, { now: b, before: a, damping });
    }
  }

  /** The period as a graph. The arrays are part of it; a launch gives the values. */
  capture(): Graph<typeof VALUES> {
    return this.#device.stream.capture(VALUES, (stream, slots) => this.submit(stream, slots), { label: 'period' });
  }

  /** Flat and at rest. */
  reset(): void {
    this.#device.stream.fill(this.#a, 0);
    this.#device.stream.fill(this.#b, 0);
  }

  /** The pixels of the membrane at this point of the stream, three bytes each. */
  picture(): Promise<Uint8Array> {
    const { shape } = this.#a;
    this.#device.stream.launch(shade, shape, { now: this.#a, picture: this.#picture });
    return this.#picture.read();
  }

  /** The heights at this point of the stream, row by row. */
  heights(): Promise<Float32Array> {
    return this.#a.read();
  }

  [Symbol.dispose](): void {
    for (const array of [this.#a, this.#b, this.#picture]) array[Symbol.dispose]();
  }
}

/** The values of a run's periods: drops at places that look random and are the same in every run, and then calm. */
export function weather(periods: number, size: number): Values[] {
  let state = 1;
  const place = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((0.1 + 0.8 * (state / 2 ** 32)) * size);
  };
  return Array.from({ length: periods }, (_, period) => {
    const isRain = period < RAIN * periods;
    const strength = isRain && period % DROP_EVERY === 0 ? STRENGTH : 0;
    return { damping: isRain ? 0.003 : 0.008, row: place(), column: place(), strength };
  });
}

/** The same on every device whose results are the same, bit for bit. */
export function checksum(heights: Float32Array): string {
  return createHash('sha256').update(heights).digest('hex').slice(0, 16);
}
