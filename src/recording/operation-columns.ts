// The operations of one stream while they are recorded: a row of columns for each ticket, so that noting one makes no object.
// Thread: owner.
import { RecordedCopy } from '../protocol/protocol.gen.js';
import type { OperationKind } from '../core/base/snapshots.js';
import type { AwaitedPoint, Parked, RecordedOperation } from './recorded.js';

/** The numbers of a ticket. 0: not known. */
const ID = 0;
const BYTES = 1;
const SUBMITTED = 2;
const ISSUED = 3;
const START = 4;
const END = 5;
const TOGETHER = 6;
/** Of a launch its threads, of a copy the negative of 1 and its RecordedCopy. */
const SHAPE = 7;
const NUMBERS = 8;
const FIRST_TICKETS = 64;

export class OperationColumns {
  label: string | undefined;
  #first = 0;
  #length = 0;
  #numbers = new Float64Array(FIRST_TICKETS * NUMBERS);
  /** Undefined: a record that only orders others. */
  #kinds: (OperationKind | undefined)[] = [];
  /** Of the operation, and of its stream: streams use a slot one after the other. */
  #labels: (string | undefined)[] = [];
  #streams: (string | undefined)[] = [];
  readonly #parked: Map<number, Parked[]> = new Map();
  readonly #after: Map<number, AwaitedPoint> = new Map();
  /** The places of calls. */
  readonly #sites: Map<number, string> = new Map();
  #droppedTo = 0;

  /** Tickets with a row. */
  get length(): number {
    return this.#length;
  }

