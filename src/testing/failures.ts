// The failures on the streams of a test device, as core reads them.
import { TimelineSlot } from '../protocol/protocol.gen.js';
import type { FailurePart, FailureRecord } from '../protocol/reports.js';

export class Failures {
  readonly #words: Int32Array;
  readonly #byStream: Map<number, FailureRecord[]> = new Map();

  constructor(timeline: SharedArrayBuffer) {
    this.#words = new Int32Array(timeline);
  }

  of(stream: number, from: number, count: number): FailurePart {
    const list = this.#byStream.get(stream) ?? [];
    return { records: list.slice(from, from + count), rest: Math.max(0, list.length - from - count) };
  }

  /** An operation has failed. */
  add(stream: number, ticket: number, facts: Pick<FailureRecord, 'id' | 'status'> & Partial<FailureRecord>): void {
    const list = this.#byStream.get(stream) ?? [];
    this.#byStream.set(stream, list);
    list.push({
      first: ticket,
      last: ticket,
      driverStatus: 0,
      note: '',
      cause: 0,
      lostDevice: 0,
      requestedBytes: 0,
      freeBytes: 0,
      requested: 0,
      limit: 0,
      kernel: 0,
      ...facts,
    });
    Atomics.add(this.#words, (stream * TimelineSlot.BYTE_SIZE + TimelineSlot.FAILURES) / 4, 1);
  }
}

/** Of the ids of failures, which count in their order, the first; 0 if there is none. */
export function firstOf(failures: readonly number[]): number {
  const first = Math.min(...failures.filter((id) => id !== 0));
  return Number.isFinite(first) ? first : 0;
}
