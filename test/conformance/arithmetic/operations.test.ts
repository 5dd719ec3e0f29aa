// Chapter 11: each operation of millrace/ops over random types, shapes, strides, values and options, against plain JavaScript.
// MILLRACE_OPS_SEED chooses the cases (default 1), and a failure names its case. MILLRACE_LONG=1: a thousand cases of each operation.
import { describe, expect } from 'vitest';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import {
  callOf,
  type Checked,
  differences,
  type Draw,
  elementCase,
  foldCase,
  foldForm,
  formOf,
  isWithin,
} from '../../support/operation-cases.js';
import { SHAPED } from '../../support/operations/index.js';
import { countOf, readValues } from '../../support/random-views.js';
import { ELEMENT_MODELS, FOLD_MODELS } from '../../support/operation-model.js';
import { type RandomNumber, randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import type { Target } from '../../support/target.js';

/** Exports that are no operations, or whose cases are in `SHAPED` by another name. */
const ELSEWHERE = 'tidy generator random';

const SEED = Number(process.env['MILLRACE_OPS_SEED'] ?? 1);
/** Choices of types, layout and options, each a kernel or two; and cases of other extents and values for each of them. */
const sizesOf = ({ name }: Target): readonly [forms: number, cases: number] => (IS_LONG ? [100, 10] : name === 'cuda' ? [10, 10] : [1, 6]);
const TIMEOUT_MS = IS_LONG ? 1_200_000 : 60_000;

/** A number for an operation's name, so that the order of tests does not matter. */
const hash = (name: string): number => Buffer.from(name).reduce((sum, letter) => Math.imul(sum, 31) + letter, 7) >>> 0;

defineChapter((target) => {
  describe('11 operations on arrays: random cases', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S1106', 'each operation has random cases', () => {
      const shaped = Object.keys(SHAPED).filter((name) => !name.includes('.'));
      const tested = [...Object.keys(ELEMENT_MODELS), ...Object.keys(FOLD_MODELS), ...shaped, ...ELSEWHERE.split(' ')];
      expect(tested.toSorted()).toEqual(Object.keys(ops).toSorted());
    });

    const [forms, cases] = sizesOf(target);

    /** Runs all cases of each form at once, and compares them. */
    async function compare(
      name: string,
      made: (random: RandomNumber, n: number) => (draw: Draw, text: string) => readonly [Checked, Disposable[]] | undefined,
    ): Promise<void> {
      // Where it is only one, it is of contiguous arrays for some operations, and of views for others.
      const first = forms === 1 ? hash(name) % 2 : 0;
      for (let form = first; form < first + forms; form++) {
        const found: string[] = [];
        const one = made(randomFrom(hash(`${name} ${form}`)), form);
        const checks = Array.from({ length: cases }, (_, n) => {
          const text = `case ${form}.${n} of MILLRACE_OPS_SEED=${SEED}`;
          const draw = { random: randomFrom(hash(`${name} ${SEED} ${form} ${n}`)), pattern: randomFrom(hash(`${form} ${name}`)) };
          try {
            return one(draw, text);
          } catch (error) {
            found.push(`${text}: ${String(error)}`);
            return undefined;
          }
        }).filter((each) => each !== undefined);
        found.push(...(await differences(checks.map(([check]) => check))));
        for (const [, owned] of checks) for (const each of owned) each[Symbol.dispose]();
        expect(found.join('\n')).toBe('');
      }
    }
    const options = { timeoutMs: TIMEOUT_MS };

    for (const [name, model] of Object.entries(ELEMENT_MODELS)) {
      const title = `${name} of random arrays`;
      const made = (random: RandomNumber, n: number) => {
        const form = formOf(random, n, model);
        return (draw: Draw, text: string) => elementCase(chapter.device, target, name, model, form, draw, text);
      };
      rule('S1106', title, () => compare(name, made), options);
    }

    for (const [name, model] of Object.entries(FOLD_MODELS)) {
      const title = `${name} of random arrays`;
      const made = (random: RandomNumber, n: number) => {
        const form = foldForm(random, n, model, name);
        return (draw: Draw, text: string) => foldCase(chapter.device, name, model, form, draw, text);
      };
      rule('S1107', title, () => compare(name, made), options);
    }

    // A sum of 32 roundings at each of so many elements in turn would be off by far more than the model allows.
    const isWhole = IS_LONG || target.name === 'cuda';
    const LONG = [
      { shape: [isWhole ? 1_100_000 : 100_000], axes: [0] },
      { shape: [40_000, 3], axes: [0] },
    ];
    /** In the short form, one of each way to fold: a number, its place, and several numbers. The others share their texts but for a line. */
    const LONGEST = ['sum', 'argmax', 'variance'];
    for (const [name, model] of Object.entries(FOLD_MODELS)) {
      if (!isWhole && !LONGEST.includes(name)) continue;
      rule('S1107', `${name} of long arrays is of parts`, async () => {
        const { device } = chapter;
        for (const { shape, axes } of LONG) {
          const random = randomFrom(hash(`${name} ${SEED} long`));
          // Many elements are equal; products stay in range.
          const element = name === 'prod' ? () => (random(2) === 0 ? 1 : -1) : () => random(64) - 16.5;
          const host = Float32Array.from({ length: countOf(shape) }, element);
          if (name.startsWith('arg')) host.fill(Number.NaN, host.length / 2, host.length / 2 + 100);
          if (name === 'all') host.fill(0, host.length - 2);
          using x = device.from(host, { shape });
          using y = callOf(name)(x, { axis: axes });
          const [, columns = 1] = shape;
          const own = await readValues(y);
          for (let column = 0; column < columns; column++) {
            const values = host.filter((_, n) => n % columns === column);
            const [exact, slack] = model.of([...values], y.dtype, 0);
            expect([column, own[column]]).toSatisfy(
              () => isWithin(y.dtype, own[column]!, exact, slack),
              `${name}: ${own[column]}, not ${exact}`,
            );
          }
        }
      });
    }

    rule('S1102', 'more rows than a grid has', async () => {
      const { device } = chapter;
      for (const columns of [3, 66]) {
        const rows = 70_000;
        const host = Int32Array.from({ length: rows * columns }, (_, n) => n);
        using x = device.from(host, { shape: [rows, columns] });
        using column = device.from(host.subarray(0, rows), { shape: [rows, 1] });
        using y = ops.subtract(x.view([undefined, undefined, -1]), column);
        const wanted = host.map((_, n) => (rows - 1 - Math.trunc(n / columns)) * columns + (n % columns) - Math.trunc(n / columns));
        expect(Buffer.from((await y.read()).buffer).equals(Buffer.from(wanted.buffer))).toBe(true);
        using sums = ops.max(x, { axis: 1 });
        expect((await sums.read())[rows - 1]).toBe(rows * columns - 1);
      }
    });

    rule(
      'S1107',
      'reductions of as many elements as an i32 counts',
      async (context) => {
        if (!IS_LONG) context.skip('it takes half a minute: MILLRACE_LONG=1');
        const { device } = chapter;
        using x = device.zeros(2 ** 31 - 1, 'bool');
        device.stream.fill(x.view([2 ** 31 - 4]), true);
        using first = ops.argmax(x);
        using total = ops.sum(x);
        expect([await ops.any(x).item(), await first.item(), await total.item()]).toEqual([true, 2 ** 31 - 4, 3n]);
      },
      options,
    );
  });
});
