// Random programs of streams, events, views and frees on one or two devices, run call by call beside the model.
import fc from 'fast-check';
import {
  cudaKernel,
  inout,
  input,
  StreamHazardError,
  u32,
  type Device,
  type DeviceArray,
  type DeviceEvent,
  type Operation,
  type Stream,
} from 'millrace';
import { hold, type Latch } from './latch.js';
import { OrderModel, type Clock, type Range } from './order-model.js';
import type { Target } from './target.js';

const STREAMS = 3;
const ARRAYS = 2;
const EVENTS = 2;
export const LENGTH = 12;
/** More records than a stream has at the device at once, so that those behind a latch stay on the channel. */
const MORE_THAN_A_WINDOW = 600;

export const combine = cudaKernel(
  'combine',
  { x: input(u32), y: inout(u32), k: u32 },
  `extern "C" __global__ void combine(const unsigned* x, unsigned* y, unsigned k) {
  unsigned i = threadIdx.x;
  y[i] = y[i] * 1664525u + x[i] + k;
}`,
);

const KINDS = [
  'fill',
  'upload',
  'copy',
  'combine',
  'combine',
  'free',
  'record',
  'wait event',
  'wait stream',
  'see stream',
  'see operation',
  'see event',
  'see device',
] as const;

/** One call. Numbers are taken modulo what there is. */
export interface Step {
  readonly kind: (typeof KINDS)[number];
  readonly on: number;
  readonly other: number;
  readonly to: number;
  readonly from: number;
  readonly start: number;
  readonly count: number;
  readonly sourceStart: number;
  /** Between the elements of a fill or of the destination of a copy within one device. */
  readonly stride: number;
  readonly value: number;
  /** After a hazard: waits for what was in the way, and calls again. */
  readonly repairs: boolean;
}
export interface Program {
  readonly steps: readonly Step[];
  /** Streams that are tracked among checked ones. */
  readonly tracked: readonly boolean[];
  /** A stream of the first device that is held until the program looks at something. */
  readonly held: number | undefined;
  /** So long a backlog on it that what comes then is not even issued. */
  readonly isFlooded: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS),
  on: fc.nat(5),
  other: fc.nat(5),
  to: fc.nat(3),
  from: fc.nat(3),
  start: fc.nat(LENGTH - 1),
  count: fc.integer({ min: 1, max: LENGTH }),
  sourceStart: fc.nat(LENGTH - 1),
  stride: fc.constantFrom(1, 1, 1, 2, 3),
  value: fc.nat(0xffff),
  repairs: fc.boolean(),
});
export const program: fc.Arbitrary<Program> = fc.record({
  steps: fc.array(step, { minLength: 3, maxLength: 60 }),
  tracked: fc.array(fc.constantFrom(false, false, true), { minLength: 6, maxLength: 6 }),
  held: fc.option(fc.nat(STREAMS - 1), { nil: undefined }),
  isFlooded: fc.constantFrom(false, false, true),
});

/** Streams for all programs of a test. */
export interface Bench {
  readonly target: Target;
  readonly devices: readonly Device[];
  readonly checked: readonly Stream[];
  readonly tracked: readonly Stream[];
  close(): Promise<void>;
}

export async function makeBench(target: Target, devices: readonly Device[]): Promise<Bench> {
  await Promise.all(devices.map((device) => device.compile(combine)));
  const make = (ordering: 'checked' | 'tracked'): Stream[] =>
    devices.flatMap((device) => Array.from({ length: STREAMS }, () => device.createStream({ ordering })));
  const [checked, tracked] = [make('checked'), make('tracked')];
  const close = async (): Promise<void> => void (await Promise.all([...checked, ...tracked].map((stream) => stream.close())));
  return { target, devices, checked, tracked, close };
}

export interface Outcome {
  readonly seen: readonly (readonly number[])[];
  readonly expected: readonly (readonly number[])[];
  /** Calls that raced, in the library and in the model. */
  readonly hazards: number;
}

