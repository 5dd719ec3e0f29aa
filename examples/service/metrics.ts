// The numbers of /metrics, in the text format of Prometheus. Each thread writes a row of shared memory, and whichever thread is asked adds the rows up.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const COUNTERS = ['answered', 'refused', 'cancelled', 'invalid', 'failed', 'batches', 'batched'] as const;
export type Counter = (typeof COUNTERS)[number];
const GAUGES = ['waiting', 'sockets', 'loopDelayP99Ms'] as const;
export type Gauge = (typeof GAUGES)[number];
/** Upper bounds of the times of answers, in seconds. */
const BOUNDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const WIDTH = COUNTERS.length + GAUGES.length + BOUNDS.length + 2;

const HELP: Readonly<Record<Counter | Gauge, string>> = {
  answered: 'Digits that were read',
  refused: 'Requests that were refused because too many waited',
  cancelled: 'Requests whose client went away',
  invalid: 'Requests that were no digit',
  failed: 'Requests that failed otherwise',
  batches: 'Batches that were computed',
  batched: 'Requests of these batches',
  waiting: 'Requests that wait for a batch',
  sockets: 'Open WebSockets',
  loopDelayP99Ms: 'The 99th percentile of the delay of event loops, of the slowest thread',
};

export class Metrics {
  readonly #rows: readonly Float64Array[];
  readonly #own: Float64Array;
  readonly #delay = monitorEventLoopDelay({ resolution: 5 });

  /** `shared` has room for `threads` rows. */
  constructor(shared: SharedArrayBuffer = Metrics.share(1), thread = 0) {
    const all = new Float64Array(shared);
    this.#rows = Array.from({ length: all.length / WIDTH }, (_, row) => all.subarray(row * WIDTH, (row + 1) * WIDTH));
    this.#own = this.#rows[thread]!;
    this.#delay.enable();
  }

  static share(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * WIDTH * Float64Array.BYTES_PER_ELEMENT);
  }

  count(counter: Counter): void {
    this.#own[COUNTERS.indexOf(counter)]!++;
  }

  set(name: Counter | Gauge, value: number): void {
    const counter = COUNTERS.indexOf(name as Counter);
    this.#own[counter >= 0 ? counter : COUNTERS.length + GAUGES.indexOf(name as Gauge)] = value;
  }

  /** A request was answered after so many milliseconds. */
  answered(ms: number): void {
    this.count('answered');
    const first = COUNTERS.length + GAUGES.length;
    const bucket = BOUNDS.findIndex((bound) => ms <= 1000 * bound);
    this.#own[first + (bucket < 0 ? BOUNDS.length : bucket)]!++;
    this.#own[first + BOUNDS.length + 1]! += ms / 1000;
  }

  /** Of all threads. */
  value(name: Counter | Gauge): number {
    const counter = COUNTERS.indexOf(name as Counter);
    return this.#sum(counter >= 0 ? counter : COUNTERS.length + GAUGES.indexOf(name as Gauge));
  }

  text(): string {
    this.set('loopDelayP99Ms', this.#delay.percentile(99) / 1e6);
    const lines: string[] = [];
    const add = (name: string, kind: string, help: string, value: number): void => {
      lines.push(`# HELP digits_${name} ${help}.`, `# TYPE digits_${name} ${kind}`, `digits_${name} ${value}`);
    };
    for (const name of COUNTERS) add(`${name}_total`, 'counter', HELP[name], this.value(name));
    add('waiting', 'gauge', HELP.waiting, this.value('waiting'));
    add('sockets', 'gauge', HELP.sockets, this.value('sockets'));
    const slowest = Math.max(...this.#rows.map((row) => row[COUNTERS.length + GAUGES.indexOf('loopDelayP99Ms')]!));
    add('event_loop_delay_p99_seconds', 'gauge', HELP.loopDelayP99Ms, slowest / 1000);
    add('memory_bytes', 'gauge', 'Resident memory of the process', process.memoryUsage.rss());

    lines.push('# HELP digits_answer_seconds From the request to its answer.', '# TYPE digits_answer_seconds histogram');
    const first = COUNTERS.length + GAUGES.length;
    let sum = 0;
    for (const [at, bound] of [...BOUNDS, '+Inf'].entries())
      lines.push(`digits_answer_seconds_bucket{le="${bound}"} ${(sum += this.#sum(first + at))}`);
    lines.push(`digits_answer_seconds_sum ${this.#sum(first + BOUNDS.length + 1)}`, `digits_answer_seconds_count ${sum}`, '');
    return lines.join('\n');
  }

  #sum(column: number): number {
    return this.#rows.reduce((sum, row) => sum + row[column]!, 0);
  }
}
