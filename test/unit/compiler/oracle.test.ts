// Tests the power of the random kernels in test/conformance/arithmetic/random-kernels.test.ts: every listed mistake, applied to their IR, must change the
// result of one of the first kernels.
import { describe, expect, test } from 'vitest';
import { type Decided, decided, type Outcome, outcomeOf } from '../../support/oracle/cases.js';
import { MUTATIONS, mutated } from '../../support/oracle/mutations.js';
import { MATHS } from '../../support/oracle/typed-kernel.js';

const PROGRAMS = 100;
const taken: Decided[] = [];
const source = decided(1);
function program(at: number): Decided {
  while (taken.length <= at) taken.push(source.next().value);
  return taken[at]!;
}

/** Compared like a device's result: inexact values are ignored. */
function isOther(outcome: Outcome | undefined, wanted: Outcome): boolean {
  if (outcome === undefined) return true;
  if (JSON.stringify(outcome.faults) !== JSON.stringify(wanted.faults)) return true;
  return Object.entries(wanted.arrays).some(([name, values]) => {
    if (MATHS.some(([inexact]) => inexact === name)) return false;
    return values.some((value, at) => !Object.is(value, outcome.arrays[name]![at]));
  });
}

describe('the oracle detects a mistake', () => {
  test.each(Object.entries(MUTATIONS))('%s', { timeout: 60_000 }, (_name, change) => {
    const notices = Array.from({ length: PROGRAMS }, (_, at) => at).find((at) => {
      const { one, data, outcome } = program(at);
      let isChanged = false;
      const ir = mutated(one.ir, (node, whole) => {
        const after = change(node, whole);
        isChanged ||= after !== node;
        return after;
      });
      // What is the same gives the same, as the last test shows.
      return isChanged && isOther(outcomeOf(ir, one.text.plan, data), outcome);
    });
    expect(notices, `none of ${PROGRAMS} programs`).toBeDefined();
  });
});

test('unchanged source passes every check', () => {
  for (let at = 0; at < 10; at++) {
    const { one, data, outcome } = program(at);
    expect(
      isOther(
        outcomeOf(
          mutated(one.ir, (node) => node),
          one.text.plan,
          data,
        ),
        outcome,
      ),
    ).toBe(false);
  }
});
