// A part of the time before an operation began, with its reason.
import type { Reason } from './explained.js';
import type { RecordedOperation, RecordedSpan } from './recorded.js';

/** A part of the time before an operation. */
export interface Delay {
  readonly reason: Reason;
  readonly fromMs: number;
  readonly toMs: number;
  /** What was late: the operation, or one before it on its stream. */
  readonly late: RecordedOperation;
  /** The record that waited for another stream before it. */
  readonly wait?: RecordedOperation;
  readonly because?: RecordedOperation | RecordedSpan | undefined;
}
