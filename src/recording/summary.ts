// `recording.summary`: what the gaps of a recording cost, by reason, and how busy its devices and streams were.
import type { Delay } from './delay.js';
import type { BusyShare, Reason, ReasonCost, RecordingSummary } from './explained.js';
import type { Explainer } from './explain.js';
import type { Explainable, Ran } from './recorded-streams.js';

const MOST_REASONS = 5;
/** A sentence of a table is cut here. */
const MOST_CHARACTERS = 100;

interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

export function summaryOf(recording: Explainable, explainer: Explainer): RecordingSummary {
  const ms = recording.endMs - recording.startMs;
  const found = {
    ms,
    reasons: costsOf(explainer, ms),
    busy: busyOf(explainer, ms),
    withoutTimes: recording.devices.filter(({ hasTimes }) => !hasTimes).map(({ name }) => name),
  };
  return Object.defineProperty(found, 'toString', { value: () => textOf(found) });
}

function costsOf(explainer: Explainer, recordedMs: number): ReasonCost[] {
  const costs: Map<Reason, { ms: number; count: number; delays: Delay[]; gap: readonly Delay[]; gapMs: number }> = new Map();
  for (const delays of explainer.losses()) {
    const ofGap: Map<Reason, number> = new Map();
    for (const { reason, fromMs, toMs } of delays) ofGap.set(reason, (ofGap.get(reason) ?? 0) + toMs - fromMs);
    for (const [reason, ms] of ofGap) {
      let cost = costs.get(reason);
      if (cost === undefined) costs.set(reason, (cost = { ms: 0, count: 0, delays: [], gap: [], gapMs: 0 }));
      cost.ms += ms;
      cost.count++;
      const own = delays.filter((delay) => delay.reason === reason);
      cost.delays.push(...own);
      if (ms > cost.gapMs) [cost.gap, cost.gapMs] = [own, ms];
    }
  }
  return [...costs]
    .toSorted(([, a], [, b]) => b.ms - a.ms)
    .slice(0, MOST_REASONS)
    .map(([reason, { ms, count, delays, gap }]) => {
      const [worst] = explainer.explained(gap);
      return { reason, ms, share: share(covered(delays), recordedMs), count, worst: worst as ReasonCost['worst'] };
    });
}

function busyOf({ streams: { streams } }: Explainer, recordedMs: number): BusyShare[] {
  const found: BusyShare[] = [];
  const names = [...new Set(streams.filter(({ work }) => work.length > 0).map(({ device }) => device.name))].toSorted();
  for (const device of names) {
    const own = streams.filter(({ device: { name }, work }) => name === device && work.length > 0);
    found.push({
      device,
      ...busy(
        own.flatMap(({ work }) => work),
        recordedMs,
      ),
    });
    for (const { stream, work } of own) found.push({ device, stream, ...busy(work, recordedMs) });
  }
  return found;
}

function busy(work: readonly Ran[], recordedMs: number): Pick<BusyShare, 'operations' | 'busyMs' | 'share'> {
  const busyMs = covered(work.map(({ startMs, endMs }) => ({ fromMs: startMs, toMs: endMs })));
  return { operations: work.length, busyMs, share: share(busyMs, recordedMs) };
}

/** The time that at least one of them covers. */
function covered(intervals: readonly Interval[]): number {
  let [sum, untilMs] = [0, -Infinity];
  for (const { fromMs, toMs } of intervals.toSorted((a, b) => a.fromMs - b.fromMs)) {
    sum += Math.max(0, toMs - Math.max(fromMs, untilMs));
    untilMs = Math.max(untilMs, toMs);
  }
  return sum;
}

function share(ms: number, ofMs: number): number {
  return ofMs > 0 ? Math.min(1, ms / ofMs) : 0;
}

function textOf({ ms, reasons, busy: shares, withoutTimes }: Omit<RecordingSummary, 'toString'>): string {
  const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;
  const lines = [`Recorded ${ms.toFixed(1)} ms.`, ''];
  lines.push(
    ...table(
      ['busy', 'operations', 'ms', 'share'],
      shares.map(({ device, stream, operations, busyMs, share: part }) => [
        stream === undefined ? device : `  ${stream}`,
        String(operations),
        busyMs.toFixed(2),
        percent(part),
      ]),
    ),
    '',
    ...table(
      ['streams had nothing to do', 'gaps', 'ms', 'share'],
      reasons.map(({ reason, count, ms: cost, share: part }) => [reason, String(count), cost.toFixed(2), percent(part)]),
    ),
  );
  for (const { reason, worst } of reasons) lines.push('', `${reason}: ${cut(worst.text)}`, `  ${worst.remedy}`);
  if (withoutTimes.length > 0)
    lines.push('', `Without times of the device (deviceTimes: false), so without gaps: ${withoutTimes.join(', ')}.`);
  return `${lines.join('\n')}\n`;
}

function cut(text: string): string {
  return text.length <= MOST_CHARACTERS * 2 ? text : `${text.slice(0, MOST_CHARACTERS * 2 - 3)}...`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => (row[at] as string).length)));
  return all.map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] as number) : cell.padStart(widths[at] as number))).join('  '),
  );
}
