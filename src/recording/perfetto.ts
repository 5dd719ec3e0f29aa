// A recording in Perfetto's own format: a process for the host and one for each device, a thread for each stream, rows for what the thread did,
// flows from each submit to its operation and from each awaited operation to the one that waited, and counters.
import { bytesInFlight, operationsPerSecond, pendingOf } from './counters.js';
import { type Notes, PerfettoPackets } from './perfetto-packets.js';
import type { RecordedOperation } from './recorded.js';
import { earliestMs, grouped, HOST, levelsOf, pointOf, type Ran, type Recorded, rowOfSpan, runsOf, streamKeyOf } from './rows.js';

/** Perfetto takes the thread with the number of its process for its main thread, so these numbers are other ones. */
const FIRST_THREAD = 1000;

export function perfettoTrace(recorded: Recorded): Uint8Array {
  const originMs = earliestMs(recorded);
  const packets = new PerfettoPackets(originMs);
  let processes = 0;
  const host = packets.process(HOST, ++processes);
  for (const [name, own] of grouped(recorded.spans, rowOfSpan))
    for (const level of levelsOf(own)) {
      const track = packets.row(name, host);
      for (const { kind: category, name: label, device, startMs, endMs } of level)
        packets.slice({ track, category, name: label, startMs, endMs, notes: { device } });
    }

  const submits = packets.row('submits', host);
  let threads = FIRST_THREAD;
  const rows: { readonly track: number; readonly runs: readonly Ran[] }[] = [];
  for (const [device, all] of grouped(recorded.operations, (operation) => operation.device)) {
    const pid = ++processes;
    const process = packets.process(device, pid);
    packets.counter('operations per second', process, '/s', operationsPerSecond(all, recorded.startMs, recorded.endMs));
    packets.counter('bytes in flight', process, 'bytes', bytesInFlight(all));
    for (const own of grouped(all, streamKeyOf).values()) {
      const { stream } = own[0] as RecordedOperation;
      rows.push({ track: packets.thread(stream, pid, ++threads, process), runs: runsOf(own) });
      packets.counter(`pending of ${stream}`, process, 'operations', pendingOf(own));
    }
  }
  const waits = flowsOfWaits(
    rows.map(({ runs }) => runs),
    () => packets.newFlow(),
  );
  for (const { track, runs } of rows)
    for (const { operation, startMs, endMs } of runs) {
      const { kind: category, label: name = category, submittedMs } = operation;
      const { from = [], to = [], toEnd = [] } = waits.get(operation) ?? {};
      const endedFlows = [...to];
      if (submittedMs !== undefined) {
        const flow = packets.newFlow();
        // The clocks of the host and a GPU differ by microseconds, and a flow that ends before it begins is none.
        packets.slice({ track: submits, category, name, startMs: Math.min(submittedMs, startMs), flows: [flow] });
        endedFlows.push(flow);
      }
      packets.slice({
        track,
        category,
        name,
        startMs,
        endMs,
        notes: notesOf(operation, originMs),
        flows: from,
        endedFlows,
        flowsToEnd: toEnd,
      });
    }
  return packets.finish();
}

function notesOf(operation: RecordedOperation, originMs: number): Notes {
  const { id, ticket, bytes, direction, isPageable, threads, at, submittedMs, issuedMs, timedTogether, parked, after } = operation;
  const since = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms - originMs);
  return {
    id,
    ticket,
    bytes,
    direction,
    'host memory': isPageable === undefined ? undefined : isPageable ? 'pageable' : 'page-locked',
    threads,
    'called at': at,
    'submitted (ms)': since(submittedMs),
    'issued (ms)': since(issuedMs),
    'timed together': timedTogether,
    parked: parked?.map(({ reason, fromMs }) => `${reason} from ${(fromMs - originMs).toFixed(3)} ms`).join(', '),
    'waited for': after && `ticket ${after.ticket} of ${after.stream} on ${after.device} (${after.cause})`,
  };
}

interface Flows {
  /** Flows that begin, that end at the begin, and that end at the end of an operation. */
  readonly from: number[];
  readonly to: number[];
  readonly toEnd: number[];
}

/**
 * From each awaited operation to the operation after the wait, so that arrows point forward: a stream may come to a wait before the awaited
 * operation begins. If there is none, to the end of the wait.
 */
function flowsOfWaits(rows: readonly (readonly Ran[])[], newFlow: () => number): Map<RecordedOperation, Flows> {
  const found: Map<RecordedOperation, Flows> = new Map();
  const at = (operation: RecordedOperation): Flows => {
    let flows = found.get(operation);
    if (flows === undefined) found.set(operation, (flows = { from: [], to: [], toEnd: [] }));
    return flows;
  };
  const points = new Map(rows.flat().map(({ operation }) => [pointOf(operation), operation]));
  for (const runs of rows) {
    let open: number[] = [];
    for (const { operation } of runs) {
      const awaited = operation.after && points.get(pointOf(operation.after));
      if (awaited !== undefined) {
        open.push(newFlow());
        at(awaited).from.push(open.at(-1) as number);
      } else if (open.length > 0 && operation.kind !== 'wait') {
        at(operation).to.push(...open);
        open = [];
      }
    }
    const last = runs.at(-1);
    if (last !== undefined && open.length > 0) at(last.operation).toEnd.push(...open);
  }
  return found;
}
