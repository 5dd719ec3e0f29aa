// Chapter 11: sorts of long rows whose keys lie unevenly: in few buckets, or apart only in bits that are looked at last.
import { argsort, sort } from 'millrace/ops';
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const LENGTH = 80_000;

defineChapter((target) => {
  describe('11 operations on arrays: sorts of uneven keys', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const random = randomFrom(5);

    rule('S1112', 'keys that differ in few bits only, beside ones far away, are sorted', async () => {
      const near = Float64Array.from({ length: LENGTH }, (_, at) => (at % 9999 === 7 ? -1e300 : 1 + random(2 ** 30) * 2 ** -52));
      const large = Int32Array.from({ length: LENGTH }, (_, at) => (at === 5 ? -(2 ** 31) : random(1000)));
      const long = BigInt64Array.from({ length: LENGTH }, (_, at) => (at === 9 ? 2n ** 62n : BigInt(random(2 ** 30)) * 65_537n));
      const signed = Float32Array.from({ length: LENGTH }, () => [-0, 0, 1, -1, 1e-40, Infinity, -Infinity, random(100) - 50][random(8)]!);
      for (const host of [near, large, long, signed]) {
        using x = chapter.device.from(host);
        using sorted = sort(x);
        using order = argsort(x, { descending: true });
        const [values, places] = await Promise.all([sorted.read(), order.read()]);
        const at = Array.from({ length: LENGTH }, (_, place) => place);
        const up = at.toSorted((p, q) => (host[p]! < host[q]! ? -1 : host[p]! > host[q]! ? 1 : p - q));
        const down = at.toSorted((p, q) => (host[p]! < host[q]! ? 1 : host[p]! > host[q]! ? -1 : p - q));
        expect(values.findIndex((value, place) => !Object.is(value, host[up[place]!]))).toBe(-1);
        expect(places.findIndex((place, n) => place !== down[n])).toBe(-1);
      }
    });
  });
});
