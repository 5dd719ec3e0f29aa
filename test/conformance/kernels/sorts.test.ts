// Chapter 11: sorts of long rows whose keys lie unevenly: in few buckets, or apart only in bits that are looked at last.
import { argsort, sort } from 'millrace/ops';
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
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
      // Values of two types and places of two, all of them in the long form.
      for (const [n, host] of [near, large, long, signed].entries()) {
        using x = chapter.device.from(host);
        const at = Array.from({ length: LENGTH }, (_, place) => place);
        if (n % 2 === 0 || IS_LONG) {
          using sorted = sort(x);
          const up = at.toSorted((p, q) => (host[p]! < host[q]! ? -1 : host[p]! > host[q]! ? 1 : p - q));
          expect((await sorted.read()).findIndex((value, place) => !Object.is(value, host[up[place]!]))).toBe(-1);
        }
        if (n % 2 === 1 || IS_LONG) {
          using order = argsort(x, { descending: true });
          const down = at.toSorted((p, q) => (host[p]! < host[q]! ? 1 : host[p]! > host[q]! ? -1 : p - q));
          expect((await order.read()).findIndex((place, to) => place !== down[to])).toBe(-1);
        }
      }
    });

    rule('S1112', 'floats of both signs are sorted up and down, also if the last ones are NaN and -0', async () => {
      const plain = Float32Array.from({ length: LENGTH }, () => (random(2 ** 20) - 2 ** 19) * 2 ** -(random(30) + 10) + 2 ** -60);
      const special = plain.slice();
      special.set([0, Number.NaN], 3);
      special.set([-0, Number.NaN, -1], LENGTH - 3);
      for (const host of [plain, special]) {
        using x = chapter.device.from(host);
        using sorted = sort(x);
        using reversed = sort(x, { descending: true });
        // Stable, and NaN last either way.
        const expected = (sign: number): Float32Array =>
          host.toSorted((a, b) => Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || (a < b ? -sign : a > b ? sign : 0));
        for (const [result, wanted] of [
          [await sorted.read(), expected(1)],
          [await reversed.read(), expected(-1)],
        ] as const) {
          expect(result.findIndex((value, at) => !Object.is(value, wanted[at]))).toBe(-1);
        }
      }
    });
  });
});
