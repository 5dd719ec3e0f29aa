// The operations of one device: what its channel tells of each record, beside what this thread knows of its own.
// Thread: owner.
import { type DeviceTimes, Opcode, RecordedKind } from '../protocol/protocol.gen.js';
import { UnsupportedError } from '../core/base/errors.js';
import { callSite } from '../core/base/call-site.js';
import { performance } from '../core/base/timers.js';
import type { OperationKind } from '../core/base/snapshots.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { kindOfOpcode, type WaitNote } from '../core/timeline/operation-log.js';
import type { Timeline } from '../core/timeline/timeline.js';
import { DeviceFacts, type Fact, type FactListener } from './device-facts.js';
import { reasonOf } from './park-reasons.js';
import { OperationColumns } from './operation-columns.js';
import type { AwaitedPoint, RecordedOperation, RecordedSpan } from './recorded.js';

/** Facts of an operation: submitted, issued, ran, and a reason to wait. */
const FACTS_OF_OPERATION = 4;
/** The share of the operations that stays when there are too many, so that they go in larger parts. */
const KEPT_SHARE = 0.9;

/** Of the library, between a call and this class. */
const FRAMES = 12;

export interface RecorderOptions {
  readonly maxEvents: number;
  readonly times: DeviceTimes;
  readonly callSites: boolean;
}

export class DeviceRecorder implements FactListener {
  readonly core: DeviceCore;
  /** Operations that were dropped, since there were too many. */
  dropped = 0;
  readonly #most: number;
  readonly #hasCallSites: boolean;
  readonly #facts: DeviceFacts;
  readonly #onSpan: (span: RecordedSpan) => void;
  /** By the stream's slot. Streams use a slot one after the other. */
  readonly #streams: OperationColumns[] = [];
  /** Operations of this thread since the last reading. */
  #unread = 0;

  /** Throws UnsupportedError for a device of `createTestDevice`. */
  constructor(core: DeviceCore, opts: RecorderOptions, onSpan: (span: RecordedSpan) => void) {
    const { maxEvents: most, times, callSites } = opts;
    this.#hasCallSites = callSites;
    this.#onSpan = onSpan;
    this.core = core;
    this.#most = most;
    this.#facts = DeviceFacts.of(core);
    if (!this.#facts.hasRecorder) {
      const message = `Device ${core.name} is a test device, of which no timeline can be recorded.`;
      throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'timelines', { device: core.name });
    }
    for (const { slot, label } of core.timelines) this.#stream(slot).label = label;
    this.#facts.add(this, { most: most * FACTS_OF_OPERATION, times });
  }

  named(timeline: Timeline, ticket: number, id: number, kind: OperationKind, label: string | undefined, bytes: number | undefined): void {
    const stream = this.#own(timeline);
    stream.named(stream.at(ticket), id, kind, label, bytes);
    if (this.#hasCallSites) stream.called(ticket, callSite(FRAMES));
    // A loop that submits without a turn of the event loop reads nothing.
    if (++this.#unread > this.#most) this.#drop();
  }

  waits(timeline: Timeline, { ticket, cause, otherTicket }: WaitNote, other: Timeline | undefined): void {
    const after: AwaitedPoint | undefined = other && {
      device: other.log.device,
      stream: other.label,
      slot: other.slot,
      ticket: otherTicket,
      cause,
    };
    const stream = this.#own(timeline);
    stream.waits(stream.at(ticket), after);
    if (this.#hasCallSites) stream.called(ticket, callSite(FRAMES));
  }

  waited(wait: Promise<void>, timeline: Timeline, ticket: number): void {
    const startMs = performance.now();
    const { kind, label } = timeline.log.at(ticket) ?? {};
    const name = `wait for ${label ?? kind ?? 'an operation'} on ${timeline.label}`;
    const device = this.core.name;
    const awaited = { device, stream: timeline.label, slot: timeline.slot, ticket };
    const tell = (): void => this.#onSpan({ kind: 'wait', name, device, startMs, endMs: performance.now(), awaited });
    wait.then(tell, tell);
  }

  /** Reads what the device knows of everything that has finished. */
  ending(): Promise<void> {
    return this.#facts.ending();
  }

  /** Reads what the device has told since the last call. */
  read(): void {
    this.#facts.read();
    this.#drop();
  }

  /** Ends it. The last facts were read before. */
  end(): void {
    this.#facts.delete(this);
  }

  /** In the order of their tickets within each stream. Records that only order others are left out. */
  operations(): RecordedOperation[] {
    return this.#streams.flatMap((stream, slot) => stream.operations(this.core.name, slot));
  }

  lost(count: number): void {
    this.dropped += Math.ceil(count / FACTS_OF_OPERATION);
  }

  noted({ kind, detail, slot, ticket, beginMs, endMs, end }: Fact): void {
    const stream = this.#stream(slot);
    const row = stream.at(ticket);
    if (row < 0) return;
    switch (kind) {
      case RecordedKind.SUBMITTED:
        stream.submitted(row, beginMs, kindOfOpcode(detail));
        if (detail === Opcode.LAUNCH) stream.launches(row, end);
        else if (kindOfOpcode(detail) === 'copy') stream.copies(row, end);
        break;
      case RecordedKind.PARKED:
        stream.parked(row, { reason: reasonOf(detail), fromMs: beginMs });
        break;
      case RecordedKind.ISSUED:
        stream.issued(row, beginMs, kindOfOpcode(detail));
        break;
      case RecordedKind.RAN:
        stream.ran(row, beginMs, endMs, detail);
    }
  }

  #stream(slot: number): OperationColumns {
    return (this.#streams[slot] ??= new OperationColumns());
  }

  #own(timeline: Timeline): OperationColumns {
    const stream = this.#stream(timeline.slot);
    stream.label = timeline.label;
    return stream;
  }

  /** If there are too many: the oldest of each stream go. */
  #drop(): void {
    this.#unread = 0;
    let count = 0;
    for (const stream of this.#streams) count += stream?.length ?? 0;
    if (count <= this.#most) return;
    const share = 1 - (this.#most * KEPT_SHARE) / count;
    for (const stream of this.#streams) {
      if (stream !== undefined) this.dropped += stream.drop(Math.ceil(stream.length * share));
    }
  }
}
