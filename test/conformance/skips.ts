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

export const SKIPS: readonly Skip[] = [
  {
    target: 'fake-cuda',
    rule: 'S479',
    title: 'a template of a header is selected by its arguments',
    reason: 'the compiler of the fake driver stands in for nvcc, which builds no templates by name',
  },
  {
    target: 'fake-cuda',
    rule: 'S470',
    title: 'instances of kernel templates are kernels of a module, beside those that are no templates',
    reason:
      'the compiler of the fake driver stands in for nvcc, which builds no templates by name; test/unit/toolchain/kernel-checks.test.ts has it with NVRTC',
  },
  {
    target: 'fake-cuda',
    rule: 'S476',
    title: 'parameters that differ in the compiled source fail the launches of their kernel alone',
    reason:
      'the compiler of the fake driver leaves out the comparison of parameters; test/unit/toolchain/kernel-checks.test.ts has it with nvcc',
  },
  {
    target: 'fake-cuda',
    rule: 'S445',
    reason:
      'the compiler of the fake driver stands in for nvcc, which builds no templates and no kernels of macros by name; test/unit/toolchain/nvrtc-headers.test.ts builds them',
  },
  {
    target: 'fake-cuda',
    rule: 'S447',
    title: 'templates take structs',
    reason: 'the compiler of the fake driver stands in for nvcc, which builds no templates by name',
  },
  {
    target: 'fake-cuda',
    rule: 'S447',
    title: 'the compiler compares what tokens do not tell',
    reason:
      'the compiler of the fake driver leaves out the comparison of parameters; test/unit/toolchain/value-checks.test.ts has it with nvcc',
  },
  {
    target: 'fake-cuda',
    rule: 'S1003',
    title: 'branches run at the same time: their kernels wait for each other',
    reason: 'the fake driver runs the nodes of a graph one after another, in an order that their dependencies allow',
  },
];
