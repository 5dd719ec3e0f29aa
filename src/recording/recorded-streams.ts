// A recording as its explanations need it: the operations of each stream in their order, and the spans of the thread by time.
import type { RecordedOperation, RecordedSpan } from './recorded.js';
import { grouped, type OfStream, type Recorded, streamKeyOf } from './rows.js';

/** What is known of a device. */
export interface RecordedDevice {
  readonly name: string;
  /** False: only the times of the host are known, so nothing is known of its gaps. */
  readonly hasTimes: boolean;
  /** A GPU, whose copies take an engine for each direction, and whose operations begin in the recording when their stream came to them. */
  readonly isGpu: boolean;
  /** A launch of so many threads has the device for itself. */
  readonly threads: number;
}

/** What is explained. */
export interface Explainable extends Recorded {
  readonly devices: readonly RecordedDevice[];
}

/** A recorded operation that began and ended. */
export type Ran = RecordedOperation & { readonly startMs: number; readonly endMs: number };

export function hasRun(operation: RecordedOperation | undefined): operation is Ran {
  return operation?.startMs !== undefined && operation.endMs !== undefined;
}

const WORK: ReadonlySet<string> = new Set(['launch', 'graph', 'copy', 'fill', 'external']);

/** Whether it is work of the device. The other kinds order or name something. */
export function isWork({ kind }: { readonly kind: string }): boolean {
  return WORK.has(kind);
}

export interface StreamOperations {
  readonly device: RecordedDevice;
  readonly stream: string;
  /** By ticket. */
  readonly operations: readonly RecordedOperation[];
  /** Those that worked on the device. */
  readonly work: readonly Ran[];
}

export class RecordedStreams {
  readonly recording: Explainable;
  readonly streams: readonly StreamOperations[];
  readonly #byName: Map<string, StreamOperations> = new Map();
  /** By their ends. */
  readonly #spans: readonly RecordedSpan[];
  /** A tree over them: of each node, when the first of its spans began. Its root is 1, and the children of n are 2n and 2n + 1. */
  readonly #begins: Float64Array;

  constructor(recording: Explainable) {
    this.recording = recording;
    const devices = new Map(recording.devices.map((device) => [device.name, device]));
    for (const [key, found] of grouped(recording.operations, streamKeyOf)) {
      const { device: name, stream } = found[0] as RecordedOperation;
      const operations = found.toSorted((a, b) => a.ticket - b.ticket);
      const device = devices.get(name) ?? { name, hasTimes: true, isGpu: false, threads: Infinity };
      const work = operations.filter(isWork).filter(hasRun);
      this.#byName.set(key, { device, stream, operations, work });
    }
    this.streams = [...this.#byName.values()];
    this.#spans = recording.spans.toSorted((a, b) => a.endMs - b.endMs);
    const leaves = 2 ** Math.ceil(Math.log2(Math.max(1, this.#spans.length)));
    this.#begins = new Float64Array(2 * leaves).fill(Infinity);
    for (const [at, { startMs }] of this.#spans.entries()) this.#begins[leaves + at] = startMs;
    for (let n = leaves - 1; n > 0; n--) this.#begins[n] = Math.min(this.#begins[2 * n] as number, this.#begins[2 * n + 1] as number);
  }

  of(operation: OfStream): StreamOperations | undefined {
    return this.#byName.get(streamKeyOf(operation));
  }

  at(point: OfStream & Pick<RecordedOperation, 'ticket'>): RecordedOperation | undefined {
    const operations = this.of(point)?.operations;
    const found = operations?.[indexOf(operations, point.ticket)];
    return found?.ticket === point.ticket ? found : undefined;
  }

  /** The operation before it on its stream. */
  before(operation: RecordedOperation): RecordedOperation | undefined {
    const operations = this.of(operation)?.operations ?? [];
    return operations[indexOf(operations, operation.ticket) - 1];
  }

  /** The spans that overlap a time, by their ends. One that lasts long costs no walk over all that are in it. */
  spansIn(fromMs: number, toMs: number): RecordedSpan[] {
    const found: RecordedSpan[] = [];
    const first = firstFrom(this.#spans, fromMs);
    const collect = (node: number, low: number, high: number): void => {
      if (high <= first || (this.#begins[node] as number) >= toMs) return;
      const middle = (low + high) >> 1;
      if (middle === low) found.push(this.#spans[low] as RecordedSpan);
      else {
        collect(2 * node, low, middle);
        collect(2 * node + 1, middle, high);
      }
    };
    collect(1, 0, this.#begins.length >> 1);
    return found;
  }

  /** The work of other streams of the same device that overlaps a time. */
  otherWork(operation: RecordedOperation, fromMs: number, toMs: number): Ran[] {
    const found: Ran[] = [];
    const own = this.of(operation);
    for (const stream of this.streams) {
      const { device, work } = stream;
      if (device.name !== operation.device || stream === own) continue;
      for (let at = firstFrom(work, fromMs); at < work.length && (work[at] as Ran).startMs < toMs; at++) found.push(work[at] as Ran);
    }
    return found;
  }
}

/** The index of the ticket, or of the first later one. */
function indexOf(operations: readonly RecordedOperation[], ticket: number): number {
  return firstIndex(operations.length, (at) => (operations[at] as RecordedOperation).ticket >= ticket);
}

/** The last operation of a stream that the driver had before a time: a stream's operations are issued in their order. */
export function lastIssued(operations: readonly RecordedOperation[], ms: number): RecordedOperation | undefined {
  let at = firstIndex(operations.length, (n) => ((operations[n] as RecordedOperation).issuedMs ?? Infinity) >= ms) - 1;
  while (at >= 0 && (operations[at] as RecordedOperation).issuedMs === undefined) at--;
  return operations[at];
}

/** The index of the first one that ends after a time, in a list by ends. */
function firstFrom(list: readonly { readonly endMs: number }[], ms: number): number {
  return firstIndex(list.length, (at) => (list[at] as { readonly endMs: number }).endMs > ms);
}

function firstIndex(length: number, isFrom: (at: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isFrom(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
