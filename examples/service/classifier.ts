// Three ways to read digits: in batches on the device, one by one on the device, and in plain TypeScript on the thread that serves.
import {
  createBatcher,
  createLanes,
  type Device,
  type DeviceArray,
  type Graph,
  type Lane,
  type LanesReport,
  type WaitOptions,
} from 'millrace';
import { type ANSWER, Network } from '../training/network.js';
import { CLASSES, PIXELS } from '../training/shape.js';
import { plainShares } from './plain.js';

export type Engine = 'batched' | 'single' | 'plain';
export const ENGINES: readonly Engine[] = ['batched', 'single', 'plain'];

/** Reads digits of 28 x 28 bytes. */
export interface Classifier extends AsyncDisposable {
  /** Requests that wait. */
  readonly waiting: number;
  /** The probabilities of the ten digits. Rejects with LimitError when `maxQueue` requests wait, or when it has waited for longer than `maxQueueMs`. */
  run(pixels: Uint8Array, opts?: WaitOptions): Promise<Float32Array>;
  report(): LanesReport | undefined;
}

export interface ClassifierOptions {
  readonly engine: Engine;
  readonly maxItems: number;
  /** Milliseconds that the first request of a batch waits for more, while a lane is free. */
  readonly maxWaitMs: number;
  readonly maxQueue: number;
  readonly maxQueueMs: number;
  readonly targetLatencyMs: number;
}

/** Batches on the device at a time: one is computed while another one goes up or down. */
const LANES = 2;

/** Networks of one lane by the size of the batch: powers of two, so that a small batch costs little. */
class LaneGraphs {
  readonly #made: { readonly size: number; readonly network: Network; readonly graph: Graph<typeof ANSWER> }[] = [];

  constructor(device: Device, parameters: DeviceArray<'f32'>, most: number) {
    for (let size = 1; size < 2 * most; size *= 2) {
      const network = new Network(device, parameters, Math.min(size, most));
      this.#made.push({ size: network.batch, network, graph: network.captureAnswer() });
    }
  }

  /** The smallest graph that has room for so many. */
  for(count: number): { readonly size: number; readonly graph: Graph<typeof ANSWER> } {
    return this.#made.find(({ size }) => size >= count)!;
  }

  get all(): readonly { readonly size: number; readonly graph: Graph<typeof ANSWER> }[] {
    return this.#made;
  }

  async close(): Promise<void> {
    await Promise.all(this.#made.map(({ graph }) => graph.close()));
    for (const { network } of this.#made) network[Symbol.dispose]();
  }
}

/** Builds the kernels and the graphs, so that the first request need not. `parameters` is on the device, and stays the caller's. */
export async function createDeviceClassifier(
  device: Device,
  parameters: DeviceArray<'f32'>,
  { engine, maxItems, maxWaitMs, maxQueue, maxQueueMs, targetLatencyMs }: ClassifierOptions,
): Promise<Classifier> {
  const most = engine === 'single' ? 1 : maxItems;
  const graphs = Array.from({ length: LANES }, () => new LaneGraphs(device, parameters, most));
  for (const { size, graph } of graphs.flatMap(({ all }) => all)) {
    using images = device.zeros(size * PIXELS, 'u8');
    using shares = device.empty([size, CLASSES]);
    await device.stream.launch(graph, { images, shares }).done;
  }
  const lanes =
    engine === 'single'
      ? createLanes(device, { depth: LANES, maxQueue, maxQueueMs }, async (pixels: Uint8Array, lane) => (await answer([pixels], lane))[0]!)
      : createBatcher(device, { depth: LANES, maxItems, maxWaitMs, maxQueue, maxQueueMs, targetLatencyMs }, answer);

  async function answer(digits: readonly Uint8Array[], lane: Lane): Promise<Float32Array[]> {
    const { size, graph } = graphs[lane.index]!.for(digits.length);
    const pixels = lane.pinned(size * PIXELS, 'u8');
    for (const [at, one] of digits.entries()) pixels.data.set(one, at * PIXELS);
    const images = lane.empty(size * PIXELS, 'u8');
    const shares = lane.empty([size, CLASSES]);
    lane.stream.copy(images, pixels);
    lane.stream.launch(graph, { images, shares });
    const all = await shares.read();
    return digits.map((_, at) => all.slice(at * CLASSES, (at + 1) * CLASSES));
  }

  return {
    get waiting() {
      return lanes.waiting;
    },
    run: lanes.run,
    report: lanes.report,
    async [Symbol.asyncDispose]() {
      await lanes.close();
      await Promise.all(graphs.map((one) => one.close()));
    },
  };
}

/** Reads each digit at once, on the calling thread. */
export function createPlainClassifier(parameters: Float32Array): Classifier {
  return {
    waiting: 0,
    run: async (pixels) => plainShares(parameters, pixels),
    report: () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
