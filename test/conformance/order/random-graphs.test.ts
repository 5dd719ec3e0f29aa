// Chapter 10, ninth part: random programs on one to four streams, run call by call and as a graph that is launched several times. Both give
// what plain JavaScript gives, and the edges of the graph order exactly the nodes that the model orders.
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { u32, type Device, type DeviceArray, type DeviceEvent, type Graph, type ScalarSlot, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { orderOf, workOf } from '../../support/graphs.js';
import { OrderModel, type Clock, type Range } from '../../support/order-model.js';
import { combine } from '../../support/programs.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { modelOf, viewOf, type Slice } from '../../support/strided.js';

/** The number of programs in each run of the suite; a soak runs more. */
const PROGRAMS = Number(process.env['MILLRACE_PROGRAMS'] ?? 60);
/** Limits the time of the default number on a slow machine. A requested number runs in full. */
const TIME_LIMIT = process.env['MILLRACE_PROGRAMS'] === undefined ? { interruptAfterTimeLimit: 25_000 } : {};
const TIMEOUT_MS = Math.max(60_000, PROGRAMS * 1000);

const STREAMS = 4;
const ARRAYS = 3;
const LENGTH = 12;
const ROUNDS = 3;

interface Part {
  readonly array: number;
  readonly start: number;
  readonly step: number;
}
interface Step {
  readonly kind: 'fill' | 'copy' | 'launch' | 'launch with the value' | 'record' | 'wait event' | 'wait stream';
  readonly on: number;
  readonly other: number;
  readonly to: Part;
  readonly from: Part;
  readonly count: number;
  readonly value: number;
}
interface Program {
  readonly steps: readonly Step[];
  readonly streams: number;
  readonly explicit: readonly boolean[];
  /** A stream joins by an event, not by waitStream. */
  readonly byEvent: readonly boolean[];
  /** At the end the first stream waits for the others. */
  readonly joins: boolean;
}

const part: fc.Arbitrary<Part> = fc.record({
  array: fc.nat(ARRAYS - 1),
  start: fc.nat(LENGTH - 1),
  step: fc.constantFrom(1, 1, 1, 2, 3, -1, -2),
});
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('fill', 'copy', 'copy', 'launch', 'launch', 'launch with the value', 'record', 'wait event', 'wait stream'),
  on: fc.nat(STREAMS - 1),
  other: fc.nat(STREAMS - 1),
  to: part,
  from: part,
  count: fc.integer({ min: 1, max: LENGTH }),
  value: fc.nat(0xffff),
});
const flags = fc.array(fc.boolean(), { minLength: STREAMS, maxLength: STREAMS });
const program: fc.Arbitrary<Program> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 40 }),
  streams: fc.integer({ min: 1, max: STREAMS }),
  explicit: flags,
  byEvent: flags,
  joins: fc.boolean(),
});

/** Streams of both kinds, so that programs do not make any. */
interface Bench {
  readonly device: Device;
  readonly tracked: readonly Stream[];
  readonly explicit: readonly Stream[];
}

defineChapter((target) => {
  describe('10 graphs: random programs', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const numRuns = target.programs ?? PROGRAMS;

    async function check(property: (bench: Bench, one: Program) => Promise<void>): Promise<void> {
      const { device } = chapter;
      await device.compile(combine);
      const make = (ordering: 'tracked' | 'explicit'): Stream[] => Array.from({ length: STREAMS }, () => device.createStream({ ordering }));
      const bench = { device, tracked: make('tracked'), explicit: make('explicit') };
      await fc.assert(
        fc.asyncProperty(program, (one) => property(bench, one)),
        { numRuns, ...TIME_LIMIT },
      );
      await Promise.all([...bench.tracked, ...bench.explicit].map((stream) => stream.close()));
    }

    rule(
      'S1003',
      'any program gives, launched three times as a graph, what it gives run three times, and what JavaScript gives',
      () =>
        check(async (bench, one) => {
          const expected = new Run(bench, one).expected();
          expect(await new Run(bench, one).eagerly()).toEqual(expected);
          expect(await new Run(bench, one).asGraph()).toEqual(expected);
        }),
      { timeoutMs: TIMEOUT_MS },
    );

    rule(
      'S1003',
      'in any program the edges order exactly the nodes that streams, waits and tracked arrays order',
      () =>
        check(async (bench, one) => {
          const run = new Run(bench, one);
          const { graph, clocks } = run.capture();
          if (graph === undefined) return;
          const nodes = workOf(graph);
          expect(nodes).toHaveLength(clocks.length);
          const isBefore = orderOf(graph);
          const seen: string[] = [];
          const wanted: string[] = [];
          for (const [n, { stream, clock }] of clocks.entries()) {
            for (let m = n + 1; m < clocks.length; m++) {
              if (isBefore(nodes[n]!, nodes[m]!)) seen.push(`${n}<${m}`);
              if (clocks[m]!.clock[stream]! >= clock[stream]!) wanted.push(`${n}<${m}`);
            }
          }
          expect(seen).toEqual(wanted);
          await graph.close();
          run.dispose();
        }),
      { timeoutMs: TIMEOUT_MS },
    );
  });
});

