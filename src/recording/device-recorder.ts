// The operations of one device: what its channel tells of each record, beside what this thread knows of its own.
// Thread: owner.
import { RecordedKind } from '../protocol/protocol.gen.js';
import { StateError, UnsupportedError } from '../core/base/errors.js';
import { performance } from '../core/base/timers.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { kindOfOpcode, type NamedFacts, type WaitNote } from '../core/timeline/operation-log.js';
import type { Timeline } from '../core/timeline/timeline.js';
import { DeviceFacts, type Fact, type FactListener } from './device-facts.js';
import { reasonOf } from './park-reasons.js';
import type { AwaitedPoint, Parked, RecordedOperation, RecordedSpan } from './recorded.js';

/** Facts of an operation: submitted, issued, ran, and a reason to wait. */
const FACTS_OF_OPERATION = 4;
/** The share of the operations that stays when there are too many, so that they go in larger parts. */
const KEPT_SHARE = 0.9;
const MOST_UNREAD = 2;

/** Grows while its facts arrive. */
type Growing = { -readonly [K in keyof RecordedOperation]?: K extends 'parked' ? Parked[] : RecordedOperation[K] };

/** A device has one recording of each thread. */
const recorded: WeakSet<DeviceCore> = new WeakSet();

export class DeviceRecorder implements FactListener {
  readonly core: DeviceCore;
  /** Operations that were dropped, since there were too many. */
  dropped = 0;
  readonly #most: number;
  readonly #facts: DeviceFacts;
  readonly #onSpan: (span: RecordedSpan) => void;
  /** By the stream's slot and the record's ticket. */
  readonly #streams: Map<number, Map<number, Growing>> = new Map();
  readonly #labels: Map<number, string> = new Map();
  /** By slot, the last ticket that was dropped. */
  readonly #droppedTo: Map<number, number> = new Map();
  #count = 0;

  /** Throws StateError if the device is being recorded already, and UnsupportedError for a device of `createTestDevice`. */
  constructor(core: DeviceCore, most: number, deviceTimes: boolean, onSpan: (span: RecordedSpan) => void) {
    this.#onSpan = onSpan;
    this.core = core;
    this.#most = most;
    this.#facts = DeviceFacts.of(core);
    if (!this.#facts.hasRecorder) {
      const message = `Device ${core.name} is a test device, of which no timeline can be recorded.`;
      throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'timelines', { device: core.name });
    }
    if (recorded.has(core)) {
      const message = `Device ${core.name} is being recorded already by this thread. Stop that recording first.`;
      throw new StateError('ERR_MILLRACE_STATE', message, { device: core.name });
    }
    recorded.add(core);
    for (const { slot, label } of core.timelines) this.#labels.set(slot, label);
    this.#facts.add(this, { most: most * FACTS_OF_OPERATION, deviceTimes });
  }

  named(timeline: Timeline, ticket: number, facts: NamedFacts): void {
    Object.assign(this.#own(timeline, ticket), facts);
  }

  waits(timeline: Timeline, { ticket, cause, otherTicket }: WaitNote, other: Timeline | undefined): void {
    const operation = this.#own(timeline, ticket);
    operation.kind = other === undefined ? 'host' : 'wait';
    if (other !== undefined) {
      operation.after = {
        device: other.log.device,
        stream: other.label,
        slot: other.slot,
        ticket: otherTicket,
        cause,
      } satisfies AwaitedPoint;
    }
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
    recorded.delete(this.core);
  }

  /** In the order of their tickets within each stream. Records that only order others are left out. */
  operations(): RecordedOperation[] {
    const found: RecordedOperation[] = [];
    for (const [slot, operations] of this.#streams) {
      const label = this.#labels.get(slot) ?? `stream ${slot} of another thread`;
      for (const [ticket, operation] of operations) {
        const { kind, stream = label } = operation;
        if (kind !== undefined) found.push({ ...operation, device: this.core.name, stream, slot, ticket, kind });
      }
    }
    return found;
  }

  lost(count: number): void {
    this.dropped += Math.ceil(count / FACTS_OF_OPERATION);
  }

  noted({ kind, detail, slot, ticket, beginMs, endMs }: Fact): void {
    if (ticket <= (this.#droppedTo.get(slot) ?? 0)) return;
    const operation = this.#at(slot, ticket);
    switch (kind) {
      case RecordedKind.SUBMITTED:
        operation.submittedMs = beginMs;
        this.#knowKind(operation, detail);
        break;
      case RecordedKind.PARKED:
        (operation.parked ??= []).push({ reason: reasonOf(detail), fromMs: beginMs });
        break;
      case RecordedKind.ISSUED:
        operation.issuedMs = beginMs;
        this.#knowKind(operation, detail);
        break;
      case RecordedKind.RAN:
        operation.startMs = beginMs;
        operation.endMs = endMs;
    }
  }

  /** Of a record that no operation names. */
  #knowKind(operation: Growing, opcode: number): void {
    const kind = kindOfOpcode(opcode);
    if (kind !== undefined) operation.kind ??= kind;
  }

  #own(timeline: Timeline, ticket: number): Growing {
    this.#labels.set(timeline.slot, timeline.label);
    const operation = this.#at(timeline.slot, ticket);
    operation.stream = timeline.label;
    return operation;
  }

  #at(slot: number, ticket: number): Growing {
    let operations = this.#streams.get(slot);
    if (operations === undefined) this.#streams.set(slot, (operations = new Map()));
    let operation = operations.get(ticket);
    if (operation === undefined) {
      operation = {};
      operations.set(ticket, operation);
      this.#count++;
      // A loop that submits without a turn of the event loop reads nothing.
      if (this.#count > MOST_UNREAD * this.#most) this.#drop();
    }
    return operation;
  }

  /** If there are too many: the oldest of each stream go. */
  #drop(): void {
    if (this.#count <= this.#most) return;
    const share = 1 - (this.#most * KEPT_SHARE) / this.#count;
    for (const [slot, operations] of this.#streams) {
      let left = Math.ceil(operations.size * share);
      for (const ticket of operations.keys()) {
        if (left-- === 0) break;
        operations.delete(ticket);
        this.#droppedTo.set(slot, Math.max(ticket, this.#droppedTo.get(slot) ?? 0));
        this.#count--;
        this.dropped++;
      }
    }
  }
}
