// Runs random programs with failing kernels on devices and beside the model.
import { UpstreamError, type Graph, type Operation, type Stream } from 'millrace';
import { captureOf, farOf, launchOf, partOf, rootOf, type FailingBench, type GraphParams } from './failing-bench.js';
import { flattened, runCondition, runGraph, usesOfGraph } from './failure-graphs.js';
import {
  copyInModel,
  EITHER,
  FAILED,
  GOOD,
  LENGTH,
  ModelArray,
  OPEN,
  outcomeOf,
  readOf,
  runKernel,
  usesOf,
  WHOLE,
} from './failure-model.js';
import type { KernelCall, Outcome, Part } from './failure-model.js';
import { ARRAYS, KEPT, SLOT_X, SLOT_Y, STREAMS, TRACKED } from './failing-programs.js';
import type { FailingProgram, GraphSpec, Step } from './failing-programs.js';

const HOLD_MS = 20_000;
const STANDING = new Int32Array(new SharedArrayBuffer(4));

/** Runs a program; returns every difference from the model as text. */
export async function differencesOf(bench: FailingBench, program: FailingProgram): Promise<readonly string[]> {
  const run = new Run(bench, program);
  return run.whole();
}

interface Submitted {
  readonly text: string;
  readonly operation: Operation;
  readonly outcome: Outcome;
  readonly on: number;
}

class Run {
  readonly #bench: FailingBench;
  readonly #program: FailingProgram;
  readonly #models: ModelArray[];
  readonly #pinned: readonly ModelArray[];
  readonly #specs: readonly GraphSpec[];
  readonly #graphs: (Graph<GraphParams> | undefined)[] = [];
  readonly #differences: string[] = [];
  readonly #checks: Promise<unknown>[] = [];
  readonly #submitted: Submitted[] = [];
  /**
   * By array, then by PINNED: all streams that used it, for explicit streams. Uses of other parts of an array wait for nothing, so a later use
   * does not stand for an earlier one.
   */
  readonly #uses: { readonly writers: Set<number>; readonly readers: Set<number>; isRead: boolean; isForeign: boolean }[];

