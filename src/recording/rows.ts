// The rows of a recording, as every form of it shows them: what the thread did, then each stream of each device.
import type { RecordedOperation, RecordedSpan } from './recorded.js';

export interface Recorded {
  readonly startMs: number;
  readonly endMs: number;
  readonly operations: readonly RecordedOperation[];
  readonly spans: readonly RecordedSpan[];
}

/** Of everything that is recorded. What runs may have been submitted before the recording began. */
export function earliestMs({ startMs: first, operations, spans }: Recorded): number {
  let earliest = first;
  for (const { submittedMs = first, startMs = first } of operations) earliest = Math.min(earliest, submittedMs, startMs);
  for (const { startMs } of spans) earliest = Math.min(earliest, startMs);
  return earliest;
}

export const HOST = 'host';

const ROW_OF: Readonly<Record<RecordedSpan['kind'], string>> = {
  wait: 'waits',
  item: 'items',
  stage: 'stages',
  build: 'builds',
  collection: 'garbage collections',
  stall: 'stalls of the event loop',
  staging: 'pageable copies',
};

export function rowOfSpan({ kind, lane, device }: RecordedSpan): string {
  return lane === undefined ? ROW_OF[kind] : `lane ${lane}${device === undefined ? '' : ` on ${device}`}`;
}

export type OfStream = Pick<RecordedOperation, 'device' | 'stream' | 'slot'>;

/** Streams may have the same label, and slots are used again. */
export function streamKeyOf({ device, stream, slot }: OfStream): string {
  return `${device} ${slot} ${stream}`;
}

export function pointOf(point: OfStream & Pick<RecordedOperation, 'ticket'>): string {
  return `${point.ticket} ${streamKeyOf(point)}`;
}

/** The lists of `all` by their keys, in the order in which these occur. */
export function grouped<T>(all: Iterable<T>, keyOf: (one: T) => string): Map<string, T[]> {
  const groups: Map<string, T[]> = new Map();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}

/** When an operation ran, in a row of its stream. */
export interface Ran {
  readonly operation: RecordedOperation;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Those operations of one stream whose times are known, in their order. A stream runs one after the other, but times that a GPU tells err by
 * microseconds: none begins before its predecessor's end.
 */
export function runsOf(operations: readonly RecordedOperation[]): Ran[] {
  const runs: Ran[] = [];
  let before = -Infinity;
  for (const operation of operations.toSorted((a, b) => a.ticket - b.ticket)) {
    if (operation.startMs === undefined || operation.endMs === undefined) continue;
    const startMs = Math.max(before, operation.startMs);
    before = Math.max(startMs, operation.endMs);
    runs.push({ operation, startMs, endMs: before });
  }
  return runs;
}

interface Interval {
  readonly startMs: number;
  readonly endMs: number;
}

/** The spans in as few levels as it takes so that within a level each is inside another one or apart from it. */
export function levelsOf<T extends Interval>(spans: readonly T[]): T[][] {
  const levels: { readonly spans: T[]; readonly open: Interval[] }[] = [];
  for (const span of spans.toSorted((a, b) => a.startMs - b.startMs || b.endMs - a.endMs)) {
    let level = levels.find(({ open }) => {
      while (open.length > 0 && (open.at(-1) as Interval).endMs <= span.startMs) open.pop();
      return open.length === 0 || span.endMs <= (open.at(-1) as Interval).endMs;
    });
    if (level === undefined) levels.push((level = { spans: [], open: [] }));
    level.spans.push(span);
    level.open.push(span);
  }
  return levels.map(({ spans: own }) => own);
}
