// What a page of a timeline holds: plain data, in columns, because a hundred thousand operations are a few columns of small numbers, which compress
// well. Times are whole nanoseconds from `originMs` on; columns that say "delta" tell the difference to the entry before. Read by page/model.ts.

/** Slices that do not overlap, in their order. Texts are indices into `texts`. */
export interface PageSlices {
  /** Delta. */
  readonly starts: readonly number[];
  /** Negative: the device did not tell when it ran, and the start is when it was issued, or else submitted. */
  readonly lengths: readonly number[];
  readonly kinds: readonly number[];
  readonly labels: readonly number[];
  /** Of waits of the thread: the index of the wait, and the row and the index of the operation that it waited for. */
  readonly awaited?: readonly (readonly [wait: number, row: number, other: number])[];
  /** Of operations of a stream. */
  readonly operations?: PageOperations;
}

/** A number that is not known is null. */
export interface PageOperations {
  /** Delta. */
  readonly tickets: readonly number[];
  readonly ids: readonly (number | null)[];
  readonly bytes: readonly (number | null)[];
  /** Of copies: a text, and whether the host's end is pageable; null if that is not known, or neither end is the host's. */
  readonly directions: readonly (number | null)[];
  readonly pageable: readonly (boolean | null)[];
  readonly threads: readonly (number | null)[];
  /** Texts: the place of the call. */
  readonly sites: readonly (number | null)[];
  readonly timedTogether: readonly (number | null)[];
  /** How long before the start. */
  readonly submitted: readonly (number | null)[];
  readonly issued: readonly (number | null)[];
  /** Why an operation could not be issued at once, and when that began: for each, the index of the operation, a text, and a time. */
  readonly parked: readonly (readonly [operation: number, reason: number, fromNs: number])[];
  /** What it waited for: the index of the operation, the row and the index of the other one, and the cause. */
  readonly after: readonly (readonly [operation: number, row: number, other: number, cause: number])[];
}

export interface PageRow {
  /** 'host', or a device. */
  readonly group: string;
  readonly name: string;
  /** More than one where things overlap. A stream has one. */
  readonly levels: readonly PageSlices[];
}

export interface PageReason {
  readonly reason: string;
  readonly ms: number;
  readonly text: string;
  readonly remedy: string;
}

/** A time in which a stream ran nothing, and why: as `recording.gaps` tells it. */
export interface PageGap {
  readonly row: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly reasons: readonly PageReason[];
}

/** As `recording.summary` tells it. */
export interface PageCost extends PageReason {
  /** From 0 to 1. */
  readonly share: number;
  readonly count: number;
}

export interface PageData {
  /** When the recording began, in ISO 8601. */
  readonly recordedAt: string;
  /** From `originMs`, the earliest time of all: when the recording began and ended. */
  readonly startNs: number;
  readonly endNs: number;
  readonly dropped: number;
  readonly texts: readonly string[];
  readonly rows: readonly PageRow[];
  /** The longest ones. */
  readonly gaps: readonly PageGap[];
  readonly costs: readonly PageCost[];
  /** Devices that do not tell times, so that their gaps are not known. */
  readonly withoutTimes: readonly string[];
}
