// The results of one run as a table for the terminal.
import Table from 'cli-table3';
import { goalText, judge } from './goals.js';
import { type Absent, type Figure, isAbsent, type Report } from './report.js';
import { rowOf } from './rows.js';

/** Three digits, or whole numbers above 1,000. */
export function number(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  const text = value.toPrecision(3);
  return text.includes('e') ? String(Number(value.toFixed(3))) : text;
}

/** The median and, in parentheses, the 10th and the 90th percentile. */
export function spread(one: Figure | Absent): string {
  if (isAbsent(one)) return 'absent';
  return one.count === 1 ? number(one.p50) : `${number(one.p50)} (${number(one.p10)} to ${number(one.p90)})`;
}

export function printReport({ device, results }: Report): void {
  const table = new Table({ head: ['what', 'unit', 'ours (p10 to p90)', 'p99', 'peers', 'goal'], style: { head: [], border: [] } });
  for (const result of results) {
    const { what, unit, goals } = rowOf(result.id);
    const peers = Object.entries(result.peers).map(([name, one]) => `${name} ${isAbsent(one) ? 'absent' : number(one.p50)}`);
    const verdicts = (goals?.[device.backend] ?? []).map((goal) => `${goalText(goal, unit)}: ${judge(goal, result)}`);
    const p99 = isAbsent(result.ours) ? '' : number(result.ours.p99);
    table.push([what, unit, spread(result.ours), p99, peers.join('\n'), verdicts.join('\n')]);
  }
  console.log(table.toString());
}
