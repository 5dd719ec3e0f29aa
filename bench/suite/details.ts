// The tables and JSON files of the programs that go into detail: bench/kernels.ts and bench/pipelines.ts.
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname } from 'node:path';
import Table from 'cli-table3';

export interface Samples {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly min: number;
}

export interface Row {
  readonly device: string;
  readonly what: string;
  readonly unit: string;
  readonly p50: number;
  readonly p99?: number;
  /** The same thing done without Millrace, in the same run. */
  readonly raw?: number;
  readonly note?: string;
}

export function summarize(values: readonly number[]): Samples {
  const sorted = Float64Array.from(values).toSorted();
  const at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), min: at(0) };
}

const figure = (value: number | undefined): string =>
  value === undefined ? '' : value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

export function printTable(rows: readonly Row[]): void {
  const table = new Table({ head: ['device', 'what', 'unit', 'p50', 'p99', 'raw', 'times raw', 'note'], style: { head: [], border: [] } });
  for (const row of rows) {
    const ratio = row.raw === undefined ? '' : (row.p50 / row.raw).toFixed(2);
    table.push([row.device, row.what, row.unit, figure(row.p50), figure(row.p99), figure(row.raw), ratio, row.note ?? '']);
  }
  console.log(table.toString());
}

export function writeReport(path: string, rows: readonly Row[]): void {
  const cpus = os.cpus();
  const machine = {
    node: process.version,
    cpu: cpus[0]?.model ?? 'unknown',
    cores: cpus.length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
  };
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ at: new Date().toISOString(), machine, rows }, undefined, 2)}\n`);
}
