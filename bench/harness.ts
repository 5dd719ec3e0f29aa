// What benchmarks share: statistics, the description of the machine, a table and a JSON file.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
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

/** Runs `body` `count` times and returns what each run took in microseconds; `idleMs` passes before each. */
export async function time(count: number, body: () => Promise<void>, idleMs = 0): Promise<Samples> {
  const values: number[] = [];
  for (let n = 0; n < count; n++) {
    if (idleMs > 0) await sleep(idleMs);
    const start = performance.now();
    await body();
    values.push((performance.now() - start) * 1e3);
  }
  return summarize(values);
}

/** Runs a program of bench/native and returns what it prints. */
export function runNative(name: string, args: readonly string[]): string {
  const path = fileURLToPath(new URL(`../../cmake/bench/native/${name}`, import.meta.url));
  const result = spawnSync(path, [...args], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`${name} failed (npm run bench builds it): ${result.stderr}${String(result.error ?? '')}`);
  return result.stdout;
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
