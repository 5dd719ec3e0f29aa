import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDevice } from 'millrace';
import { entropies, type Result } from './pipeline.js';

test('the entropies of files, in their order', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'entropies-'));
  const contents = [
    Uint8Array.from({ length: 100_000 }, (_, at) => at % 256),
    new Uint8Array(10),
    new Uint8Array(0),
    Uint8Array.of(1, 2, 1, 2),
  ];
  const files = contents.map((_, at) => join(folder, `${at}`));
  for (const [at, content] of contents.entries()) await writeFile(files[at]!, content);
  const device = await openDevice('cpu');
  const results: Result[] = [];
  for await (const result of entropies(device, files)) results.push(result);
  await device.close();
  await rm(folder, { recursive: true });
  assert.deepEqual(
    results.map(({ file, bytes }) => [file, bytes]),
    contents.map(({ length }, at) => [files[at], length]),
  );
  assert.deepEqual(
    results.map(({ entropy }) => Number(entropy.toFixed(3))),
    [8, 0, 0, 1],
  );
});
