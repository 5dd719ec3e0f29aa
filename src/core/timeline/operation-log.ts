// The operation at each ticket of a stream, for `inspect` and for the message of a wait that times out. A ticket takes eight bytes: kind and
// label in one word, id in the other. Words are in chunks, which are used again once everything in them has finished. Waits have a list of
// their own, because few records are waits.
//
// `submit` logs a record; the operation that the record was submitted for, if there is one, names it.
// Thread: owner.
import { Opcode } from '../../protocol/protocol.gen.js';
import type { OperationInfo, OperationKind, WaitCause } from '../base/snapshots.js';
import { type KeptOperation, KeptOperations } from './kept-operations.js';
import type { Timeline } from './timeline.js';
import { performance } from '../base/timers.js';

/** Kinds by their number in the log; 0 is for records without a kind, such as the creation of a stream. */
export const KINDS: readonly (OperationKind | undefined)[] = [
  undefined,
  'copy',
  'launch',
  'fill',
  'alloc',
  'free',
  'host',
  'graph',
  'record',
  'wait',
  'upload-graph',
  'external',
];
export const NUMBER_OF_KIND: Readonly<Record<OperationKind, number>> = Object.fromEntries(
  KINDS.flatMap((kind, number) => (kind === undefined ? [] : [[kind, number]])),
) as Record<OperationKind, number>;

/** The kind of a record that no operation names. */
const NUMBER_OF_OPCODE: Uint8Array<ArrayBuffer> = new Uint8Array(256);
/** What a record does that no operation names; undefined for records that only order others. */
export function kindOfOpcode(opcode: number): OperationKind | undefined {
  return KINDS[NUMBER_OF_OPCODE[opcode] as number];
}
for (const [kind, opcodes] of [
  ['alloc', [Opcode.ALLOC, Opcode.ADOPT]],
  ['free', [Opcode.FREE, Opcode.FREE_EVENT, Opcode.FREE_GRAPH]],
  ['fill', [Opcode.FILL, Opcode.FILL_STRIDED]],
  ['copy', [Opcode.COPY, Opcode.COPY_STRIDED, Opcode.COPY_BATCH]],
  ['launch', [Opcode.LAUNCH]],
  ['graph', [Opcode.LAUNCH_GRAPH]],
  ['upload-graph', [Opcode.UPLOAD_GRAPH]],
  ['wait', [Opcode.WAIT, Opcode.WAIT_EVENT]],
  ['record', [Opcode.RECORD_EVENT]],
  ['host', [Opcode.HOLD]],
  ['external', [Opcode.EXTERNAL]],
] as const)
  for (const opcode of opcodes) NUMBER_OF_OPCODE[opcode] = NUMBER_OF_KIND[kind];

/** The first chunk of a stream takes 1 KiB, each further one 32 KiB. */
const FIRST_TICKETS = 128;
const CHUNK_TICKETS = 4096;
const KIND_BITS = 8;
const KIND_MASK = 0x7f;
/** Set when an operation names the record; the records that the library adds on its own have no name. */
const NAMED = 0x80;
/** A label is compared with at most this many labels of its chunk: loops use one or two. */
const LABELS_COMPARED = 4;

/** Ids grow in the order of submission, over all devices of this thread. */
let lastId = 0;

/** An id for an operation without a record. */
export function takeId(): number {
  return ++lastId;
}

/** The id of the record that was submitted last. The next record has the id after it. */
export function latestId(): number {
  return lastId;
}

interface Chunk {
  first: number;
  readonly tickets: number;
  readonly words: Uint32Array<ArrayBuffer>;
  /** Label 1 and so on; 0 is none. */
  labels: string[];
  /** The bytes that an operation covers, by ticket. Launches have none, and many streams do nothing else. */
  bytes: Float64Array<ArrayBuffer> | undefined;
}

const NO_CHUNK: Chunk = { first: 0, tickets: 0, words: new Uint32Array(0), labels: [], bytes: undefined };
const KINDS_WITH_BYTES: readonly (OperationKind | undefined)[] = ['copy', 'fill', 'alloc'];

/** An operation that is not over: the kept object, or what the log has of it. */
export interface PendingOperation {
  readonly ticket: number;
  readonly operation: KeptOperation | OperationInfo;
}

