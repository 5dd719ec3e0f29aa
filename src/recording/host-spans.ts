// What the thread does while a timeline is recorded: waits, items and stages of pipelines, builds, collections, and turns of the event loop
// that took long.
import { PerformanceObserver } from 'node:perf_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { performance } from '../core/base/timers.js';
import { buildsChannel, type Span, spansChannel } from '../core/base/trace.js';
import type { RecordedSpan } from './recorded.js';

/** The event loop is looked at so often, and shorter stalls are not told. */
export const LOOK_MS = 10;
const DROPPED_SHARE = 0.1;

export class HostSpans {
  dropped = 0;
  #hasEnded = false;
  readonly #most: number;
  #spans: RecordedSpan[] = [];
  readonly #collections = new PerformanceObserver((list) => this.#collected(list.getEntries()));
  #lookedAtMs = performance.now();

  constructor(most: number) {
    this.#most = most;
    subscribe(spansChannel.name, this.#onSpan);
    subscribe(buildsChannel.name, this.#onBuild);
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
    unsubscribe(spansChannel.name, this.#onSpan);
    unsubscribe(buildsChannel.name, this.#onBuild);
    this.#hasEnded = true;
  }

  spans(): readonly RecordedSpan[] {
    return this.#spans;
  }

  readonly #onSpan = (message: unknown): void => this.add(message as Span);

  readonly #onBuild = (message: unknown): void => {
    const { device, kernel, ms } = message as { readonly device: string; readonly kernel: string; readonly ms: number };
    const endMs = performance.now();
    this.add({ kind: 'build', name: `build ${kernel}`, device, startMs: endMs - ms, endMs });
  };

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
