// What a target is known not to do, and why. A rule listed here is run all the same: when it passes, the run fails.
import type { RuleNumber } from '../support/rule.js';

export interface Skip {
  /** Name of the run: `cpu`, `cuda`, `fake-cuda`, `two-cpu`. */
  readonly target: string;
  readonly rule: RuleNumber;
  /** One test of the rule; all of them when left out. */
  readonly title?: string;
  readonly reason: string;
}

const FIRST_CAUSE = 'a copy carries that its source is spoiled to the other device, but not by which failure: the cause has no class there';

export const SKIPS: readonly Skip[] = [
  { target: 'two-cpu', rule: 'S611', reason: FIRST_CAUSE },
  { target: 'fake-cuda', rule: 'S611', reason: FIRST_CAUSE },
];
