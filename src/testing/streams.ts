// The streams of a device of a test: each executes its records in order, an operation with a duration in virtual time.
// Any number of streams run at the same time.
// Thread: owner.
import { RecordHeader, TimelineSlot } from '../protocol/protocol.gen.js';

/** A submitted record. */
export interface Submitted {
  readonly opcode: number;
  readonly stream: number;
  readonly ticket: number;
  readonly view: DataView;
}

/** An operation that can begin: how long it takes, and what is done at its end. */
export interface Step {
  readonly ms: number;
  readonly end: () => void;
}

export interface MachineHost {
  /** Undefined while a dependency of the record is missing. */
  readonly step: (record: Submitted) => Step | undefined;
  readonly after: (ms: number, call: () => void) => () => void;
  /** Operations have finished. */
  readonly onProgress: () => void;
}

interface Queue {
  readonly records: Submitted[];
  isBusy: boolean;
}

export class TestStreams {
  readonly #host: MachineHost;
  readonly #queues: Map<number, Queue> = new Map();
  readonly #tickets: Map<number, number> = new Map();
  readonly #words: BigUint64Array;
  readonly #cancels: Set<() => void> = new Set();
  #isIssueDue = false;
  #isStopped = false;

  constructor(timeline: SharedArrayBuffer, host: MachineHost) {
    this.#words = new BigUint64Array(timeline);
    this.#host = host;
  }

  /** The ticket of the record. */
  submit(bytes: Uint8Array<ArrayBuffer>): number {
    const view = new DataView(bytes.buffer);
    const stream = view.getUint32(RecordHeader.STREAM, true);
    const ticket = this.lastTicket(stream) + 1;
    this.#tickets.set(stream, ticket);
    let queue = this.#queues.get(stream);
    if (queue === undefined) this.#queues.set(stream, (queue = { records: [], isBusy: false }));
    queue.records.push({ opcode: view.getUint16(RecordHeader.OPCODE, true), stream, ticket, view });
    this.issueWaitingSoon();
    return ticket;
  }

  lastTicket(stream: number): number {
    return this.#tickets.get(stream) ?? 0;
  }

  completed(stream: number): number {
    return Number(Atomics.load(this.#words, (stream * TimelineSlot.BYTE_SIZE + TimelineSlot.DEVICE_WORD) / 8));
  }

  /** Records that have not begun. */
  get pending(): number {
    let pending = 0;
    for (const { records, isBusy } of this.#queues.values()) pending += records.length - (isBusy ? 1 : 0);
    return pending;
  }

  /** Issues waiting records whose condition may now hold, in an action of the clock and never within the caller's call. */
  issueWaitingSoon(): void {
    if (this.#isIssueDue || this.#isStopped) return;
    this.#isIssueDue = true;
    this.#later(0, () => {
      this.#isIssueDue = false;
      this.#issueWaiting();
    });
  }

  /** Drops everything. */
  stop(): void {
    this.#isStopped = true;
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
    this.#queues.clear();
  }

  /** Runs records until no stream can continue. A later stream may end an earlier stream's wait, so each round checks all streams. */
  #issueWaiting(): void {
    let hasEnded = false;
    for (let isMoving = true; isMoving; ) {
      isMoving = false;
      for (const queue of this.#queues.values()) {
        while (this.#advance(queue)) isMoving = true;
      }
      hasEnded ||= isMoving;
    }
    if (hasEnded) this.#host.onProgress();
  }

  /** Ends the first record of a queue if it takes no time, and begins it if it takes some. Says whether the next one can be looked at. */
  #advance(queue: Queue): boolean {
    const [record] = queue.records;
    if (record === undefined || queue.isBusy) return false;
    const step = this.#host.step(record);
    if (step === undefined) return false;
    if (step.ms > 0) {
      queue.isBusy = true;
      this.#later(step.ms, () => {
        queue.isBusy = false;
        this.#end(queue, record, step);
        this.#issueWaiting();
        this.#host.onProgress();
      });
      return false;
    }
    this.#end(queue, record, step);
    return true;
  }

  #end(queue: Queue, { stream, ticket }: Submitted, step: Step): void {
    queue.records.shift();
    step.end();
    Atomics.store(this.#words, (stream * TimelineSlot.BYTE_SIZE + TimelineSlot.DEVICE_WORD) / 8, BigInt(ticket));
  }

  #later(ms: number, call: () => void): void {
    const cancel = this.#host.after(ms, () => {
      this.#cancels.delete(cancel);
      call();
    });
    this.#cancels.add(cancel);
  }
}
