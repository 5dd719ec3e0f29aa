// What a recording says of operations that did not run side by side, and of times in which a stream did nothing: plain data.
import type { RecordedOperation, RecordedSpan } from './recorded.js';

/**
 * Why an operation did not begin earlier:
 *
 * | reason | |
 * | --- | --- |
 * | `event`, `stream`, `array` | its stream waited for another one: `waitEvent`, `waitStream`, or an array that both use |
 * | `order` | the operation before it on its stream still ran |
 * | `default-stream` | the same, on the device's default stream |
 * | `copy-engine` | the device copied in the same direction for another stream |
 * | `device-busy` | operations of other streams had all of the device |
 * | `memory` | device memory was allocated, or had to be freed first |
 * | `compile` | its kernel was built |
 * | `graph` | its graph was built |
 * | `window` | as many operations of its stream were in flight as may be |
 * | `pageable` | the bytes of an ordinary typed array were copied to page-locked memory |
 * | `pinning` | host memory was page-locked |
 * | `peer` | the route between two devices was tested |
 * | `hold` | a function of `hold` or `external` ran |
 * | `await` | the host waited for an operation before it called the next one |
 * | `stage` | the host ran a part of a pipeline: a task of piscina, a decoder |
 * | `collection` | V8 collected garbage |
 * | `stall` | other JavaScript ran: the event loop did not turn |
 * | `host` | the call came late, for no cause that the recording has |
 * | `issue` | the device's thread had other operations to issue first, or no processor |
 * | `latency` | it was issued, and the device had not begun it yet |
 * | `unknown` | the recording does not have it, and the text says why |
 */
export type Reason =
  | 'event'
  | 'stream'
  | 'array'
  | 'order'
  | 'default-stream'
  | 'copy-engine'
  | 'device-busy'
  | 'memory'
  | 'compile'
  | 'graph'
  | 'window'
  | 'pageable'
  | 'pinning'
  | 'peer'
  | 'hold'
  | 'await'
  | 'stage'
  | 'collection'
  | 'stall'
  | 'host'
  | 'issue'
  | 'latency'
  | 'unknown';

/** One reason, and what it cost. */
export interface Explanation {
  readonly reason: Reason;
  /** The milliseconds that it cost. 0 if the recording has no times of the device and cannot tell. */
  readonly ms: number;
  /** What happened, with the places in the source if the recording has them. */
  readonly text: string;
  /** What would change it, in one sentence. */
  readonly remedy: string;
  /** The operation or the span that is the cause. */
  readonly because?: RecordedOperation | RecordedSpan;
  /** The milliseconds, the text and the remedy. */
  toString(): string;
}

/** A time in which a stream had no kernel, copy, fill or graph on the device, before an operation that it was given later. */
export interface Gap {
  /** The device's name, such as 'cuda:0'. */
  readonly device: string;
  /** The stream's label. */
  readonly stream: string;
  /** The end of the operation before; for the first operation of a stream, when the stream was first given anything. */
  readonly startMs: number;
  readonly endMs: number;
  /** The operation that ended at `startMs`; undefined before the first one of the stream. */
  readonly before?: RecordedOperation;
  /** The operation that began at `endMs`. */
  readonly after: RecordedOperation;
  /** The most expensive first. Their `ms` add up to the gap. */
  readonly explanations: readonly Explanation[];
}

/** Options of `recording.gaps`. */
export interface GapOptions {
  /** Shorter gaps are left out. Default 0.02. */
  readonly minMs?: number;
}

/** What one reason cost in a whole recording. */
export interface ReasonCost {
  readonly reason: Reason;
  /** The milliseconds of all gaps, added up: two streams that wait at the same time count twice. */
  readonly ms: number;
  /** The part of the recording, from 0 to 1, in which it kept at least one stream from working. */
  readonly share: number;
  /** The gaps that it had a part in. */
  readonly count: number;
  /** Of the gap in which it cost most. */
  readonly worst: Explanation;
}

/** How much of the recording a device or a stream worked. */
export interface BusyShare {
  readonly device: string;
  /** The stream's label; undefined for the whole device. */
  readonly stream?: string;
  /** Kernels, copies, fills and graphs. */
  readonly operations: number;
  readonly busyMs: number;
  /** From 0 to 1. */
  readonly share: number;
}

/** What `recording.summary` returns. */
export interface RecordingSummary {
  readonly ms: number;
  /** The five that cost most, the most expensive first. */
  readonly reasons: readonly ReasonCost[];
  /** The devices, each before its streams. Devices without times of their own are missing. */
  readonly busy: readonly BusyShare[];
  /** The devices that have no times of their own, because of `deviceTimes: false`. Their gaps are not known. */
  readonly withoutTimes: readonly string[];
  /** A table for people. */
  toString(): string;
}