/** A record that waits, and what it waits for. The reference is weak, so a wait keeps no closed stream and no device alive. */
export interface WaitNote {
  readonly ticket: number;
  readonly cause: WaitCause;
  /** The stream and ticket it waits for, unless it waits for a function. */
  readonly other: WeakRef<Timeline> | undefined;
  readonly otherTicket: number;
  /** The wait began at this `performance.now()` at the earliest. */
  atMs: number;
  /** Nothing was pending before it when it was submitted. */
  readonly wasNext: boolean;
}

/** Is told of the operations of a device while its timeline is recorded. */
export interface LogTap {
  /** The record, which the encoder's block has, was submitted. What names it follows. */
  submitted(timeline: Timeline, ticket: number, opcode: number): void;
  /** What the call of an operation says of it. */
  named(timeline: Timeline, ticket: number, id: number, kind: OperationKind, label: string | undefined, bytes: number | undefined): void;
  waits(timeline: Timeline, note: WaitNote, other: Timeline | undefined): void;
  /** The host waits for the ticket of a stream. */
  waited(wait: Promise<void>, timeline: Timeline, ticket: number): void;
  /** All operations have finished, and the device closes when this has resolved. */
  ending(): Promise<void>;
}

export class OperationLog {
  readonly device: string;
  /** Operations that have more to tell than the words of the log hold. */
  readonly kept: KeptOperations = new KeptOperations();
  readonly #timeline: Timeline;
  readonly #weak: WeakRef<Timeline>;
  /** All chunks but the newest, oldest first. */
  #older: Chunk[] = [];
  #chunk: Chunk = NO_CHUNK;
  #words: Uint32Array<ArrayBuffer> = NO_CHUNK.words;
  #first = 0;
  #end = 0;
  #labels: string[] = NO_CHUNK.labels;
  /** Sorted by ticket, from `waitsHead` on. */
  #waits: WaitNote[] = [];
  #waitsHead = 0;
  #lookedAtCompleted = -1;
  #reachedMs = 0;
  #tap: LogTap | undefined;

  /** `device`: the name of the stream's device. */
  constructor(timeline: Timeline, device: string) {
    this.#timeline = timeline;
    this.device = device;
    this.#weak = new WeakRef(timeline);
  }

