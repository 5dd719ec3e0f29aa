// What the search is measured beside: a loop in TypeScript, a loop in C++ on all cores, and hnswlib, which finds most of the nearest.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '../command-line.js';
import type { Beside, Options } from './options.js';
import { plainSearch } from './plain.js';
import type { Hit } from './vector-index.js';

export interface Row {
  readonly name: string;
  /** Milliseconds of a query alone. */
  readonly aloneMs: number;
  /** Milliseconds of a query in a batch; undefined where batches are not faster. */
  readonly inBatchMs?: number;
  readonly note: string;
}

export interface Data {
  readonly vectors: Float32Array;
  readonly queries: readonly Float32Array[];
  /** The hits of the queries that the device found. */
  readonly hits: readonly (readonly Hit[])[];
}

export const MEASURES: Readonly<Record<Beside, (data: Data, options: Options) => Row>> = { plain, cpp, hnsw };

/** Throws Refusal for what is not installed, before anything is measured. */
export function checkBeside(names: readonly Beside[]): void {
  if (!names.includes('hnsw')) return;
  try {
    createRequire(import.meta.url).resolve('hnswlib-node');
  } catch {
    throw new Refusal('--beside hnsw needs a package: npm install --no-save hnswlib-node');
  }
}

/** Queries of a measurement that takes long. */
const FEW = 5;

function plain({ vectors, queries, hits }: Data, { k }: Options): Row {
  plainSearch(vectors.subarray(0, 1000 * queries[0]!.length), queries[0]!, k);
  const few = queries.slice(0, FEW);
  const start = performance.now();
  const found = few.map((query) => plainSearch(vectors, query, k));
  const aloneMs = (performance.now() - start) / few.length;
  return { name: 'a loop in TypeScript', aloneMs, note: `the same hits: ${recall(found, hits)} %` };
}

function cpp(_data: Data, { vectors, size, batch, k }: Options): Row {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-search-'));
  try {
    const program = join(folder, 'loop');
    execFileSync(process.env['CXX'] ?? 'g++', [
      '-O3',
      '-march=native',
      '-ffast-math',
      '-fopenmp',
      'examples/search/loop.cpp',
      '-o',
      program,
    ]);
    const lines = execFileSync(program, [vectors, size, batch, k].map(String), { encoding: 'utf8' }).trim().split('\n').map(Number);
    return {
      name: 'a loop in C++, all cores',
      aloneMs: lines[0]!,
      inBatchMs: lines[1]!,
      note: 'g++ -O3 -march=native -ffast-math -fopenmp',
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Hnsw {
  initIndex(options: { readonly maxElements: number; readonly m: number; readonly efConstruction: number }): void;
  addPoint(point: number[], label: number): void;
  setEf(ef: number): void;
  searchKnn(query: number[], k: number): { readonly neighbors: number[] };
}

/** The package hnswlib-node, which is no dependency of this repository because its installation compiles: `npm install --no-save hnswlib-node`. */
function hnsw({ vectors, queries, hits }: Data, { size, k }: Options): Row {
  const { HierarchicalNSW } = createRequire(import.meta.url)('hnswlib-node') as {
    HierarchicalNSW: new (space: 'ip', size: number) => Hnsw;
  };
  const index = new HierarchicalNSW('ip', size);
  const count = vectors.length / size;
  index.initIndex({ maxElements: count, m: 16, efConstruction: 100 });
  const began = performance.now();
  for (let row = 0; row < count; row++) index.addPoint([...vectors.subarray(row * size, (row + 1) * size)], row);
  const builtS = (performance.now() - began) / 1000;
  index.setEf(100);
  const start = performance.now();
  const found = queries.map((query) => index.searchKnn([...query], k).neighbors.map((row) => ({ row, score: 0 })));
  const aloneMs = (performance.now() - start) / queries.length;
  return { name: 'hnswlib-node', aloneMs, note: `recall ${recall(found, hits)} %, built in ${builtS.toFixed(0)} s (M 16, ef 100)` };
}

/** How many of the exact hits were found, in percent. */
export function recall(found: readonly (readonly Hit[])[], exact: readonly (readonly Hit[])[]): string {
  let [common, all] = [0, 0];
  for (const [at, hits] of found.entries()) {
    const rows = new Set(hits.map(({ row }) => row));
    for (const { row } of exact[at]!) if (rows.has(row)) common++;
    all += exact[at]!.length;
  }
  return ((100 * common) / all).toFixed(1);
}
