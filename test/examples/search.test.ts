// The search example: the hits of plain TypeScript, alone, in batches and as a stream, and updates that a batch sees as a whole.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { openDevice } from 'millrace';
import { astype } from 'millrace/ops';
import { recall } from '../../examples/search/beside.js';
import { plainSearch } from '../../examples/search/plain.js';
import { type Precision, VectorIndex } from '../../examples/search/vector-index.js';
import { makeVectors } from '../../examples/search/vectors.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../build/js/examples/search/main.js', import.meta.url));
const HNSW = fileURLToPath(new URL('../../node_modules/hnswlib-node', import.meta.url));
const [COUNT, SIZE, K] = [3000, 64, 10];
const RUN_MS = 60_000;

function search(...args: readonly string[]): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, '--device', 'cpu', ...args],
      { cwd: ROOT, timeout: RUN_MS },
      (_error, stdout, stderr) => {
        resolve({ code: child.exitCode, stdout, stderr });
      },
    );
  });
}

describe.each(['f32', 'f16'] as const)('vectors of %s', (precision: Precision) => {
  test('have the hits of plain TypeScript: alone, in batches, and as a stream', { timeout: RUN_MS }, async () => {
    await using device = await openDevice('cpu');
    const vectors = makeVectors(device, COUNT, SIZE, 1, precision);
    using same = astype(vectors, 'f32');
    const host = await same.read();
    using given = makeVectors(device, 40, SIZE, 2);
    const flat = (await given.read()) as Float32Array;
    const queries = Array.from({ length: 40 }, (_, at) => flat.slice(at * SIZE, (at + 1) * SIZE));
    await using index = new VectorIndex(device, vectors, { k: K, maxItems: 16, maxQueue: 100 });
    const exact = queries.map((query) => plainSearch(host, query, K));
    const alone = [await index.search(queries[0]!), await index.search(queries[1]!)];
    const batched = await Promise.all(queries.map((query) => index.search(query)));
    const streamed = [];
    for await (const part of index.stream([queries.slice(0, 7), queries.slice(7)])) streamed.push(...part);
    for (const found of [alone, batched, streamed]) {
      // f16 rounds the queries too, so that hits of nearly the same score may change places with those behind the last one.
      expect(Number(recall(found, exact))).toBeGreaterThan(precision === 'f32' ? 99.7 : 96);
      for (const [at, hits] of found.entries()) {
        expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).toSorted((a, b) => b - a));
        hits.forEach(({ score }, n) => expect(Math.abs(score - exact[at]![n]!.score)).toBeLessThan(precision === 'f32' ? 1e-5 : 2e-3));
      }
    }
  });
});

test('a batch sees all of an update or nothing of it', { timeout: RUN_MS }, async () => {
  await using device = await openDevice('cpu');
  await using index = new VectorIndex(device, device.zeros([COUNT, SIZE]), { k: COUNT / 10, maxItems: 4, maxQueue: 100 });
  const rows = Array.from({ length: COUNT / 10 }, (_, at) => 10 * at);
  const query = new Float32Array(SIZE).fill(1);
  const over = new AbortController();
  const searching = (async () => {
    const seen = new Set<number>();
    while (!over.signal.aborted) {
      const scores = new Set((await index.search(query)).map(({ score }) => score));
      expect(scores.size).toBe(1);
      seen.add([...scores][0]!);
    }
    return seen;
  })();
  for (let turn = 1; turn <= 20; turn++) {
    await index.update(rows, new Float32Array(rows.length * SIZE).fill(turn));
    const [hit] = await index.search(query);
    expect(hit!.score).toBe(turn * SIZE);
  }
  over.abort();
  expect((await searching).size).toBeGreaterThan(2);
});

test('the command prints figures, the hits of the loop among them', { timeout: RUN_MS }, async () => {
  const ended = await search('--vectors', '2000', '--size', '32', '--queries', '20', '--batch', '8', '--beside', 'plain,cpp');
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toMatch(/^stream +20 results in \d+ ms, the first ones after \d+ ms, with \d+ updates of 100 vectors$/m);
  expect(ended.stdout).toMatch(/^\| millrace, f32 \| \d+\.\d\d \| \d+\.\d\d \| batches of 8 \|$/m);
  expect(ended.stdout).toMatch(/^\| a loop in TypeScript \| .* \| the same hits: 100\.0 % \|$/m);
  expect(ended.stdout).toMatch(/^\| a loop in C\+\+, all cores \| \d+\.\d\d \| \d+\.\d\d \|/m);
});

test('the command refuses what it does not understand', async () => {
  for (const [args, message] of [
    [['--precision', 'f8'], '--precision f8 is neither f32 nor f16.'],
    [['--vectors', '10'], '--vectors 10 is not a whole number from 1000 to 5000000.'],
    [['--size', '6'], '--size 6 is not a multiple of 4.'],
    [['--vectors', '5000000', '--size', '1024'], 'are more than 2147483647 numbers.'],
    [['--beside', 'luck'], '--beside luck is none of plain, cpp and hnsw.'],
    ...(existsSync(HNSW) ? [] : [[['--beside', 'hnsw'], '--beside hnsw needs a package: npm install --no-save hnswlib-node'] as const]),
  ] as const) {
    const { code, stderr } = await search(...args);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  }
});
