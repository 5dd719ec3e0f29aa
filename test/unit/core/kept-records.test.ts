// The copies of the records of a capture.
import { expect, test } from 'vitest';
import { KeptRecords } from '../../../src/core/graphs/kept-records.js';

test('copies of records are independent of each other and of the original, and hundreds of them share a buffer', () => {
  const records = new KeptRecords();
  const original = new Uint8Array(96);
  const sizes = Array.from({ length: 3000 }, (_, n) => (n % 500 === 0 ? 100_000 : 8 * (n % 13)));
  const kept = sizes.map((size, n) => {
    const large = size > original.length ? new Uint8Array(size) : original.subarray(0, size);
    large.fill(n % 251);
    return records.keep(large);
  });
  original.fill(255);
  for (const [n, copy] of kept.entries()) expect(copy.byteLength === sizes[n] && copy.every((byte) => byte === n % 251)).toBe(true);
  expect(new Set(kept.map(({ buffer }) => buffer)).size).toBeLessThan(20);
});
