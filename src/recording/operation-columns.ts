// The operations of one stream while they are recorded: a row of columns for each ticket, so that noting one makes no object.
// Thread: owner.
import { RecordedCopy } from '../protocol/protocol.gen.js';
import type { OperationKind } from '../core/base/snapshots.js';
import { KINDS, NUMBER_OF_KIND } from '../core/timeline/operation-log.js';
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
/** Numbers of a kind, and of the labels of the operation and of its stream: streams use a slot one after the other. */
const KIND = 8;
const LABEL = 9;
const STREAM = 10;
const NUMBERS = 11;
const FIRST_TICKETS = 64;

/** Texts by numbers. 0: none. */
class Numbered {
  readonly #texts: (string | undefined)[] = [undefined];
  readonly #numbers: Map<string, number> = new Map();
  #last: string | undefined;
  #lastNumber = 0;

  of(text: string | undefined): number {
    if (text === this.#last) return this.#lastNumber;
    let number = text === undefined ? 0 : this.#numbers.get(text);
    if (number === undefined) this.#numbers.set(text as string, (number = this.#texts.push(text) - 1));
    [this.#last, this.#lastNumber] = [text, number];
    return number;
  }

  at(number: number): string | undefined {
    return this.#texts[number];
  }

  get count(): number {
    return this.#texts.length;
  }
}

export class OperationColumns {
  label: string | undefined;
  #first = 0;
  #length = 0;
  #numbers = new Float64Array(FIRST_TICKETS * NUMBERS);
  #texts = new Numbered();
  /** The label that the stream had last, and its number. */
  #streamLabel: string | undefined;
  #stream = 0;
  readonly #parked: Map<number, Parked[]> = new Map();
  readonly #after: Map<number, AwaitedPoint> = new Map();
  /** The places of calls. */
  readonly #sites: Map<number, string> = new Map();
  #droppedTo = 0;

  /** Tickets with a row. */
  get length(): number {
    return this.#length;
  }

  /** How many labels it has. */
  get texts(): number {
    return this.#texts.count;
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
    const numbers = this.#numbers;
    const at = row * NUMBERS;
    numbers[at + KIND] = NUMBER_OF_KIND[kind];
    numbers[at + LABEL] = this.#texts.of(label);
    numbers[at + STREAM] = this.#ofStream();
    numbers[at + ID] = id;
    numbers[at + BYTES] = bytes ?? NaN;
  }

  /** It waits for another stream, or for a function. */
  waits(row: number, after: AwaitedPoint | undefined): void {
    if (row < 0) return;
    this.#numbers[row * NUMBERS + KIND] = NUMBER_OF_KIND[after === undefined ? 'host' : 'wait'];
    this.#numbers[row * NUMBERS + STREAM] = this.#ofStream();
    if (after !== undefined) this.#after.set(this.#first + row, after);
  }

  /** `kind`: of the record, in case no operation names it. */
  submitted(row: number, ms: number, kind: OperationKind | undefined): void {
    this.#isOf(row, kind);
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
    this.#isOf(row, kind);
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
    this.#first += gone;
    this.#length -= gone;
    this.#droppedTo = this.#first - 1;
    if (this.#texts.count > 2 * this.#length) this.#forgetTexts();
    for (const map of [this.#parked, this.#after, this.#sites]) {
      for (const ticket of map.keys()) if (ticket < this.#first) map.delete(ticket);
    }
    return gone;
  }

  /** `device`: its name; `slot`: the stream's. */
  operations(device: string, slot: number): RecordedOperation[] {
    const found: RecordedOperation[] = [];
    for (let row = 0; row < this.#length; row++) {
      const numberAt = (column: number): number => this.#numbers[row * NUMBERS + column] as number;
      const kind = KINDS[numberAt(KIND)];
      // A record that only orders others.
      if (kind === undefined) continue;
      const ticket = this.#first + row;
      const [id, bytes, submittedMs, issuedMs] = [numberAt(ID), numberAt(BYTES), numberAt(SUBMITTED), numberAt(ISSUED)];
      const [startMs, endMs, timedTogether] = [numberAt(START), numberAt(END), numberAt(TOGETHER)];
      const label = this.#texts.at(numberAt(LABEL));
      const parked = this.#parked.get(ticket);
      const after = this.#after.get(ticket);
      const at = this.#sites.get(ticket);
      found.push({
        device,
        stream: this.#texts.at(numberAt(STREAM)) ?? this.label ?? `stream ${slot} of another thread`,
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

  /** Unless an operation names the record. */
  #isOf(row: number, kind: OperationKind | undefined): void {
    if (kind !== undefined) this.#numbers[row * NUMBERS + KIND] ||= NUMBER_OF_KIND[kind];
  }

  #ofStream(): number {
    if (this.label !== this.#streamLabel) [this.#streamLabel, this.#stream] = [this.label, this.#texts.of(this.label)];
    return this.#stream;
  }

  /** Those that no row has any more. */
  #forgetTexts(): void {
    const texts = new Numbered();
    for (let row = 0; row < this.#length; row++)
      for (const at of [row * NUMBERS + LABEL, row * NUMBERS + STREAM])
        this.#numbers[at] = texts.of(this.#texts.at(this.#numbers[at] as number));
    this.#texts = texts;
    this.#streamLabel = undefined;
    this.#stream = 0;
  }

  #append(): void {
    this.#grow(this.#length + 1);
    this.#length++;
  }

  #prepend(count: number): void {
    this.#grow(this.#length + count);
    this.#numbers.copyWithin(count * NUMBERS, 0, this.#length * NUMBERS);
    this.#numbers.fill(0, 0, count * NUMBERS);
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
