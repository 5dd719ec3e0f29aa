// Rules that a target is known to break, and why. A listed rule still runs: if it passes, the run fails.
import type { RuleNumber } from '../support/rule.js';

export interface Skip {
  /** Name of the run: `cpu`, `cuda`, `fake-cuda`, `two-cpu`. */
  readonly target: string;
  readonly rule: RuleNumber;
  /** One test of the rule; all of them when left out. */
  readonly title?: string;
  readonly reason: string;
}

export const SKIPS: readonly Skip[] = [];
