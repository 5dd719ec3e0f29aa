// Operations and streams as errors and `device.inspect()` show them: plain data.

/** An operation as errors and snapshots show it: plain data. */
export interface OperationInfo {
  /** Grows in the order of submission, over all devices of the thread. */
  readonly id: number;
  /** What the operation does. */
  readonly kind: OperationKind;
  /** The `label` of the call's options; for a launch without one, the kernel's name. */
  readonly label?: string | undefined;
  /** Bytes that a copy, fill or allocation is about; undefined for the other kinds. */
  readonly bytes?: number | undefined;
  /** The label of the stream that the operation was submitted to. */
  readonly stream: string;
  /** The id of that stream's device, for example 'cuda:0'. */
  readonly device: string;
}
/**
 * What an operation does. 'host' is a `host` or `hold`, 'record' an event with timing or for other processes, 'wait' a `waitEvent` or
 * `waitStream`, 'graph' a launch of a graph, 'upload-graph' a `graph.upload`, 'external' a function of `external`.
 */
export type OperationKind =
  | 'copy'
  | 'launch'
  | 'fill'
  | 'alloc'
  | 'free'
  | 'host'
  | 'graph'
  | 'upload-graph'
  | 'record'
  | 'wait'
  | 'external';

/** Why a stream waits: `waitEvent` ('event'), `waitStream` ('stream'), an array that several streams use ('array'), a `hold` ('host'). */
export type WaitCause = 'event' | 'stream' | 'array' | 'host';

/**
 * What a stream waits for: another stream, because of `waitEvent` ('event'), `waitStream` ('stream') or an array used on both ('array');
 * a `hold` ('host'); a kernel's build ('compile'); device memory that has to be freed first ('memory'); host memory that is being
 * page-locked ('pinning'); the first test of the route between two devices ('peer'); a transfer through page-locked memory ('transfer').
 */
export type WaitKind = WaitCause | 'compile' | 'memory' | 'pinning' | 'peer' | 'transfer';

/** What one stream has pending, and what it waits for. */
export interface StreamSnapshot {
  /** The label of the stream. */
  readonly stream: string;
  /** The id of the stream's device, for example 'cuda:0'. */
  readonly device: string;
  /** The number of operations submitted and not finished. */
  readonly pending: number;
  /** The first pending operation, as far as the host knows: a GPU may be up to 63 operations ahead of it. */
  readonly current?: OperationInfo;
  /**
   * What the current operation waits for, if it is not running. `operation` is the operation of the other stream that must finish first, or
   * the hold.
   */
  readonly waitingFor?: {
    readonly kind: WaitKind;
    readonly stream?: string;
    readonly operation?: OperationInfo;
    /** Since when, in milliseconds of `performance.now()`; the time of the first inspection if the start was not recorded. */
    readonly sinceMs: number;
  };
}