interface NodeClock {
  readonly stream: number;
  readonly clock: Clock;
}

/** One program: its arrays, its streams, and the plain values beside them. */
class Run {
  readonly #device: Device;
  readonly #program: Program;
  readonly #streams: readonly Stream[];
  readonly #arrays: readonly DeviceArray<'u32'>[];
  readonly #values: readonly Uint32Array[];

  constructor({ device, tracked, explicit }: Bench, one: Program) {
    this.#device = device;
    this.#program = one;
    this.#streams = Array.from({ length: one.streams }, (_, n) => (one.explicit[n]! ? explicit : tracked)[n]!);
    this.#values = Array.from({ length: ARRAYS }, (_, n) => Uint32Array.from({ length: LENGTH }, (__, at) => n * 1000 + at));
    this.#arrays = this.#values.map((values) => device.from(values));
  }

  /** What plain JavaScript computes. */
  expected(): number[][] {
    this.dispose();
    for (let round = 0; round < ROUNDS; round++) {
      for (const one of this.#program.steps) this.#compute(one, round);
    }
    return this.#values.map((values) => [...values]);
  }

  async eagerly(): Promise<number[][]> {
    for (let round = 0; round < ROUNDS; round++) {
      await this.#device.synchronize();
      this.#submit(round);
    }
    await this.#device.synchronize();
    return this.#contents();
  }

  async asGraph(): Promise<number[][]> {
    await this.#device.synchronize();
    const { graph } = this.capture();
    if (graph !== undefined) {
      for (let value = 0; value < ROUNDS; value++) this.#streams[0]!.launch(graph, { value });
      await this.#device.synchronize();
      await graph.close();
    }
    return this.#contents();
  }

  /** The graph, undefined for a program without operations, and the model's clock of each of its nodes. */
  capture(): { readonly graph: Graph<{ value: typeof u32 }> | undefined; readonly clocks: readonly NodeClock[] } {
    if (this.#program.steps.every((one) => this.#rangesOf(one) === undefined)) return { graph: undefined, clocks: [] };
    let clocks: readonly NodeClock[] = [];
    const graph = this.#streams[0]!.capture({ value: u32 }, (_, { value }) => {
      clocks = this.#submit(value);
    });
    return { graph, clocks };
  }

