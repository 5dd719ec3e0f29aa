// The numbers of /metrics, in the text format of Prometheus. Each thread writes a row of shared memory, and whichever thread is asked adds the rows up.
import { monitorEventLoopDelay } from 'node:perf_hooks';

export const MODELS = ['digits', 'faces'] as const;
export type ModelName = (typeof MODELS)[number];
const COUNTERS = ['answered', 'refused', 'cancelled', 'invalid', 'failed', 'batches', 'batched'] as const;
export type Counter = (typeof COUNTERS)[number];
/** Of a model: counters, then requests that wait, then the times of answers and their sum. */
const WAITING = COUNTERS.length;
/** Upper bounds of the times of answers, in seconds. */
const BOUNDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const TIMES = WAITING + 1;
const SUM = TIMES + BOUNDS.length + 1;
/** Of a thread: those of its models, open WebSockets, delay of the event loop. */
const SOCKETS = MODELS.length * (SUM + 1);
const DELAY = SOCKETS + 1;
const WIDTH = DELAY + 1;

const HELP: Readonly<Record<Counter, string>> = {
  answered: 'Requests that were answered',
  refused: 'Requests that were refused because too many waited',
  cancelled: 'Requests whose client went away',
  invalid: 'Requests that were no digit or no picture',
  failed: 'Requests that failed otherwise',
  batches: 'Batches that were computed',
  batched: 'Requests of these batches',
};

/** The numbers of one model. */
export class ModelMetrics {
  readonly #rows: readonly Float64Array[];
  readonly #own: Float64Array;

  /** The part of each thread's row, and that of this thread. */
  constructor(rows: readonly Float64Array[], own: Float64Array) {
    this.#rows = rows;
    this.#own = own;
  }

  count(counter: Counter): void {
    this.#own[COUNTERS.indexOf(counter)]!++;
  }

  set(name: Counter | 'waiting', value: number): void {
    this.#own[name === 'waiting' ? WAITING : COUNTERS.indexOf(name)] = value;
  }

  /** A request was answered after so many milliseconds. */
  answered(ms: number): void {
    this.count('answered');
    const bucket = BOUNDS.findIndex((bound) => ms <= 1000 * bound);
    this.#own[TIMES + (bucket < 0 ? BOUNDS.length : bucket)]!++;
    this.#own[SUM]! += ms / 1000;
  }

  /** Of all threads. */
  value(counter: Counter): number {
    return this.sum(COUNTERS.indexOf(counter));
  }

  /** A column, of all threads. */
  sum(column: number): number {
    return this.#rows.reduce((sum, row) => sum + row[column]!, 0);
  }
}

export class Metrics {
  readonly digits: ModelMetrics;
  readonly faces: ModelMetrics;
  readonly #rows: readonly Float64Array[];
  readonly #own: Float64Array;
  readonly #delay = monitorEventLoopDelay({ resolution: 5 });

  /** `shared` has room for `threads` rows. */
  constructor(shared: SharedArrayBuffer = Metrics.share(1), thread = 0) {
    const all = new Float64Array(shared);
    this.#rows = Array.from({ length: all.length / WIDTH }, (_, row) => all.subarray(row * WIDTH, (row + 1) * WIDTH));
    this.#own = this.#rows[thread]!;
    const part = (row: Float64Array, model: ModelName): Float64Array => row.subarray(MODELS.indexOf(model) * (SUM + 1));
    const of = (model: ModelName): ModelMetrics =>
      new ModelMetrics(
        this.#rows.map((row) => part(row, model)),
        part(this.#own, model),
      );
    [this.digits, this.faces] = [of('digits'), of('faces')];
    this.#delay.enable();
  }

  static share(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * WIDTH * Float64Array.BYTES_PER_ELEMENT);
  }

  set sockets(count: number) {
    this.#own[SOCKETS] = count;
  }

  text(): string {
    this.#own[DELAY] = this.#delay.percentile(99) / 1e6;
    const lines: string[] = [];
    const add = (name: string, kind: string, help: string, values: Readonly<Record<string, number>>): void => {
      lines.push(`# HELP service_${name} ${help}.`, `# TYPE service_${name} ${kind}`);
      for (const [labels, value] of Object.entries(values)) lines.push(`service_${name}${labels} ${value}`);
    };
    const each = (column: number): Readonly<Record<string, number>> =>
      Object.fromEntries(MODELS.map((model) => [`{model="${model}"}`, this[model].sum(column)]));
    for (const [column, name] of COUNTERS.entries()) add(`${name}_total`, 'counter', HELP[name], each(column));
    add('waiting', 'gauge', 'Requests that wait for a batch', each(WAITING));
    const column = (at: number): readonly number[] => this.#rows.map((row) => row[at]!);
    add('sockets', 'gauge', 'Open WebSockets', { '': column(SOCKETS).reduce((sum, count) => sum + count, 0) });
    const help = 'The 99th percentile of the delay of event loops, of the slowest thread';
    add('event_loop_delay_p99_seconds', 'gauge', help, { '': Math.max(...column(DELAY)) / 1000 });
    add('memory_bytes', 'gauge', 'Resident memory of the process', { '': process.memoryUsage.rss() });

    add('answer_seconds', 'histogram', 'From the request to its answer', {});
    for (const model of MODELS) {
      let sum = 0;
      for (const [at, bound] of [...BOUNDS, '+Inf'].entries())
        lines.push(`service_answer_seconds_bucket{model="${model}",le="${bound}"} ${(sum += this[model].sum(TIMES + at))}`);
      lines.push(`service_answer_seconds_sum{model="${model}"} ${this[model].sum(SUM)}`);
      lines.push(`service_answer_seconds_count{model="${model}"} ${sum}`);
    }
    return [...lines, ''].join('\n');
  }
}
