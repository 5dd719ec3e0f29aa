// What a device tells while its timeline is recorded, for all of this thread that want it: a recording, and the meter of usages.
// Thread: owner.
import { DeviceTimes, RecordedKind, RecordedTime } from '../protocol/protocol.gen.js';
import { performance } from '../core/base/timers.js';
import type { DeviceCore } from '../core/device/device-core.js';
import type { OperationKind } from '../core/base/snapshots.js';
import type { LogTap, WaitNote } from '../core/timeline/operation-log.js';
import type { Timeline } from '../core/timeline/timeline.js';

/** Facts that are read at once. */
const BATCH = 8192;
/** The clocks of GPUs are compared with the host's so often. */
const ALIGN_MS = 1000;

/** An entry of RecordedTime. Times are milliseconds of `performance.now()`. */
export interface Fact {
  readonly kind: RecordedKind;
  readonly detail: number;
  readonly slot: number;
  readonly ticket: number;
  readonly beginMs: number;
  readonly endMs: number;
  /** What `end` is where it is no time. */
  readonly end: number;
}

export interface FactListener extends Partial<Omit<LogTap, 'ending'>> {
  /** The next fact has the same object. */
  noted(fact: Fact): void;
  /** So many facts had no room. */
  lost(count: number): void;
}

/** What a listener wants of the device's own facts: at most `most` between two calls of `read`. */
export interface FactWish {
  readonly most: number;
  readonly times: DeviceTimes;
}

const ofCores: WeakMap<DeviceCore, DeviceFacts> = new WeakMap();

export class DeviceFacts implements LogTap {
  readonly #core: DeviceCore;
  /** With undefined: only what this thread submits. */
  readonly #listeners: Map<FactListener, FactWish | undefined> = new Map();
  /** Those that hear of each operation, and of each fact. */
  #ofSubmitted: readonly FactListener[] = [];
  #ofNamed: readonly FactListener[] = [];
  #ofFacts: readonly FactListener[] = [];
  readonly #words = new Uint32Array((BATCH * RecordedTime.BYTE_SIZE) >> 2);
  readonly #bytes = new Uint8Array(this.#words.buffer);
  #isOn = false;
  #alignedMs = -Infinity;

  private constructor(core: DeviceCore) {
    this.#core = core;
  }

  static of(core: DeviceCore): DeviceFacts {
    let facts = ofCores.get(core);
    if (facts === undefined) ofCores.set(core, (facts = new DeviceFacts(core)));
    return facts;
  }

  /** Whether the device can tell more than this thread knows. */
  get hasRecorder(): boolean {
    return this.#core.channel.recorder !== undefined;
  }