  dispose(): void {
    for (const array of this.#arrays) array[Symbol.dispose]();
  }

  async #contents(): Promise<number[][]> {
    const contents = await Promise.all(this.#arrays.map((array) => array.read()));
    this.dispose();
    return contents.map((values) => [...values]);
  }

  /** Makes the calls of one round. Explicit streams wait for those that they would race with. */
  #submit(value: number | ScalarSlot<'u32'>): NodeClock[] {
    const { explicit, byEvent, steps, joins } = this.#program;
    const streams = this.#streams;
    const first = streams[0]!;
    const model = new OrderModel(
      ARRAYS,
      LENGTH,
      streams.map((_, n) => explicit[n]!),
    );
    const clocks: NodeClock[] = [];
    const joined = new Set([0]);
    let event: { readonly event: DeviceEvent; readonly clock: Clock } | undefined;
    const wait = (on: number, other: number): void => {
      streams[on]!.waitStream(streams[other]!);
      model.wait(on, model.clockOf(other));
    };
    const join = (on: number): void => {
      if (joined.has(on)) return;
      joined.add(on);
      if (byEvent[on]!) streams[on]!.waitEvent(first.record());
      else streams[on]!.waitStream(first);
      model.wait(on, model.clockOf(0));
    };
    for (const one of steps) {
      const on = one.on % streams.length;
      const other = one.other % streams.length;
      join(on);
      if (one.kind === 'record') {
        event = { event: streams[on]!.record(), clock: model.clockOf(on) };
      } else if (one.kind === 'wait event') {
        if (event === undefined) continue;
        streams[on]!.waitEvent(event.event);
        model.wait(on, event.clock);
      } else if (one.kind === 'wait stream') {
        join(other);
        wait(on, other);
      } else {
        const ranges = this.#rangesOf(one);
        if (ranges === undefined) continue;
        const racing = model.use(on, ranges);
        for (const stream of racing) wait(on, stream);
        // The model notes a use only when it does not race.
        if (racing.length > 0) model.use(on, ranges);
        clocks.push({ stream: on, clock: model.clockOf(on) });
        this.#call(one, streams[on]!, value);
      }
    }
    if (joins) for (const on of joined) first.waitStream(streams[on]!);
    return clocks;
  }

  #call(one: Step, stream: Stream, value: number | ScalarSlot<'u32'>): void {
    const to = this.#view(one, one.to);
    if (one.kind === 'fill') stream.fill(to, one.value);
    else if (one.kind === 'copy') stream.copy(to, this.#view(one, one.from));
    else {
      const k = one.kind === 'launch' ? one.value : value;
      stream.launch(combine, { grid: 1, block: to.length }, { x: this.#view(one, one.from), y: to, k });
    }
  }

  #compute(one: Step, value: number): void {
    if (this.#rangesOf(one) === undefined) return;
    const [to, from] = [this.#values[one.to.array]!, this.#values[one.from.array]!];
    const source = this.#offsets(one, one.from).map((at) => from[at]!);
    for (const [n, at] of this.#offsets(one, one.to).entries()) {
      if (one.kind === 'fill') to[at] = one.value;
      else if (one.kind === 'copy') to[at] = source[n]!;
      else to[at] = Math.imul(to[at]!, 1664525) + source[n]! + (one.kind === 'launch' ? one.value : value);
    }
  }

  /** The elements that the call uses, as their bounds; undefined where the numbers make no call. */
  #rangesOf(one: Step): readonly Range[] | undefined {
    if (one.kind === 'record' || one.kind.startsWith('wait')) return undefined;
    const write = rangeOf(one.to.array, this.#offsets(one, one.to), true);
    if (one.kind === 'fill') return [write];
    const read = rangeOf(one.from.array, this.#offsets(one, one.from), false);
    // Copies must not overlap, and what a kernel reads must not be what its other threads write.
    const overlaps = write.array === read.array && write.from < read.to && read.from < write.to;
    return overlaps ? undefined : [write, read];
  }

  #view(one: Step, end: Part): DeviceArray<'u32'> {
    return this.#arrays[end.array]!.view(this.#slice(one, end));
  }

  #offsets(one: Step, end: Part): readonly number[] {
    return viewOf(modelOf([LENGTH]), this.#slice(one, end)).at;
  }

  /** The slice of one end, as long as that of the other. */
  #slice(one: Step, end: Part): Exclude<Slice, number> {
    const isLaunch = one.kind.startsWith('launch');
    const room = ({ start, step: by }: Part): number => {
      const stride = isLaunch ? 1 : by;
      return stride > 0 ? Math.ceil((LENGTH - start) / stride) : Math.floor(start / -stride) + 1;
    };
    const count = one.kind === 'fill' ? Math.min(one.count, room(one.to)) : Math.min(one.count, room(one.to), room(one.from));
    const by = isLaunch ? 1 : end.step;
    const stop = end.start + by * count;
    // Python counts a negative end from the back, so an end before the first element is left out.
    return [end.start, stop < 0 ? undefined : stop, by];
  }
}

function rangeOf(array: number, at: readonly number[], isWrite: boolean): Range {
  return { array, from: Math.min(...at), to: Math.max(...at) + 1, isWrite };
}
