// Numbers over time that follow from a recording.
import type { RecordedOperation } from './recorded.js';

/** From each time on, the value. */
export type Steps = readonly (readonly [ms: number, value: number])[];

function stepsOf(changes: [ms: number, by: number][]): Steps {
  const steps: [number, number][] = [];
  let value = 0;
  for (const [ms, by] of changes.toSorted(([a], [b]) => a - b)) {
    value += by;
    const last = steps.at(-1);
    if (last?.[0] === ms) last[1] = value;
    else steps.push([ms, value]);
  }
  return steps;
}

/** How many operations were submitted and had not ended, of those whose times are known. */
export function pendingOf(operations: readonly RecordedOperation[]): Steps {
  return stepsOf(
    operations.flatMap(({ submittedMs, startMs, endMs }) =>
      endMs === undefined
        ? []
        : ([
            [Math.min(submittedMs ?? Infinity, startMs ?? Infinity, endMs), 1],
            [endMs, -1],
          ] as [number, number][]),
    ),
  );
}

/** Bytes of the copies that the device was making. */
export function bytesInFlight(operations: readonly RecordedOperation[]): Steps {
  return stepsOf(
    operations.flatMap(({ kind, bytes = 0, startMs, endMs }) =>
      kind !== 'copy' || startMs === undefined || endMs === undefined
        ? []
        : ([
            [startMs, bytes],
            [endMs, -bytes],
          ] as [number, number][]),
    ),
  );
}

const PARTS = 200;
const SHORTEST_PART_MS = 1;

/** Operations that ended, per second, in each part of the time: a 200th of it, at least a millisecond. */
export function operationsPerSecond(operations: readonly RecordedOperation[], fromMs: number, toMs: number): Steps {
  const length = Math.max(1, Math.min(PARTS, Math.floor((toMs - fromMs) / SHORTEST_PART_MS)));
  const partMs = (toMs - fromMs) / length || SHORTEST_PART_MS;
  const counts = Array.from({ length }, () => 0);
  for (const { endMs } of operations)
    if (endMs !== undefined && endMs >= fromMs) counts[Math.min(counts.length - 1, Math.floor((endMs - fromMs) / partMs))]!++;
  return [...counts.map((count, at) => [fromMs + at * partMs, (count * 1e3) / partMs] as const), [toMs, 0]];
}