  /** A record was submitted. */
  add(ticket: number, opcode: number): void {
    if (ticket >= this.#end) this.#grow(ticket);
    const at = (ticket - this.#first) * 2;
    const words = this.#words;
    words[at] = NUMBER_OF_OPCODE[opcode] as number;
    words[at + 1] = ++lastId;
  }

  /** The record belongs to an operation, whose id is returned. It is the newest record, except for others of the same operation. */
  name(ticket: number, kind: OperationKind, label: string | undefined, bytes: number | undefined): number {
    if (ticket < this.#first) return this.#nameOlder(ticket, kind, label, bytes);
    const at = (ticket - this.#first) * 2;
    const words = this.#words;
    // The kind of most records is known, and looking it up by name is half the cost.
    words[at] = (words[at] || NUMBER_OF_KIND[kind]) | NAMED | (label === undefined ? 0 : numberOf(label, this.#labels) << KIND_BITS);
    if (bytes !== undefined) noteBytes(this.#chunk, ticket, bytes);
    return wholeId(words[at + 1] as number);
  }

  /**
   * From now on, tells the tap of each operation; undefined: nobody. Functions that do this stand before the methods, so that a log without a
   * tap has no check.
   */
  tell(tap: LogTap | undefined): void {
    this.#tap = tap;
    const own = this as Partial<Pick<OperationLog, 'add' | 'name' | 'wait'>>;
    if (tap !== undefined) {
      // The same functions for all logs, so that calls of them stay fast.
      own.add = OperationLog.#addAndTell;
      own.name = OperationLog.#nameAndTell;
      own.wait = OperationLog.#waitAndTell;
      return;
    }
    // The last first: V8 makes a slow dictionary of an object that loses another one.
    delete own.wait;
    delete own.name;
    delete own.add;
  }

  static readonly #addAndTell = function (this: OperationLog, ...[ticket, opcode]: Parameters<OperationLog['add']>): void {
    OperationLog.prototype.add.call(this, ticket, opcode);
    this.#tap?.submitted(this.#timeline, ticket, opcode);
  };

  static readonly #nameAndTell = function (this: OperationLog, ...[ticket, kind, label, bytes]: Parameters<OperationLog['name']>): number {
    const id = OperationLog.prototype.name.call(this, ticket, kind, label, bytes);
    this.#tap?.named(this.#timeline, ticket, id, kind, label, bytes);
    return id;
  };

  static readonly #waitAndTell = function (
    this: OperationLog,
    ...[ticket, cause, other, otherTicket]: Parameters<OperationLog['wait']>
  ): WaitNote {
    const note = OperationLog.prototype.wait.call(this, ticket, cause, other, otherTicket);
    this.#tap?.waits(this.#timeline, note, other);
    return note;
  };

  /** The record that was just submitted waits for a ticket of another stream, or for a function if `other` is undefined. */
  wait(ticket: number, cause: WaitCause, other: Timeline | undefined, otherTicket: number): WaitNote {
    this.#dropWaits();
    const wasNext = this.#timeline.hasReached(ticket - 1);
    const note = { ticket, cause, other: other && other.log.#weak, otherTicket, atMs: performance.now(), wasNext };
    this.#waits.push(note);
    return note;
  }

  /** The operation at a ticket that has not finished. */
  at(ticket: number): OperationInfo | undefined {
    const chunk = this.#chunkOf(ticket);
    return chunk && this.#infoAt(chunk, ticket);
  }

  /**
   * The operations that are not over, in the order of submission. One that has finished on the device counts as not over while a host
   * function or a copy to the host before it is not, as its promise waits for that.
   */
  pending(): readonly PendingOperation[] {
    const kept = this.kept.list();
    const found: PendingOperation[] = [];
    const { last } = this.#timeline;
    const over = this.#over();
    let at = 0;
    // The device goes on: it may have finished these since they were listed.
    for (let own = kept[at]; own !== undefined && own.ticket <= over; own = kept[++at]);
    for (let ticket = over + 1; ticket <= last; ticket++) {
      const chunk = this.#chunkOf(ticket);
      const isNamed = chunk !== undefined && ((chunk.words[(ticket - chunk.first) * 2] as number) & NAMED) !== 0;
      const operation = isNamed ? this.#infoAt(chunk, ticket) : undefined;
      if (operation !== undefined && kept[at]?.operation.id !== operation.id) found.push({ ticket, operation });
      for (let own = kept[at]; own !== undefined && own.ticket <= ticket; own = kept[++at]) found.push(own);
    }
    return found;
  }

  /** The waits up to a ticket that are not over, and the streams they are for. */
  *waits(until: number): Iterable<{ readonly note: WaitNote; readonly other: Timeline | undefined }> {
    this.#dropWaits();
    for (let at = this.#waitsHead; at < this.#waits.length; at++) {
      const note = this.#waits[at] as WaitNote;
      if (note.ticket > until) return;
      const other = note.other?.deref();
      const isOver = note.other !== undefined && (other === undefined || other.hasReached(note.otherTicket));
      if (!isOver) yield { note, other };
    }
  }

  /** The `performance.now()` at which the stream was first seen at its present ticket. Drops what has finished. Called now and then. */
  look(): number {
    const { completed } = this.#timeline;
    if (completed !== this.#lookedAtCompleted) {
      this.#lookedAtCompleted = completed;
      this.#reachedMs = performance.now();
      this.#dropWaits();
      this.#drop(this.#over());
    }
    return this.#reachedMs;
  }

  /** The stream is closed. */
  clear(): void {
    this.#older = [];
    this.#use(NO_CHUNK);
    this.#waits = [];
    this.#waitsHead = 0;
    this.kept.clear();
  }

  /** Everything up to this ticket is over. */
  #over(): number {
    const { completed } = this.#timeline;
    const { first } = this.kept;
    return first === undefined ? completed : Math.min(completed, first.ticket - 1);
  }

  #infoAt(chunk: Chunk, ticket: number): OperationInfo | undefined {
    const at = (ticket - chunk.first) * 2;
    const [word, low] = [chunk.words[at] as number, chunk.words[at + 1] as number];
    const kind = KINDS[word & KIND_MASK];
    const label = chunk.labels[(word >>> KIND_BITS) - 1];
    const bytes = KINDS_WITH_BYTES.includes(kind) && (word & NAMED) !== 0 ? chunk.bytes?.[ticket - chunk.first] : undefined;
    const { device } = this;
    const { label: stream } = this.#timeline;
    return (
      kind && {
        id: wholeId(low),
        kind,
        ...(label === undefined ? {} : { label }),
        ...(bytes === undefined ? {} : { bytes }),
        stream,
        device,
      }
    );
  }

  #grow(ticket: number): void {
    if (this.#chunk !== NO_CHUNK) this.#older.push(this.#chunk);
    // A chunk whose tickets are over is used again. With much pending there is none, and one comparison finds that.
    const spare = this.#drop(Math.min(this.#over(), ticket - 1)).findLast((chunk) => chunk.tickets === CHUNK_TICKETS);
    if (spare === undefined) {
      const tickets = this.#chunk === NO_CHUNK ? FIRST_TICKETS : CHUNK_TICKETS;
      this.#use({ first: ticket, tickets, words: new Uint32Array(tickets * 2), labels: [], bytes: undefined });
    } else {
      spare.first = ticket;
      spare.labels = [];
      this.#use(spare);
    }
  }

  #use(chunk: Chunk): void {
    this.#chunk = chunk;
    this.#words = chunk.words;
    this.#first = chunk.first;
    this.#end = chunk.first + chunk.tickets;
    this.#labels = chunk.labels;
  }

  /** Removes and returns the older chunks whose tickets are over. */
  #drop(completed: number): readonly Chunk[] {
    let over = 0;
    for (let chunk = this.#older[0]; chunk !== undefined && lastOf(chunk) <= completed; chunk = this.#older[over]) over++;
    return over === 0 ? NO_CHUNKS : this.#older.splice(0, over);
  }

  #dropWaits(): void {
    const { completed } = this.#timeline;
    const waits = this.#waits;
    while (this.#waitsHead < waits.length && (waits[this.#waitsHead] as WaitNote).ticket <= completed) this.#waitsHead++;
    if (this.#waitsHead > 0 && (this.#waitsHead === waits.length || this.#waitsHead > 1024)) {
      this.#waits = waits.slice(this.#waitsHead);
      this.#waitsHead = 0;
    }
  }

  #nameOlder(ticket: number, kind: OperationKind, label: string | undefined, bytes: number | undefined): number {
    const chunk = this.#chunkOf(ticket);
    // The ticket has finished, and its chunk is in use for others.
    if (chunk === undefined) return takeId();
    const at = (ticket - chunk.first) * 2;
    if (bytes !== undefined) noteBytes(chunk, ticket, bytes);
    chunk.words[at] = NUMBER_OF_KIND[kind] | NAMED | (label === undefined ? 0 : numberOf(label, chunk.labels) << KIND_BITS);
    return wholeId(chunk.words[at + 1] as number);
  }

  #chunkOf(ticket: number): Chunk | undefined {
    const chunk = ticket >= this.#first ? this.#chunk : this.#older.findLast(({ first }) => first <= ticket);
    return chunk !== undefined && ticket <= Math.min(lastOf(chunk), this.#timeline.last) ? chunk : undefined;
  }
}

const NO_CHUNKS: readonly Chunk[] = [];

function lastOf({ first, tickets }: Chunk): number {
  return first + tickets - 1;
}

function noteBytes(chunk: Chunk, ticket: number, bytes: number): void {
  chunk.bytes ??= new Float64Array(chunk.tickets);
  chunk.bytes[ticket - chunk.first] = bytes;
}

function numberOf(label: string, labels: string[]): number {
  const compared = Math.min(labels.length, LABELS_COMPARED);
  for (let at = 0; at < compared; at++) if (labels[at] === label) return at + 1;
  return labels.push(label);
}

/** The whole id from its low half: a pending id is less than 2^32 behind the last one. */
function wholeId(low: number): number {
  return lastId - ((lastId - low) >>> 0);
}
