// Chapter 4, every function of Math that devices round differently, within its stated ulps
// (test/support/oracle/tolerance.ts), over arguments of all sizes and special values.
import { describe, expect } from 'vitest';
import { f32, f64, input, kernel, output } from 'millrace';
import type { Kernel } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { allowedUlps, inexact, INEXACT, ulpsBetween } from '../../support/oracle/tolerance.js';
import { textAsBody } from '../../support/oracle/typed-form.js';
import { randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const NAMES = Object.keys(INEXACT);
const TYPES = { f32, f64 } as const;

/** One row of `out` for each function. */
function allFunctions(type: 'f32' | 'f64'): Kernel {
  const rows = NAMES.map((name, row) => {
    const args = INEXACT[name]!.arity === 1 ? 'x[i]' : 'x[i], y[i]';
    return `out[${row}][i] = ${name === 'rsqrt' ? name : `Math.${name}`}(${args});`;
  });
  const body = `({ x, y, out }, { i, rsqrt }) => {\n${rows.join('\n')}\n}`;
  const params = { x: input(TYPES[type]), y: input(TYPES[type]), out: output(TYPES[type], 2) };
  return kernel(`functions_${type}`, params, textAsBody(body)) as Kernel;
}

const SPECIAL: readonly number[] = [
  ...[0, 1, 0.5, 2, 10, 1e-3, 0.999_999, 1.000_001, Math.PI, Math.PI / 2, Math.E, 88, 700, 1e5, 1e15, 1e30, 1e-30, 1e-40].flatMap((v) => [
    v,
    -v,
  ]),
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
];

/** All pairs of special values, then numbers of all sizes. */
function argumentPairs(): readonly (readonly [number, number])[] {
  const random = randomFrom(412);
  const anySize = (): number => (random(2 ** 20) - 2 ** 19) / 2 ** random(30);
  const pairs = SPECIAL.flatMap((a) => SPECIAL.map((b) => [a, b] as const));
  const words = new Uint32Array(1);
  const anyFloat = (): number => {
    words[0] = random(2 ** 16) * 2 ** 16 + random(2 ** 16);
    return new Float32Array(words.buffer)[0]!;
  };
  const few = Array.from({ length: 3000 }, () => [anySize(), anySize()] as const);
  return [...pairs, ...few, ...Array.from({ length: 12_000 }, () => [anyFloat(), anyFloat()] as const)];
}

defineChapter((target) => {
  describe('4 kernels: functions of Math', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const type of ['f32', 'f64'] as const) {
      rule('S412', `functions of ${type} are within the stated ulps of what JavaScript gives`, async () => {
        const { device } = chapter;
        const made = type === 'f32' ? Float32Array : Float64Array;
        const pairs = argumentPairs();
        const first = new made(pairs.map(([a]) => a));
        const second = new made(pairs.map(([, b]) => b));
        using x = device.from(first as Float32Array, { dtype: type as 'f32' });
        using y = device.from(second as Float32Array, { dtype: type as 'f32' });
        using out = device.zeros([NAMES.length, pairs.length], type as 'f32');
        device.stream.launch(allFunctions(type), pairs.length, { x, y, out } as never);
        const seen = await out.read();
        const wrong = NAMES.flatMap((name, row) => {
          let [worst, shown] = [0, ''];
          for (const [at, a] of first.entries()) {
            const wanted = inexact(name, type, a, second[at]!);
            if (wanted === undefined) continue;
            const own = seen[row * pairs.length + at]!;
            const ulps = ulpsBetween(type, own, wanted);
            if (ulps > worst) [worst, shown] = [ulps, `${name}(${a}, ${second[at]}) is ${own}, not ${wanted}: ${ulps} ulp`];
          }
          return worst > allowedUlps(name, type, target) ? [shown] : [];
        });
        expect(wrong).toEqual([]);
      });
    }
  });
});
