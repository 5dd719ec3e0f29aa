// Chapter 11: the operations of millrace/ops that are not element by element, over random types, shapes, strides, values, options and results in
// `out`, against plain JavaScript. MILLRACE_OPS_SEED and MILLRACE_LONG=1 choose the cases as in operations.test.ts; MILLRACE_OPS_CASE=form.case runs one.
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import { differences } from '../../support/operation-cases.js';
import { SHAPED } from '../../support/operations/index.js';
import { randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { Case } from '../../support/shaped-cases.js';
import type { Target } from '../../support/target.js';

const SEED = Number(process.env['MILLRACE_OPS_SEED'] ?? 1);
const ONLY = process.env['MILLRACE_OPS_CASE'];
/** Choices of types, each a kernel or two; and cases of other shapes, layouts and values for each of them. */
const sizesOf = ({ name }: Target): readonly [forms: number, cases: number] => (IS_LONG ? [100, 10] : name === 'cuda' ? [10, 10] : [1, 12]);
/** Operations of which nearly each case is a kernel or two, and each kernel half a second of g++. */
const LARGE = /^S(?:1105|111[01368]|1119|1114)$/;
/** Cases of these in the short form. */
const FEW = 3;
const TIMEOUT_MS = IS_LONG ? 1_200_000 : 60_000;
const hash = (name: string): number => Buffer.from(name).reduce((sum, letter) => Math.imul(sum, 31) + letter, 7) >>> 0;

defineChapter((target) => {
  describe('11 operations on arrays: random shapes', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const [forms, cases] = sizesOf(target);

    for (const [name, [number, make]] of Object.entries(SHAPED)) {
      rule(
        number,
        `${name} of random arrays`,
        async () => {
          const found: string[] = [];
          const most = LARGE.test(number) && forms === 1 ? FEW : cases;
          for (let form = 0; form < forms; form++) {
            const all: Case[] = [];
            for (let n = 0; n < most; n++) {
              if (ONLY !== undefined && ONLY !== `${form}.${n}`) continue;
              const text = `MILLRACE_OPS_SEED=${SEED} MILLRACE_OPS_CASE=${form}.${n}`;
              const draw = { random: randomFrom(hash(`${name} ${SEED} ${form} ${n}`)), pattern: randomFrom(hash(`${form} ${name}`)) };
              const one = new Case(chapter.device, target, draw, text);
              all.push(one);
              try {
                await make(one);
              } catch (error) {
                found.push(`${one.text}: ${String(error)}`);
                one.checks.length = 0;
              }
            }
            found.push(...(await differences(all.flatMap((one) => one.checks))));
            for (const one of all) for (const each of one.owned) each[Symbol.dispose]();
          }
          expect(found.slice(0, 20).join('\n')).toBe('');
        },
        { timeoutMs: TIMEOUT_MS },
      );
    }
  });
});
