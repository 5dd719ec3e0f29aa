// What a recording has: plain data. Times are milliseconds of `performance.now()`.
import type { OperationKind, WaitCause, WaitKind } from '../core/base/snapshots.js';

/** A time in which an operation could not be given to the device. */
export interface Parked {
  /** As `waitingFor` of a stream in `device.inspect()`; 'window' when too many operations of the stream were in flight. */
  readonly reason: WaitKind | 'window';
  readonly fromMs: number;
}

/** An operation that another one waited for. */
export interface AwaitedPoint {
  readonly device: string;
  readonly stream: string;
  /** As `slot` of the operation. */
  readonly slot: number;
  /** The number of the record within its stream. */
  readonly ticket: number;
  /** `waitEvent`, `waitStream`, or an array that both streams use. */
  readonly cause: WaitCause;
}

/** One record of a stream. The times that are undefined were not reached, or the device does not tell them. */
export interface RecordedOperation {
  /** The device's name, such as 'cuda:0'. */
  readonly device: string;
  /** The stream's label. */
  readonly stream: string;
  /** The number of the stream on its device. Labels may be the same, and the numbers of closed streams are used again. */
  readonly slot: number;
  /** The number of the record within its stream. */
  readonly ticket: number;
  readonly kind: OperationKind;
  /** As `operation.id`; undefined for what the library adds by itself, and for other threads' operations. */
  readonly id?: number;
  /** The `label` of the call, or the kernel's name. */
  readonly label?: string;
  readonly bytes?: number;
  /**
   * Of a copy. 'upload', 'download': from and to host memory. 'device': within the device. 'peer': between two devices. 'host': within host
   * memory.
   */
  readonly direction?: 'upload' | 'download' | 'device' | 'peer' | 'host';
  /** Of a copy: one end is an ordinary typed array, so the host copies the bytes, too, to or from page-locked memory. */
  readonly isPageable?: boolean;
  /** Of a launch: the threads of all blocks. */
  readonly threads?: number;
  /** 'file:line:column' of the call, with the option `callSites`. */
  readonly at?: string;
  /** The call that submitted it. Undefined if that was before the recording. */
  readonly submittedMs?: number;
  /** Why it could not be issued at once, one reason after the other. */
  readonly parked?: readonly Parked[];
  /** The device's driver accepted it. */
  readonly issuedMs?: number;
  /** The device began and ended it. Of a wait: when the stream came to it, and when it went on. */
  readonly startMs?: number;
  readonly endMs?: number;
  /**
   * The GPU timed so many operations together, because they were short: `startMs` and `endMs` assume that each took equally long. Undefined
   * if it was timed alone.
   */
  readonly timedTogether?: number;
  /** What it had to wait for. */
  readonly after?: AwaitedPoint;
}

/** Something that the thread or a lane of a pipeline did. */
export interface RecordedSpan {
  /**
   * 'wait': the host waited for an operation. 'item', 'stage': of `overlap`. 'build': a kernel was built. 'collection': V8 collected garbage.
   * 'stall': the event loop did not turn. 'staging': bytes were copied between an ordinary typed array and page-locked memory.
   */
  readonly kind: 'wait' | 'item' | 'stage' | 'build' | 'collection' | 'stall' | 'staging';
  readonly name: string;
  /** Of items and stages. */
  readonly lane?: number;
  readonly device?: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Of a wait: the operation that the host waited for. */
  readonly awaited?: Pick<RecordedOperation, 'device' | 'stream' | 'slot' | 'ticket'>;
}
