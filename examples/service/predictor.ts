// Three ways to answer with a network: in batches on the device, one by one on the device, and in plain TypeScript on the thread that serves.
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
import type { ANSWER } from '../training/network.js';

export type Engine = 'batched' | 'single' | 'plain';
export const ENGINES: readonly Engine[] = ['batched', 'single', 'plain'];

export type AnswerGraph = Graph<typeof ANSWER>;

/** Networks of one lane, one of which runs at a time. */
export interface Networks extends Disposable {
  /** The network for batches of this size, as a graph. */
  capture(batch: number): AnswerGraph;
}

/** A network, and what it makes of requests. */
export interface Model<T, A, N> {
  /** Bytes that the network reads for an item, and numbers that it answers. */
  readonly bytes: number;
  readonly numbers: number;
  /** Writes the bytes, and resolves to what `answer` has to know. When it rejects, so does this item's request, and no other one. */
  prepare(item: T, into: Uint8Array): N | Promise<N>;
  answer(numbers: Float32Array, notes: N): A;
  /** `parameters` is on the device, and stays the caller's. */
  open(device: Device, parameters: DeviceArray<'f32'>, maxItems: number): Networks;
  /** The network in plain TypeScript, for one item. */
  plain(parameters: Float32Array, bytes: Uint8Array): Float32Array;
}

/** Answers requests. */
export interface Predictor<T, A> extends AsyncDisposable {
  /** Requests that wait. */
  readonly waiting: number;
  /** Rejects with LimitError when `maxQueue` requests wait, or when it has waited for longer than `maxQueueMs`. */
  run(item: T, opts?: WaitOptions): Promise<A>;
  report(): LanesReport | undefined;
}

export interface PredictorOptions {
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

/** Graphs of one lane by the size of the batch: powers of two, so that a small batch costs little. */
class LaneGraphs {
  readonly #networks: Networks;
  readonly graphs: { readonly size: number; readonly graph: AnswerGraph }[] = [];

  constructor(networks: Networks, most: number) {
    this.#networks = networks;
    for (let size = 1; size < 2 * most; size *= 2) {
      const batch = Math.min(size, most);
      this.graphs.push({ size: batch, graph: networks.capture(batch) });
    }
  }

  /** The smallest graph that has room for so many. */
  for(count: number): { readonly size: number; readonly graph: AnswerGraph } {
    return this.graphs.find(({ size }) => size >= count)!;
  }

  async close(): Promise<void> {
    await Promise.all(this.graphs.map(({ graph }) => graph.close()));
    this.#networks[Symbol.dispose]();
  }
}

/** Builds the kernels and the graphs, so that the first request need not. `parameters` is on the device, and stays the caller's. */
export async function createDevicePredictor<T, A, N>(
  device: Device,
  model: Model<T, A, N>,
  parameters: DeviceArray<'f32'>,
  { engine, maxItems, maxWaitMs, maxQueue, maxQueueMs, targetLatencyMs }: PredictorOptions,
): Promise<Predictor<T, A>> {
  const most = engine === 'single' ? 1 : maxItems;
  const lanesGraphs = Array.from({ length: LANES }, () => new LaneGraphs(model.open(device, parameters, most), most));
  for (const { size, graph } of lanesGraphs.flatMap(({ graphs }) => graphs)) {
    using images = device.zeros(size * model.bytes, 'u8');
    using answers = device.empty([size, model.numbers]);
    await device.stream.launch(graph, { images, answers }).done;
  }
  const lanes =
    engine === 'single'
      ? createLanes(device, { depth: LANES, maxQueue, maxQueueMs }, answerOne)
      : createBatcher(device, { depth: LANES, maxItems, maxWaitMs, maxQueue, maxQueueMs, targetLatencyMs }, answerAll);

  async function answerOne(item: T, lane: Lane): Promise<A> {
    const [result] = (await answerAll([item], lane)) as [A | Error];
    if (result instanceof Error) throw result;
    return result;
  }

  async function answerAll(items: readonly T[], lane: Lane): Promise<(A | Error)[]> {
    const { size, graph } = lanesGraphs[lane.index]!.for(items.length);
    const bytes = lane.pinned(size * model.bytes, 'u8');
    const prepared = await Promise.allSettled(
      items.map(async (item, at) => model.prepare(item, bytes.data.subarray(at * model.bytes, (at + 1) * model.bytes))),
    );
    if (prepared.every(({ status }) => status === 'rejected')) return prepared.map((one) => (one as PromiseRejectedResult).reason as Error);
    const images = lane.empty(size * model.bytes, 'u8');
    const answers = lane.empty([size, model.numbers]);
    lane.stream.copy(images, bytes);
    lane.stream.launch(graph, { images, answers });
    const numbers = await answers.read();
    return prepared.map((one, at) => {
      if (one.status === 'rejected') return one.reason as Error;
      return model.answer(numbers.slice(at * model.numbers, (at + 1) * model.numbers), one.value);
    });
  }

  return {
    get waiting() {
      return lanes.waiting;
    },
    run: lanes.run,
    report: lanes.report,
    async [Symbol.asyncDispose]() {
      await lanes.close();
      await Promise.all(lanesGraphs.map((own) => own.close()));
    },
  };
}

/** Answers each request at once, on the calling thread. */
export function createPlainPredictor<T, A, N>(model: Model<T, A, N>, parameters: Float32Array): Predictor<T, A> {
  return {
    waiting: 0,
    run: async (item) => {
      // Threads that prepare items write to it.
      const bytes = new Uint8Array(new SharedArrayBuffer(model.bytes));
      const notes = await model.prepare(item, bytes);
      return model.answer(model.plain(parameters, bytes), notes);
    },
    report: () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