/** Runs it; throws where library and model disagree about a race. */
export async function runProgram(
  bench: Bench,
  { steps, tracked, held, isFlooded }: Program,
  mode: 'tracked' | 'checked',
): Promise<Outcome> {
  const isChecked = bench.checked.map((_, n) => mode === 'checked' && !tracked[n]!);
  const streams = isChecked.map((one, n) => (one ? bench.checked[n]! : bench.tracked[n]!));
  const run = new Run(bench, streams, isChecked);
  let latch: Latch | undefined;
  if (held !== undefined) {
    latch = await hold(bench.target, streams[held]!);
    if (isFlooded) run.flood(held);
  }
  try {
    for (const one of steps) {
      if (one.kind.startsWith('see')) {
        latch?.open();
        await run.look(one);
      } else run.perform(one);
    }
  } finally {
    await latch?.[Symbol.asyncDispose]();
  }
  return run.end();
}

interface Call {
  readonly ranges: readonly Range[];
  readonly submit: () => Operation;
  readonly model: () => void;
}

class Run {
  readonly #bench: Bench;
  readonly #streams: readonly Stream[];
  readonly #model: OrderModel;
  readonly #arrays: DeviceArray<'u32'>[];
  readonly #events: readonly DeviceEvent[];
  readonly #points: (Clock | undefined)[] = [];
  readonly #last: ({ readonly operation: Operation; readonly clock: Clock } | undefined)[] = [];
  readonly #extra: DeviceArray[] = [];
  #hazards = 0;

