// The operations of one device that ended within the last seconds, for the live view. Bounded, whatever the device does.
// Thread: owner.
import { DeviceTimes, RecordedKind } from '../protocol/protocol.gen.js';
import type { OperationKind } from '../core/base/snapshots.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { kindOfOpcode, type WaitNote } from '../core/timeline/operation-log.js';
import type { Timeline } from '../core/timeline/timeline.js';
import { DeviceFacts, type Fact, type FactListener } from './device-facts.js';
import { reasonOf } from './park-reasons.js';

/** Slices that are kept of a device. A screen shows fewer. */
const MOST_KEPT = 20_000;
/** Operations of a stream that wait for their end and have labels. */
const MOST_NAMED = 4096;
/** Facts between two reads, four for an operation. */
const MOST_FACTS = 100_000;
/** Ends that count for the operations per second. */
const RATE_MS = 1000;

/** An operation, or several of one stream, one after the other. */
export interface LiveSlice {
  readonly stream: string;
  readonly kind: OperationKind;
  readonly label: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly count: number;
}

interface Named {
  readonly kind: OperationKind;
  readonly label?: string | undefined;
  /** It could not be issued at once. */
  parked?: { readonly reason: string; readonly fromMs: number };
}

export class LiveOperations implements FactListener {
  readonly core: DeviceCore;
  readonly #keptMs: number;
  readonly #facts: DeviceFacts;
  readonly #named: Map<number, Map<number, Named>> = new Map();
  readonly #labels: Map<number, string> = new Map();
  /** By slot, the last ticket that ran. */
  readonly #ranTo: Map<number, number> = new Map();
  #slices: LiveSlice[] = [];
  #fresh: LiveSlice[] = [];
  /** Of each read with ends: when it was, and how many. */
  #ends: { readonly atMs: number; readonly count: number }[] = [];
  #ended = 0;

  /** Undefined for a device that tells nothing, one of `createTestDevice`. */
  static of(core: DeviceCore, keptMs: number, deviceTimes: boolean): LiveOperations | undefined {
    return DeviceFacts.of(core).hasRecorder ? new LiveOperations(core, keptMs, deviceTimes) : undefined;
  }

  private constructor(core: DeviceCore, keptMs: number, deviceTimes: boolean) {
    this.core = core;
    this.#keptMs = keptMs;
    this.#facts = DeviceFacts.of(core);
    for (const { slot, label } of core.timelines) this.#labels.set(slot, label);
    this.#facts.add(this, { most: MOST_FACTS, times: deviceTimes ? DeviceTimes.SHARED : DeviceTimes.NONE });
  }

  end(): void {
    this.#facts.delete(this);
  }

  /** Call it every few milliseconds. */
  read(nowMs: number): void {
    this.#facts.read();
    if (this.#ended > 0) this.#ends.push({ atMs: nowMs, count: this.#ended });
    this.#ended = 0;
    while (this.#ends.length > 0 && this.#ends[0]!.atMs < nowMs - RATE_MS) this.#ends.shift();
    const first = this.#slices.findIndex(({ endMs }) => endMs >= nowMs - this.#keptMs);
    const old = first < 0 ? this.#slices.length : first;
    const over = Math.max(old, this.#slices.length - MOST_KEPT);
    if (over > 0) this.#slices = this.#slices.slice(over);
    // Nobody took them.
    if (this.#fresh.length > MOST_KEPT) this.#fresh = this.#fresh.slice(-MOST_KEPT);
  }

  get operationsPerSecond(): number {
    return (this.#ends.reduce((sum, { count }) => sum + count, 0) * 1000) / RATE_MS;
  }

  /** All that is kept. */
  get slices(): readonly LiveSlice[] {
    return this.#slices;
  }

  /** What has ended since the last call. */
  takeFresh(): readonly LiveSlice[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    return fresh;
  }

  named(timeline: Timeline, ticket: number, _id: number, kind: OperationKind, label: string | undefined): void {
    this.#name(timeline, ticket, { kind, label });
  }

  waits(timeline: Timeline, { ticket }: WaitNote, other: Timeline | undefined): void {
    if (other !== undefined) this.#name(timeline, ticket, { kind: 'wait', label: `wait for ${other.label}` });
  }

  lost(): void {
    // The picture has fewer operations than the device.
  }

  noted({ kind, detail, slot, ticket, beginMs, endMs }: Fact): void {
    if (kind === RecordedKind.PARKED) {
      const named = this.#named.get(slot)?.get(ticket);
      if (named !== undefined) named.parked ??= { reason: reasonOf(detail), fromMs: beginMs };
    } else if (kind === RecordedKind.SUBMITTED || kind === RecordedKind.ISSUED) {
      // Of another thread's operation. Threads note side by side: it may have run.
      const known = kindOfOpcode(detail);
      const named = this.#ofSlot(slot);
      if (known === undefined || named.has(ticket) || ticket <= (this.#ranTo.get(slot) ?? 0)) return;
      // The oldest have ended without a word, as those do that began before the clocks were compared.
      if (named.size >= MOST_NAMED) named.delete(named.keys().next().value!);
      named.set(ticket, { kind: known });
    } else if (kind === RecordedKind.RAN) {
      this.#ranTo.set(slot, Math.max(ticket, this.#ranTo.get(slot) ?? 0));
      const named = this.#named.get(slot);
      const one = named?.get(ticket);
      if (one === undefined) return;
      named!.delete(ticket);
      const stream = this.#labels.get(slot) ?? `stream ${slot} of another thread`;
      const { kind: what, label = what, parked } = one;
      // A function that is held is what its stream does meanwhile.
      if (parked !== undefined && parked.fromMs < beginMs) {
        const waited = parked.reason === 'host' ? ({ kind: 'host', label } as const) : ({ kind: 'wait', label: parked.reason } as const);
        this.#add({ stream, ...waited, startMs: parked.fromMs, endMs: beginMs, count: 1 });
      }
      this.#add({ stream, kind: what, label, startMs: beginMs, endMs, count: 1 });
      this.#ended++;
    }
  }

  #add(slice: LiveSlice): void {
    this.#slices.push(slice);
    this.#fresh.push(slice);
  }

  #name(timeline: Timeline, ticket: number, named: Named): void {
    this.#labels.set(timeline.slot, timeline.label);
    const own = this.#ofSlot(timeline.slot);
    // Those that end first keep their labels.
    if (own.size < MOST_NAMED) own.set(ticket, named);
  }

  #ofSlot(slot: number): Map<number, Named> {
    let named = this.#named.get(slot);
    if (named === undefined) this.#named.set(slot, (named = new Map()));
    return named;
  }
}

/** No more than `most` for each stream: of a longer list, neighbours are one slice. */
export function compacted(slices: readonly LiveSlice[], most: number): Map<string, LiveSlice[]> {
  const streams: Map<string, LiveSlice[]> = new Map();
  for (const slice of slices) {
    const list = streams.get(slice.stream);
    if (list === undefined) streams.set(slice.stream, [slice]);
    else list.push(slice);
  }
  for (const [stream, list] of streams) {
    if (list.length <= most) continue;
    const size = Math.ceil(list.length / most);
    const parts = Array.from({ length: Math.ceil(list.length / size) }, (_, n) => list.slice(n * size, (n + 1) * size));
    streams.set(stream, parts.map(merged));
  }
  return streams;
}

function merged(part: readonly LiveSlice[]): LiveSlice {
  const first = part[0]!;
  const isSame = part.every(({ label }) => label === first.label);
  const endMs = Math.max(...part.map((slice) => slice.endMs));
  return { ...first, label: isSame ? first.label : 'several', endMs, count: part.length };
}