  /** A further call changes the wish. */
  add(listener: FactListener, wish: FactWish | undefined): void {
    if (this.#listeners.size === 0) this.#core.tell(this);
    this.#listeners.set(listener, wish);
    this.#change();
  }

  delete(listener: FactListener): void {
    if (!this.#listeners.delete(listener)) return;
    this.#change();
    if (this.#listeners.size === 0) this.#core.tell(undefined);
  }

  /** Passes on what the device has told since the last call. Call it every few milliseconds. */
  read(): void {
    const { recorder } = this.#core.channel;
    if (!this.#isOn || recorder === undefined) return;
    if (performance.now() - this.#alignedMs >= ALIGN_MS) void this.#align();
    for (;;) {
      const [count, dropped] = recorder.take(this.#bytes);
      if (dropped > 0) this.#each((listener) => listener.lost(dropped));
      for (let n = 0; n < count; n++) this.#pass((n * RecordedTime.BYTE_SIZE) >> 2);
      if (count < BATCH) break;
    }
  }

  /** Passes on what the device knows of everything that has finished. */
  async ending(): Promise<void> {
    if (!this.#isOn) return;
    // Before the worker answers, the device has told of everything.
    await this.#align();
    this.read();
  }

  submitted(timeline: Timeline, ticket: number, opcode: number): void {
    for (const listener of this.#ofSubmitted) listener.submitted!(timeline, ticket, opcode);
  }

  named(timeline: Timeline, ticket: number, id: number, kind: OperationKind, label: string | undefined, bytes: number | undefined): void {
    for (const listener of this.#ofNamed) listener.named!(timeline, ticket, id, kind, label, bytes);
  }

  waits(timeline: Timeline, note: WaitNote, other: Timeline | undefined): void {
    for (const [listener] of this.#listeners) listener.waits?.(timeline, note, other);
  }

  waited(wait: Promise<void>, timeline: Timeline, ticket: number): void {
    for (const [listener] of this.#listeners) listener.waited?.(wait, timeline, ticket);
  }

  #change(): void {
    this.#ofSubmitted = [...this.#listeners.keys()].filter(({ submitted }) => submitted !== undefined);
    this.#ofNamed = [...this.#listeners.keys()].filter(({ named }) => named !== undefined);
    this.#ofFacts = [...this.#listeners].flatMap(([listener, wish]) => (wish === undefined ? [] : [listener]));
    const { channel } = this.#core;
    // It tells nothing more, and there is nothing to change.
    if (this.#core.isGone) return;
    const wishes = [...this.#listeners.values()].filter((wish) => wish !== undefined);
    if (wishes.length === 0) {
      if (this.#isOn) channel.recorder?.stop();
    } else {
      // The CPU device's times cost nothing.
      const times = channel.backend === 'cpu' ? DeviceTimes.EACH : (Math.max(...wishes.map((wish) => wish.times)) as DeviceTimes);
      channel.recorder?.start(Math.max(...wishes.map(({ most }) => most)), times);
      if (!this.#isOn) void this.#align();
    }
    this.#isOn = wishes.length > 0;
  }

  /** Resolves when the clocks were compared, or the device has ended and tells nothing more. */
  async #align(): Promise<void> {
    this.#alignedMs = performance.now();
    await this.#core.channel.ask('alignClocks').catch(() => undefined);
  }

  readonly #fact = { kind: RecordedKind.SUBMITTED as RecordedKind, detail: 0, slot: 0, ticket: 0, beginMs: 0, endMs: 0, end: 0 };

  #pass(at: number): void {
    const words = this.#words;
    const fact = this.#fact;
    const first = words[at] as number;
    fact.kind = (first & 0xffff) as RecordedKind;
    fact.detail = first >>> 16;
    fact.slot = words[at + (RecordedTime.STREAM >> 2)] as number;
    fact.ticket = wide(words, at + (RecordedTime.TICKET >> 2));
    fact.beginMs = msOf(wide(words, at + (RecordedTime.BEGIN >> 2)));
    fact.end = wide(words, at + (RecordedTime.END >> 2));
    fact.endMs = msOf(fact.end);
    for (const listener of this.#ofFacts) listener.noted(fact);
  }

  #each(tell: (listener: FactListener) => void): void {
    for (const listener of this.#ofFacts) tell(listener);
  }
}

function wide(words: Uint32Array, at: number): number {
  return (words[at + 1] as number) * 2 ** 32 + (words[at] as number);
}

/** `performance.now()` at nanosecond 0 of the steady clock: by the fastest of some readings, since the thread may lose its processor in one. */
const ORIGIN_MS = ((): number => {
  const steadyMs = (): number => {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1e3 + nanoseconds / 1e6;
  };
  const readings = Array.from({ length: 8 }, () => {
    const [before, now, after] = [steadyMs(), performance.now(), steadyMs()];
    return { tookMs: after - before, originMs: now - (before + after) / 2 };
  });
  return readings.reduce((best, one) => (one.tookMs < best.tookMs ? one : best)).originMs;
})();

function msOf(nanoseconds: number): number {
  return ORIGIN_MS + nanoseconds / 1e6;
}