  constructor(bench: FailingBench, program: FailingProgram) {
    this.#bench = bench;
    this.#program = program;
    this.#specs = program.graphs.map((spec) => flattened(spec, program.graphs));
    this.#models = bench.arrays.slice(0, program.devices * ARRAYS).map(() => new ModelArray());
    this.#pinned = bench.pinned.map(() => new ModelArray(true));
    this.#uses = [...this.#models, ...this.#pinned].map(() => ({
      writers: new Set(),
      readers: new Set(),
      isRead: false,
      isForeign: false,
    }));
  }

  async whole(): Promise<readonly string[]> {
    const { arrays, pinned } = this.#bench;
    for (const [n, model] of this.#models.entries()) {
      const values = Int32Array.from({ length: LENGTH }, (_, index) => n * 10 + index);
      const on = this.#ordered(Math.floor(n / ARRAYS) * STREAMS, [], [n]);
      this.#bench.streams[on]!.copy(arrays[n]!, values);
      model.write(WHOLE, values, { state: GOOD, roots: new Set() });
    }
    for (const [n, array] of pinned.entries()) {
      const on = this.#ordered(0, [n], [this.#models.length + n]);
      this.#bench.streams[on]!.copy(array, arrays[n]!);
      copyInModel(this.#pinned[n]!, WHOLE, this.#models[n]!, WHOLE);
    }
    for (const [n, step] of this.#program.steps.entries()) {
      const waiting = this.#perform(step, n);
      if (waiting !== undefined || this.#program.isCalm) for (const one of this.#pinned) one.open();
      if (waiting !== undefined) await waiting;
      if (this.#program.isCalm) await this.#submitted.at(-1)?.operation.done.catch(() => undefined);
    }
    for (const n of this.#models.keys()) this.#read(`the last read of a${n}`, n, WHOLE, 'read');
    await Promise.all(this.#checks);
    await Promise.all(this.#bench.streams.map((stream) => stream.synchronize()));
    this.#look('at the end', this.#submitted, true);
    for (const [n, { data }] of pinned.entries()) {
      const { states, values } = this.#pinned[n]!;
      const at = data.findIndex((value, index) => states[index]! <= EITHER && value !== values[index]);
      if (at >= 0) this.#differ(`element ${at} of pinned ${n} at the end`, `${values[at]}`, `${data[at]}`);
    }
    await Promise.all(this.#graphs.flatMap((graph) => (graph === undefined ? [] : [graph.close()])));
    return this.#differences;
  }

  #differ(text: string, expected: string, got: string): void {
    this.#differences.push(`${text}: expected ${expected}, got ${got}`);
  }

  /** What the promise of something should do. */
  #check(text: string, promise: PromiseLike<unknown>, { state, roots }: Outcome, isRight?: (value: unknown) => string | undefined): void {
    const expected = state === FAILED ? `a rejection because of step ${[...roots].join(' or ')}` : 'fulfilment';
    const check = promise.then(
      (value) => {
        if (state === FAILED) this.#differ(text, expected, `fulfilment${shown(value)}`);
        const wrong = state === OPEN ? undefined : isRight?.(value);
        if (state !== FAILED && wrong !== undefined) this.#differ(text, `the model's values`, wrong);
      },
      (error: unknown) => {
        const first = error instanceof UpstreamError ? error.cause : error;
        const told = rootOf(first);
        const got = `${String(error)} (cause ${told === undefined ? String(first) : `step ${told}`})`;
        if (state === GOOD) this.#differ(text, expected, got);
        else if (roots.size > 0 && (told === undefined || !roots.has(told)))
          this.#differ(text, `one because of step ${[...roots].join(' or ')}`, got);
      },
    );
    this.#checks.push(Promise.resolve(check));
  }

  /** What is complete has the right status. */
  #look(when: string, operations: readonly Submitted[], isOver = false): void {
    for (const { text, operation, outcome } of operations) {
      const { status } = operation;
      if (status === 'pending' && !isOver) continue;
      const isWrong =
        outcome.state === FAILED ? status !== 'failed' : outcome.state === GOOD ? status !== 'finished' : status === 'pending';
      if (isWrong) this.#differ(`status of ${text}, ${when}`, ['finished', '', '', 'failed'][outcome.state]!, status);
    }
  }

  #submit(n: number, on: number, operation: Operation, outcome: Outcome, isRight?: (value: unknown) => string | undefined): void {
    const text = `step ${n}`;
    this.#submitted.push({ text, operation, outcome, on });
    if (this.#program.asks[n]) this.#check(`${text}, done`, operation.done, outcome, isRight);
  }

  /**
   * The stream for an operation. An explicit stream has waited for what a tracked one would. A stream that writes has waited for all uses
   * of the array: a failure poisons the whole array, also for earlier uses of other parts that nothing orders before it.
   */
  #ordered(wish: number, reads: readonly number[], writes: readonly number[], isEvent = false): number {
    let on = wish;
    if (on % STREAMS >= TRACKED || writes.length > 0) {
      // Nothing orders an explicit stream after reads, which run on streams of their own.
      const isForeign = writes.some((n) => this.#uses[n]!.isRead) || [...reads, ...writes].some((n) => this.#uses[n]!.isForeign);
      if (isForeign) on -= on % STREAMS >= TRACKED ? TRACKED : 0;
      {
        const before = new Set<number>();
        for (const n of [...reads, ...writes]) for (const writer of this.#uses[n]!.writers) before.add(writer);
        for (const n of writes) for (const reader of this.#uses[n]!.readers) before.add(reader);
        before.delete(on);
        for (const other of before) {
          if (isEvent) this.#bench.streams[on]!.waitEvent(this.#bench.streams[other]!.record());
          else this.#bench.streams[on]!.waitStream(this.#bench.streams[other]!);
        }
      }
    }
    for (const n of reads) this.#uses[n]!.readers.add(on);
    for (const n of writes) this.#uses[n]!.writers.add(on);
    return on;
  }

  /**
   * A new tracked stream, which has waited as `#ordered` says. Explicit streams cannot wait for it later, so tracked ones are used instead.
   */
  #brief(beside: number, reads: readonly number[], writes: readonly number[]): Stream {
    const stream = this.#bench.devices[Math.floor(beside / STREAMS)]!.createStream();
    for (const n of [...reads, ...writes]) this.#uses[n]!.isForeign = true;
    const before = new Set(writes.flatMap((n) => [...this.#uses[n]!.writers, ...this.#uses[n]!.readers]));
    for (const other of before) stream.waitStream(this.#bench.streams[other]!);
    return stream;
  }

  #perform(step: Step, n: number): Promise<unknown> | undefined {
    const { streams, arrays, pinned } = this.#bench;
    const good: Outcome = { state: GOOD, roots: new Set() };
    const isEvent = this.#program.asks[n]!;
    switch (step.kind) {
      case 'fill': {
        const on = this.#ordered(step.on, [], [step.to], isEvent);
        const operation = streams[on]!.fill(partOf(arrays[step.to]!, step.part), step.value);
        this.#models[step.to]!.write(step.part, new Int32Array(step.part.count).fill(step.value), good);
        return this.#submit(n, on, operation, good) as undefined;
      }
      case 'upload': {
        const on = this.#ordered(step.on, [], [step.to], isEvent);
        const data = Int32Array.from({ length: step.part.count }, (_, at) => step.value + at);
        const operation = streams[on]!.copy(partOf(arrays[step.to]!, step.part), data);
        this.#models[step.to]!.write(step.part, data, good);
        return this.#submit(n, on, operation, good) as undefined;
      }
      case 'copy': {
        const on = this.#ordered(step.on, [step.from], [step.to], isEvent);
        const operation = streams[on]!.copy(partOf(arrays[step.to]!, step.part), partOf(arrays[step.from]!, step.fromPart));
        return this.#submit(
          n,
          on,
          operation,
          copyInModel(this.#models[step.to]!, step.part, this.#models[step.from]!, step.fromPart),
        ) as undefined;
      }
      case 'launch': {
        const { reads, writes } = usesOf(step.call);
        const on = step.isBrief ? undefined : this.#ordered(step.on, reads, writes, isEvent);
        const stream = on === undefined ? this.#brief(step.on, reads, writes) : streams[on]!;
        const operation = launchOf(stream, step.call, (which) => arrays[which]!, farOf(n), farOf(n));
        if (on === undefined) this.#checks.push(stream.close());
        const outcome = runKernel(step.call, (which) => this.#models[which]!, n);
        return this.#submit(n, on ?? -1, operation, outcome) as undefined;
      }
      case 'if': {
        const [one, two] = step.bodies;
        const uses = step.bodies.map(usesOf);
        const reads = [step.flag, ...uses.flatMap((each) => each.reads)];
        const writes = uses.flatMap((each) => each.writes);
        const on = this.#ordered(step.on, reads, writes, isEvent);
        const body = (call: KernelCall) => (stream: object) =>
          void launchOf(stream as Stream, call, (which) => arrays[which]!, farOf(n), farOf(n));
        const operation = streams[on]!.captureIf(arrays[step.flag]!.subarray(step.at, step.at + 1), body(one), body(two));
        const outcome = runCondition(this.#models[step.flag]!, step.at, step.bodies, (which) => this.#models[which]!, n);
        return this.#submit(n, on, operation, outcome) as undefined;
      }
      case 'flood': {
        for (let k = 0; k < step.count; k++) streams[step.on]!.fill(this.#bench.scratch[step.on]!, k);
        return undefined;
      }
      case 'graph':
        return this.#launchGraph(step, n) as undefined;
      case 'read':
        this.#read(`step ${n}`, step.from, step.part, step.how);
        // Later chunks would precede no later write.
        return step.how === 'chunks' ? this.#checks.at(-1) : undefined;
      case 'download': {
        const on = this.#ordered(step.on, [step.from], [], isEvent);
        const model = this.#models[step.from]!;
        const [outcome, values] = [outcomeOf([[model, step.part]]), model.valuesOf(step.part)];
        const into = new Int32Array(step.part.count);
        const operation = streams[on]!.copy(into, partOf(arrays[step.from]!, step.part));
        return this.#submit(n, on, operation, outcome, () => differenceOf(into, values)) as undefined;
      }
      case 'pin': {
        const on = this.#ordered(step.on, [step.from], [this.#models.length + step.pinned], isEvent);
        const operation = streams[on]!.copy(
          pinned[step.pinned]!.subarray(step.part.start, step.part.start + step.part.count),
          partOf(arrays[step.from]!, step.part),
        );
        return this.#submit(
          n,
          on,
          operation,
          copyInModel(this.#pinned[step.pinned]!, step.part, this.#models[step.from]!, step.part),
        ) as undefined;
      }
      case 'unpin': {
        const on = this.#ordered(step.on, [this.#models.length + step.pinned], [step.to], isEvent);
        const operation = streams[on]!.copy(
          partOf(arrays[step.to]!, step.part),
          pinned[step.pinned]!.subarray(step.part.start, step.part.start + step.part.count),
        );
        return this.#submit(
          n,
          on,
          operation,
          copyInModel(this.#models[step.to]!, step.part, this.#pinned[step.pinned]!, step.part),
        ) as undefined;
      }
      case 'temporary':
        return this.#replace(step) as undefined;
      case 'wait':
        if (step.isEvent) streams[step.on]!.waitEvent(streams[step.other]!.record());
        else streams[step.on]!.waitStream(streams[step.other]!);
        return undefined;
      case 'host': {
        const before = this.#submitted.filter(({ on }) => on === step.on);
        const operation = streams[step.on]!.host(() => this.#look(`in the host function of step ${n}`, before));
        return this.#submit(n, step.on, operation, good) as undefined;
      }
      case 'hold': {
        const operation = streams[step.on]!.hold(() => new Promise((resolve) => void setImmediate(resolve)), { timeoutMs: HOLD_MS });
        return this.#submit(n, step.on, operation, good) as undefined;
      }
      case 'record':
        return this.#check(`step ${n}, the event's done`, streams[step.on]!.record().done, good) as undefined;
      case 'await':
        return this.#checks.at(-1 - step.back)?.then(() => this.#look(`after the await of step ${n}`, this.#submitted));
      case 'stand':
        // The devices go on, and nothing settles.
        Atomics.wait(STANDING, 0, 0, step.microseconds / 1000);
        return undefined;
      case 'turn':
        return new Promise((resolve) => void setImmediate(resolve)).then(() => this.#look(`in the turn of step ${n}`, this.#submitted));
    }
  }

  #read(text: string, from: number, part: Part, how: 'read' | 'item' | 'into' | 'chunks'): void {
    const model = this.#models[from]!;
    this.#uses[from]!.isRead = true;
    const array = this.#bench.arrays[from]!;
    if (how === 'item') {
      const one: Part = { start: part.start, count: 1, stride: 1 };
      const value = model.values[part.start];
      const isRight = (seen: unknown): string | undefined => (seen === value ? undefined : `${String(seen)}, not ${value}`);
      this.#check(`${text}, item`, array.item(part.start), readOf(model, one), isRight);
      return;
    }
    const [view, values, outcome] = [partOf(array, part), model.valuesOf(part), readOf(model, part)];
    const into = new Int32Array(part.count);
    const promise: Promise<unknown> =
      how === 'read' ? view.read() : how === 'into' ? view.read({ into }) : collected(view.toReadable({ chunkBytes: 64 }));
    this.#check(`${text}, ${how}`, promise, outcome, (seen) => differenceOf(seen as Int32Array, values));
  }

  #replace({ on: wish, to, value, clones }: Step & { readonly kind: 'temporary' }): void {
    const on = this.#ordered(wish, clones === undefined ? [] : [clones], []);
    const stream = this.#bench.streams[on]!;
    const { arrays } = this.#bench;
    arrays[to]![Symbol.dispose]();
    this.#uses[to] = { writers: new Set([on]), readers: new Set(), isRead: false, isForeign: false };
    const model = (this.#models[to] = new ModelArray());
    if (clones === undefined) {
      arrays[to] = stream.full(LENGTH, value, 'i32');
      model.values.fill(value);
      return;
    }
    arrays[to] = arrays[clones]!.clone(stream);
    copyInModel(model, WHOLE, this.#models[clones]!, WHOLE);
  }

  #graphOf(which: number): Graph<GraphParams> {
    const graphOf = (inner: number): Graph<GraphParams> => this.#graphOf(inner);
    // A graph cannot be captured inside of a capture.
    for (const node of this.#program.graphs[which]!.nodes) if (node.kind === 'embed') graphOf(node.graph);
    return (this.#graphs[which] ??= captureOf(this.#bench, this.#program.graphs[which]!, this.#specs[which]!, graphOf));
  }

  #launchGraph({ on: wish, graph: which, x: wishX, y: wishY, isBad }: Step & { readonly kind: 'graph' }, n: number): void {
    const spec = this.#specs[which]!;
    const { reads, writes } = usesOfGraph(spec);
    const direct = new Set([...reads, ...writes]);
    const base = spec.device * ARRAYS;
    // An array that the graph names itself cannot be given for a slot.
    let [x, y] = [wishX, wishY];
    if (direct.has(x) || direct.has(y)) [x, y] = [base + KEPT, base + KEPT + 1];
    const resolve = (array: number): number => (array === SLOT_X ? x : array === SLOT_Y ? y : array);
    const graph = this.#graphOf(which);
    const on = this.#ordered(wish, [...reads].map(resolve), [...writes].map(resolve), this.#program.asks[n]);
    const { arrays, streams } = this.#bench;
    const operation = streams[on]!.launch(graph, {
      ...(reads.has(SLOT_X) && { x: arrays[x]! }),
      ...(writes.has(SLOT_Y) && { y: arrays[y]! }),
      by: isBad ? farOf(n) : 0,
    } as never);
    this.#submit(
      n,
      on,
      operation,
      runGraph(spec, (array) => this.#models[resolve(array)]!, isBad, n),
    );
  }
}

async function collected(stream: ReadableStream<Uint8Array>): Promise<Int32Array> {
  const bytes = new Uint8Array(await new Response(stream as never).arrayBuffer());
  return new Int32Array(bytes.buffer);
}

const shown = (value: unknown): string =>
  ArrayBuffer.isView(value) ? ` with [${(value as Int32Array).subarray(0, 4).join()}, ...]` : ` with ${String(value)}`;

function differenceOf(seen: ArrayLike<number>, expected: readonly number[]): string | undefined {
  if (seen.length !== expected.length) return `${seen.length} elements, not ${expected.length}`;
  const at = expected.findIndex((value, n) => value !== seen[n]);
  return at < 0 ? undefined : `${seen[at]} instead of ${expected[at]} at ${at}`;
}
