// Chapter 11: each operation of millrace/ops over random types, shapes, strides, values and options, against plain JavaScript.
// MILLRACE_OPS_SEED chooses the cases (default 1), and a failure names its case. MILLRACE_LONG=1: a thousand cases of each operation.
import { describe, expect, test } from 'vitest';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import { type Checked, differences, type Draw, elementCase, foldCase, foldForm, formOf } from '../../support/operation-cases.js';
import { ELEMENT_MODELS, FOLD_MODELS } from '../../support/operation-model.js';
import { type RandomNumber, randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import type { Target } from '../../support/target.js';

/** Exports that other files test. */
const ELSEWHERE =
  'elementwise tidy matmul generator random arange linspace eye concatenate split stack take tile compact unique binCount histogram ' +
  'cumprod cumsum argsort searchSorted sort topk';

const SEED = Number(process.env['MILLRACE_OPS_SEED'] ?? 1);
/** Choices of types, layout and options, each a kernel or two; and cases of other extents and values for each of them. */
const sizesOf = ({ name }: Target): readonly [forms: number, cases: number] => (IS_LONG ? [100, 10] : name === 'cuda' ? [10, 10] : [3, 8]);
const TIMEOUT_MS = IS_LONG ? 1_200_000 : 60_000;

/** A number for an operation's name, so that the order of tests does not matter. */
const hash = (name: string): number => Buffer.from(name).reduce((sum, letter) => Math.imul(sum, 31) + letter, 7) >>> 0;

test('S1106 each operation has random cases', () => {
  const tested = [...Object.keys(ELEMENT_MODELS), ...Object.keys(FOLD_MODELS), ...ELSEWHERE.split(' ')];
  expect(tested.toSorted()).toEqual(Object.keys(ops).toSorted());
});

defineChapter((target) => {
  describe('11 operations on arrays: random cases', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    const [forms, cases] = sizesOf(target);

    /** Runs all cases of each form at once, and compares them. */
    async function compare(
      name: string,
      made: (random: RandomNumber, n: number) => (draw: Draw, text: string) => readonly [Checked, Disposable[]] | undefined,
    ): Promise<void> {
      for (let form = 0; form < forms; form++) {
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
  });
});
