// A recording as chrome://tracing and Perfetto read it: a process for the host and one for each device, a thread for each stream and lane.
import type { RecordedOperation } from './recorded.js';
import { HOST, pointOf, type Recorded, rowOfSpan, streamKeyOf } from './rows.js';

/** Numbers from 1 on, for names. */
class Numbers {
  readonly #numbers: Map<string, number> = new Map();

  of(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) this.#numbers.set(name, (number = this.#numbers.size + 1));
    return number;
  }

  entries(): Iterable<[string, number]> {
    return this.#numbers.entries();
  }
}

export function chromeTrace({ startMs, operations, spans }: Recorded): string {
  const processes = new Numbers();
  const threads: Map<string, Numbers> = new Map();
  const labels: Map<string, string> = new Map();
  const place = (process: string, thread: string, label: string = thread): { pid: number; tid: number } => {
    let own = threads.get(process);
    if (own === undefined) threads.set(process, (own = new Numbers()));
    labels.set(thread, label);
    return { pid: processes.of(process), tid: own.of(thread) };
  };
  const placeOf = (operation: RecordedOperation): { pid: number; tid: number } =>
    place(operation.device, streamKeyOf(operation), operation.stream);
  const us = (ms: number): number => Math.round((ms - startMs) * 1e6) / 1e3;
  const events: object[] = [];

  for (const span of spans) {
    const { kind, name, startMs: from, endMs } = span;
    events.push({ name, cat: kind, ph: 'X', ts: us(from), dur: us(endMs) - us(from), ...place(HOST, rowOfSpan(span)) });
  }
  const points: Map<string, RecordedOperation> = new Map(operations.map((operation) => [pointOf(operation), operation]));
  for (const operation of operations) {
    const {
      kind,
      label,
      bytes,
      direction,
      isPageable,
      threads: launched,
      at: calledAt,
      id,
      ticket,
      submittedMs,
      parked,
      issuedMs,
      startMs: from,
      endMs,
      after,
      timedTogether,
    } = operation;
    if (from === undefined || endMs === undefined) continue;
    const own = placeOf(operation);
    const args = {
      ...(id !== undefined && { id }),
      ticket,
      ...(bytes !== undefined && { bytes }),
      ...(direction !== undefined && { direction }),
      ...(isPageable !== undefined && { isPageable }),
      ...(launched !== undefined && { threads: launched }),
      ...(calledAt !== undefined && { at: calledAt }),
      ...(submittedMs !== undefined && { submittedUs: us(submittedMs) }),
      ...(issuedMs !== undefined && { issuedUs: us(issuedMs) }),
      ...(timedTogether !== undefined && { timedTogether }),
      ...(parked !== undefined && { parked: parked.map(({ reason, fromMs }) => ({ reason, fromUs: us(fromMs) })) }),
    };
    events.push({ name: label ?? kind, cat: kind, ph: 'X', ts: us(from), dur: us(endMs) - us(from), ...own, args });
    const awaited = after && points.get(pointOf(after));
    if (awaited?.endMs === undefined) continue;
    const flow = { name: 'wait', cat: 'wait', id: events.length };
    const source = placeOf(awaited);
    events.push({ ...flow, ph: 's', ts: us(awaited.endMs), ...source }, { ...flow, ph: 'f', bp: 'e', ts: us(endMs), ...own });
  }

  const names: object[] = [];
  for (const [process, pid] of processes.entries()) {
    names.push({ name: 'process_name', ph: 'M', pid, args: { name: process } });
    for (const [thread, tid] of (threads.get(process) as Numbers).entries())
      names.push({ name: 'thread_name', ph: 'M', pid, tid, args: { name: labels.get(thread) } });
  }
  return `${JSON.stringify({ displayTimeUnit: 'ms', traceEvents: [...names, ...events] })}\n`;
}
