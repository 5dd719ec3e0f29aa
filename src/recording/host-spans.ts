// What the thread does while a timeline is recorded: waits, items and stages of pipelines, builds, collections, and turns of the event loop
// that took long.
import { PerformanceObserver } from 'node:perf_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { performance } from '../core/base/timers.js';
import {
  type CompileMessage,
  compileTrace,
  type ItemMessage,
  itemTrace,
  type StageMessage,
  stageTrace,
  stagingChannel,
  type StagingMessage,
  type Trace,
} from '../core/base/trace.js';
import type { RecordedSpan } from './recorded.js';

/** The event loop is looked at so often, and shorter stalls are not told. */
export const LOOK_MS = 10;
const DROPPED_SHARE = 0.1;

interface TracedSpans extends Pick<Trace, 'start' | 'asyncEnd'> {
  readonly told: (message: unknown) => void;
}

export class HostSpans {
  dropped = 0;
  #hasEnded = false;
  readonly #most: number;
  #spans: RecordedSpan[] = [];
  readonly #collections = new PerformanceObserver((list) => this.#collected(list.getEntries()));
  #lookedAtMs = performance.now();
  /** By message. */
  readonly #starts: WeakMap<object, number> = new WeakMap();
  readonly #traced: readonly TracedSpans[] = [
    this.#ended<ItemMessage>(itemTrace, ({ device, lane, item, attempt }) => {
      const name = `item ${item}${attempt === 1 ? '' : `, attempt ${attempt}`}`;
      return { kind: 'item', name, lane, device };
    }),
    this.#ended<StageMessage>(stageTrace, ({ device, lane, name }) => ({ kind: 'stage', name, lane, device })),
    this.#ended<CompileMessage>(compileTrace, ({ device, kernel }) => ({ kind: 'build', name: `build ${kernel}`, device })),
  ];

  constructor(most: number) {
    this.#most = most;
    for (const { start, asyncEnd, told } of this.#traced) {
      subscribe(start.name, this.#onStart);
      subscribe(asyncEnd.name, told);
    }
    subscribe(stagingChannel.name, this.#onStaging);
    this.#collections.observe({ entryTypes: ['gc'] });
  }

  /** Call it every LOOK_MS. */
  look(): void {
    const now = performance.now();
    const stalledMs = now - this.#lookedAtMs - LOOK_MS;
    if (stalledMs > LOOK_MS) this.add({ kind: 'stall', name: 'event loop', startMs: this.#lookedAtMs + LOOK_MS, endMs: now });
    this.#lookedAtMs = now;
  }

  end(): void {
    this.look();
    this.#collected(this.#collections.takeRecords());
    this.#collections.disconnect();
    for (const { start, asyncEnd, told } of this.#traced) {
      unsubscribe(start.name, this.#onStart);
      unsubscribe(asyncEnd.name, told);
    }
    unsubscribe(stagingChannel.name, this.#onStaging);
    this.#hasEnded = true;
  }

  spans(): readonly RecordedSpan[] {
    return this.#spans;
  }

  readonly #onStart = (message: unknown): void => void this.#starts.set(message as object, performance.now());

  readonly #onStaging = (message: unknown): void => {
    const { device, direction, bytes, startMs, endMs } = message as StagingMessage;
    this.add({ kind: 'staging', name: `copy of ${bytes} bytes ${direction} an ordinary array`, device, startMs, endMs });
  };

  /** By what the trace publishes at its end. */
  #ended<M extends object>({ start, asyncEnd }: Trace, spanOf: (message: M) => Omit<RecordedSpan, 'startMs' | 'endMs'>): TracedSpans {
    const told = (message: unknown): void => {
      // What began before the recording is not in it.
      const startMs = this.#starts.get(message as M);
      if (startMs !== undefined) this.add({ ...spanOf(message as M), startMs, endMs: performance.now() });
    };
    return { start, asyncEnd, told };
  }

  #collected(entries: readonly { readonly startTime: number; readonly duration: number }[]): void {
    for (const { startTime, duration } of entries)
      this.add({ kind: 'collection', name: 'garbage collection', startMs: startTime, endMs: startTime + duration });
  }

  add(span: RecordedSpan): void {
    if (this.#hasEnded) return;
    this.#spans.push(span);
    if (this.#spans.length <= this.#most) return;
    const count = Math.ceil(this.#most * DROPPED_SHARE);
    this.#spans = this.#spans.slice(count);
    this.dropped += count;
  }
}
