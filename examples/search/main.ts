// Searches among many vectors, one query at a time and in batches, while vectors change. See README.md beside this file.
import { cpus, loadavg } from 'node:os';
import { openDevice } from 'millrace';
import { checkBeside, type Data, MEASURES, type Row } from './beside.js';
import { run } from '../command-line.js';
import { readOptions } from './options.js';
import { VectorIndex } from './vector-index.js';
import { makeVectors } from './vectors.js';

/** Vectors of an update, and milliseconds between two updates. */
const UPDATED = 100;
const UPDATE_EVERY_MS = 50;

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  checkBeside(options.beside);
  const { vectors: count, size, precision, batch, k } = options;
  await using device = await openDevice(options.device);
  console.log(`device     ${device.info.id} (${device.info.name}), ${cpus().length} cores, load average ${loadavg()[0]!.toFixed(1)}`);
  const vectors = makeVectors(device, count, size, 1, precision);
  using given = makeVectors(device, options.queries, size, 2);
  const flat = (await given.read()) as Float32Array;
  const queries = Array.from({ length: options.queries }, (_, at) => flat.slice(at * size, (at + 1) * size));
  const host = options.beside.length > 0 && precision === 'f32' ? ((await vectors.read()) as Float32Array) : undefined;
  await using index = new VectorIndex(device, vectors, { k, maxItems: batch, maxQueue: options.queries + batch });
  console.log(`vectors    ${count} of ${size} numbers, ${precision}; ${queries.length} queries, ${k} hits each`);

  const rows: Row[] = [];
  // Once without a clock: kernels are built.
  await index.search(queries[0]!);
  const hits = await Promise.all(queries.map((query) => index.search(query)));
  const few = queries.slice(0, 10);
  const aloneMs = await timed(async () => {
    for (const query of few) await index.search(query);
  });
  const batchedMs = await timed(() => Promise.all(queries.map((query) => index.search(query))));
  rows.push({
    name: `millrace, ${precision}`,
    aloneMs: aloneMs / few.length,
    inBatchMs: batchedMs / queries.length,
    note: `batches of ${batch}`,
  });

  await streamWhileUpdating(index, queries, batch, size);
  const data: Data | undefined = host && { vectors: host, queries, hits };
  for (const name of data ? options.beside : []) rows.push(MEASURES[name](data!, options));
  console.log('\n| | ms a query, alone | ms a query, in a batch | |\n| --- | --- | --- | --- |');
  for (const row of rows) console.log(`| ${row.name} | ${row.aloneMs.toFixed(2)} | ${row.inBatchMs?.toFixed(2) ?? ''} | ${row.note} |`);
  return 0;
}

/** All queries as a stream of batches, while some vectors are written over and over. */
async function streamWhileUpdating(index: VectorIndex, queries: readonly Float32Array[], batch: number, size: number): Promise<void> {
  const batches = Array.from({ length: Math.ceil(queries.length / batch) }, (_, at) => queries.slice(at * batch, (at + 1) * batch));
  const numbers = Array.from({ length: UPDATED }, (_, at) => at);
  const small = new Float32Array(UPDATED * size).fill(1e-3);
  let [updates, results, firstMs] = [0, 0, 0];
  const over = new AbortController();
  const updating = (async () => {
    while (!over.signal.aborted) {
      await index.update(numbers, small);
      updates++;
      await new Promise((resolve) => setTimeout(resolve, UPDATE_EVERY_MS));
    }
  })();
  const start = performance.now();
  for await (const found of index.stream(batches)) {
    if (results === 0) firstMs = performance.now() - start;
    results += found.length;
  }
  const wholeMs = performance.now() - start;
  over.abort();
  await updating;
  console.log(
    `stream     ${results} results in ${wholeMs.toFixed(0)} ms, the first ones after ${firstMs.toFixed(0)} ms, with ${updates} updates of ${UPDATED} vectors`,
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

await run(main);