  /** The row of a ticket, which is made if there is none; -1 for one that was dropped. Later calls of `at` and `drop` move rows. */
  at(ticket: number): number {
    if (ticket <= this.#droppedTo) return -1;
    if (this.#length === 0) this.#first = ticket;
    // Submitted before the recording began, or by another thread.
    if (ticket < this.#first) this.#prepend(this.#first - ticket);
    const row = ticket - this.#first;
    while (row >= this.#length) this.#append();
    return row;
  }

  named(row: number, id: number, kind: OperationKind, label: string | undefined, bytes: number | undefined): void {
    if (row < 0) return;
    this.#kinds[row] = kind;
    this.#labels[row] = label;
    this.#streams[row] = this.label;
    this.#numbers[row * NUMBERS + ID] = id;
    this.#numbers[row * NUMBERS + BYTES] = bytes ?? NaN;
  }

  /** It waits for another stream, or for a function. */
  waits(row: number, after: AwaitedPoint | undefined): void {
    if (row < 0) return;
    this.#kinds[row] = after === undefined ? 'host' : 'wait';
    this.#streams[row] = this.label;
    if (after !== undefined) this.#after.set(this.#first + row, after);
  }

  /** `kind`: of the record, in case no operation names it. */
  submitted(row: number, ms: number, kind: OperationKind | undefined): void {
    this.#kinds[row] ??= kind;
    this.#numbers[row * NUMBERS + SUBMITTED] = ms;
  }

  launches(row: number, threads: number): void {
    this.#numbers[row * NUMBERS + SHAPE] = threads;
  }

  /** `route`: flags of RecordedCopy. */
  copies(row: number, route: number): void {
    this.#numbers[row * NUMBERS + SHAPE] = -1 - route;
  }

  /** From this place. Of several records the first names it. */
  called(ticket: number, at: string): void {
    if (ticket > this.#droppedTo && !this.#sites.has(ticket)) this.#sites.set(ticket, at);
  }

  parked(row: number, parked: Parked): void {
    const ticket = this.#first + row;
    const all = this.#parked.get(ticket);
    if (all === undefined) this.#parked.set(ticket, [parked]);
    else all.push(parked);
  }

  issued(row: number, ms: number, kind: OperationKind | undefined): void {
    this.#kinds[row] ??= kind;
    this.#numbers[row * NUMBERS + ISSUED] = ms;
  }

  ran(row: number, startMs: number, endMs: number, together: number): void {
    const at = row * NUMBERS;
    this.#numbers[at + START] = startMs;
    this.#numbers[at + END] = endMs;
    this.#numbers[at + TOGETHER] = together;
  }

  /** The oldest rows go. Returns how many. */
  drop(count: number): number {
    const gone = Math.min(count, this.#length);
    this.#numbers.copyWithin(0, gone * NUMBERS, this.#length * NUMBERS);
    this.#numbers.fill(0, (this.#length - gone) * NUMBERS, this.#length * NUMBERS);
    for (const column of [this.#kinds, this.#labels, this.#streams]) column.splice(0, gone);
    this.#first += gone;
    this.#length -= gone;
    this.#droppedTo = this.#first - 1;
    for (const map of [this.#parked, this.#after, this.#sites]) {
      for (const ticket of map.keys()) if (ticket < this.#first) map.delete(ticket);
    }
    return gone;
  }

  /** `device`: its name; `slot`: the stream's. */
  operations(device: string, slot: number): RecordedOperation[] {
    const found: RecordedOperation[] = [];
    for (let row = 0; row < this.#length; row++) {
      const kind = this.#kinds[row];
      if (kind === undefined) continue;
      const ticket = this.#first + row;
      const numberAt = (column: number): number => this.#numbers[row * NUMBERS + column] as number;
      const [id, bytes, submittedMs, issuedMs] = [numberAt(ID), numberAt(BYTES), numberAt(SUBMITTED), numberAt(ISSUED)];
      const [startMs, endMs, timedTogether] = [numberAt(START), numberAt(END), numberAt(TOGETHER)];
      const label = this.#labels[row];
      const parked = this.#parked.get(ticket);
      const after = this.#after.get(ticket);
      const at = this.#sites.get(ticket);
      found.push({
        device,
        stream: this.#streams[row] ?? this.label ?? `stream ${slot} of another thread`,
        slot,
        ticket,
        kind,
        ...(id > 0 && { id }),
        ...(label !== undefined && { label }),
        ...(id > 0 && !Number.isNaN(bytes) && { bytes }),
        ...shapeOf(numberAt(SHAPE)),
        ...(at !== undefined && { at }),
        ...(submittedMs > 0 && { submittedMs }),
        ...(parked && { parked }),
        ...(issuedMs > 0 && { issuedMs }),
        ...(endMs > 0 && { startMs, endMs }),
        ...(timedTogether > 1 && { timedTogether }),
        ...(after && { after }),
      });
    }
    return found;
  }

  #append(): void {
    this.#grow(this.#length + 1);
    this.#length++;
    this.#kinds.push(undefined);
    this.#labels.push(undefined);
    this.#streams.push(undefined);
  }

  #prepend(count: number): void {
    this.#grow(this.#length + count);
    this.#numbers.copyWithin(count * NUMBERS, 0, this.#length * NUMBERS);
    this.#numbers.fill(0, 0, count * NUMBERS);
    const empty = Array.from({ length: count }, () => undefined);
    this.#kinds = [...empty, ...this.#kinds];
    this.#labels = [...empty, ...this.#labels];
    this.#streams = [...empty, ...this.#streams];
    this.#first -= count;
    this.#length += count;
  }

  #grow(rows: number): void {
    if (rows * NUMBERS <= this.#numbers.length) return;
    const numbers = new Float64Array(Math.max(rows, this.#length * 2) * NUMBERS);
    numbers.set(this.#numbers);
    this.#numbers = numbers;
  }
}

function shapeOf(shape: number): Pick<RecordedOperation, 'direction' | 'isPageable' | 'threads'> {
  if (shape >= 0) return shape > 0 ? { threads: shape } : {};
  const bits = -1 - shape;
  const [isUpload, isDownload] = [(bits & RecordedCopy.FROM_HOST) !== 0, (bits & RecordedCopy.TO_HOST) !== 0];
  const near = (bits & RecordedCopy.BETWEEN_DEVICES) === 0 ? 'device' : 'peer';
  const direction = isUpload ? (isDownload ? 'host' : 'upload') : isDownload ? 'download' : near;
  return { direction, isPageable: (bits & RecordedCopy.PAGEABLE) !== 0 };
}