  constructor(bench: Bench, streams: readonly Stream[], isChecked: readonly boolean[]) {
    this.#bench = bench;
    this.#streams = streams;
    this.#model = new OrderModel(bench.devices.length * ARRAYS, LENGTH, isChecked);
    this.#arrays = this.#model.values.map((_, n) => {
      const maker = this.#streamOf(n, n);
      this.#model.make(maker, n);
      return streams[maker]!.zeros(LENGTH, 'u32');
    });
    this.#events = bench.devices.flatMap((device) => Array.from({ length: EVENTS }, () => device.createEvent()));
  }

  flood(on: number): void {
    const scratch = this.#streams[on]!.zeros(1);
    for (let n = 0; n < MORE_THAN_A_WINDOW; n++) this.#streams[on]!.fill(scratch, n);
    this.#extra.push(scratch);
  }

  perform(one: Step): void {
    const on = one.on % this.#streams.length;
    const stream = this.#streams[on]!;
    const other = one.other % this.#streams.length;
    const event = one.other % this.#events.length;
    if (one.kind === 'wait stream') {
      stream.waitStream(this.#streams[other]!);
      this.#model.wait(on, this.#model.clockOf(other));
    } else if (one.kind === 'record') {
      const recorder = this.#streamOf(event, one.on, EVENTS);
      this.#streams[recorder]!.record(this.#events[event]!);
      this.#points[event] = this.#model.clockOf(recorder);
    } else if (one.kind === 'wait event') {
      stream.waitEvent(this.#events[event]!);
      const point = this.#points[event];
      if (point !== undefined) this.#model.wait(on, point);
    } else if (one.kind === 'free') {
      const array = one.to % this.#arrays.length;
      const maker = this.#streamOf(array, one.on);
      this.#arrays[array]![Symbol.dispose]();
      this.#arrays[array] = this.#streams[maker]!.zeros(LENGTH, 'u32');
      this.#model.make(maker, array);
    } else {
      const call = this.#callOf(one, on);
      if (call !== undefined) this.#submit(on, call, one.repairs);
    }
  }

  /** The host waits for something, and so has seen it. */
  async look({ kind, on, other }: Step): Promise<void> {
    const stream = on % this.#streams.length;
    const event = other % this.#events.length;
    if (kind === 'see stream') {
      const clock = this.#model.clockOf(stream);
      await this.#streams[stream]!.synchronize();
      this.#model.observe(clock);
    } else if (kind === 'see operation') {
      const last = this.#last[stream];
      if (last === undefined) return;
      await last.operation.done;
      this.#model.observe(last.clock);
    } else if (kind === 'see event') {
      const point = this.#points[event];
      await this.#events[event]!.done;
      if (point !== undefined) this.#model.observe(point);
    } else {
      const device = other % this.#bench.devices.length;
      const mine = this.#streams.map((_, n) => n).filter((n) => Math.floor(n / STREAMS) === device);
      const clocks = mine.map((n) => this.#model.clockOf(n));
      await this.#bench.devices[device]!.synchronize();
      for (const clock of clocks) this.#model.observe(clock);
    }
  }

  async end(): Promise<Outcome> {
    const seen = await Promise.all(this.#arrays.map((array) => array.read()));
    for (const one of [...this.#arrays, ...this.#events, ...this.#extra]) one[Symbol.dispose]();
    return {
      seen: seen.map((values) => [...values]),
      expected: this.#model.values.map((values) => [...values]),
      hazards: this.#hazards,
    };
  }

  #submit(on: number, call: Call, repairs: boolean): void {
    const racing = this.#model.use(on, call.ranges);
    let operation: Operation | undefined;
    try {
      operation = call.submit();
    } catch (error) {
      if (!(error instanceof StreamHazardError)) throw error;
      if (racing.length === 0) throw new Error('A hazard where everything is ordered.', { cause: error });
    }
    if (operation !== undefined) {
      if (racing.length > 0) throw new Error(`A race with ${racing.map((n) => this.#streams[n]!.label).join()} passed.`);
      this.#last[on] = { operation, clock: this.#model.clockOf(on) };
      call.model();
      return;
    }
    this.#hazards++;
    if (!repairs) return;
    for (const stream of racing) {
      this.#streams[on]!.waitStream(this.#streams[stream]!);
      this.#model.wait(on, this.#model.clockOf(stream));
    }
    this.#submit(on, call, false);
  }

  /** Undefined where the numbers make no call. */
  #callOf(one: Step, on: number): Call | undefined {
    const stream = this.#streams[on]!;
    const home = Math.floor(on / STREAMS);
    const isWithin = one.kind !== 'copy';
    const to = isWithin ? home * ARRAYS + (one.to % ARRAYS) : one.to % this.#arrays.length;
    const from = isWithin ? home * ARRAYS + (one.from % ARRAYS) : one.from % this.#arrays.length;
    const isLocal = Math.floor(to / ARRAYS) === home && Math.floor(from / ARRAYS) === home;
    const stride = one.kind === 'fill' || (one.kind === 'copy' && isLocal) ? one.stride : 1;
    const count = Math.min(one.count, LENGTH - one.sourceStart, Math.ceil((LENGTH - one.start) / stride));
    const values = this.#model.values[to]!;
    const source = this.#model.values[from]!;
    const write: Range = { array: to, from: one.start, to: one.start + (count - 1) * stride + 1, isWrite: true };
    const read: Range = { array: from, from: one.sourceStart, to: one.sourceStart + count, isWrite: false };
    const part = (): DeviceArray<'u32'> =>
      stride === 1
        ? this.#arrays[to]!.subarray(one.start, one.start + count)
        : this.#arrays[to]!.view([one.start, one.start + (count - 1) * stride + 1, stride]);
    const sourcePart = (): DeviceArray<'u32'> => this.#arrays[from]!.subarray(one.sourceStart, one.sourceStart + count);
    const each = (next: (n: number, old: number) => number): void => {
      for (let n = 0; n < count; n++) values[one.start + n * stride] = next(n, values[one.start + n * stride]!);
    };

    if (one.kind === 'fill') return { ranges: [write], submit: () => stream.fill(part(), one.value), model: () => each(() => one.value) };
    if (one.kind === 'upload') {
      const data = Uint32Array.from({ length: count }, (_, n) => one.value + n);
      return { ranges: [write], submit: () => stream.copy(part(), data), model: () => each((n) => data[n]!) };
    }
    const isSame = to === from && write.from === read.from && write.to === read.to;
    const overlaps = to === from && write.from < read.to && read.from < write.to;
    // In place, each thread uses an element of its own, which a checked stream does not know (S126).
    if (overlaps && !(one.kind === 'combine' && isSame && stream.ordering !== 'checked')) return undefined;
    const sourceAt = (n: number): number => source[one.sourceStart + n]!;
    if (one.kind === 'copy') {
      return { ranges: [write, read], submit: () => stream.copy(part(), sourcePart()), model: () => each(sourceAt) };
    }
    return {
      ranges: [write, read],
      submit: () => stream.launch(combine, { grid: 1, block: count }, { x: sourcePart(), y: part(), k: one.value }),
      model: () => each((n, old) => Math.imul(old, 1664525) + sourceAt(n) + one.value),
    };
  }

  /** A stream of the device that the array, or the event, belongs to. */
  #streamOf(item: number, wish: number, perDevice: number = ARRAYS): number {
    return Math.floor(item / perDevice) * STREAMS + (wish % STREAMS);
  }
}
