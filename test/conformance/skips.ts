// Rules that a target is known to break, and why. A listed rule still runs: if it passes, the run fails.
import type { RuleNumber } from '../support/rule.js';

export interface Skip {
  /** A part of the run's name: `cuda` of `cuda`, `isolated` of `cpu, isolated`. */
  readonly target: string;
  readonly rule: RuleNumber;
  /** One test of the rule; all of them when left out. */
  readonly title?: string;
  readonly reason: string;
  /** It would leave its devices open for the tests behind it, or spin. */
  readonly isNotRun?: boolean;
}

/** Tests that use what S633 refuses, by rule. */
const REFUSED_APART: Readonly<Record<RuleNumber, readonly string[]>> = {
  S118: ['every stream has a separate handle and works as a key of a Map'],
  S119: ['a wrapped stream is used and not destroyed; its handle gives one Stream'],
  S308: [
    'a dispose waits on the device for the copies that use the memory',
    'pin page-locks existing memory in place and does not free it',
  ],
  S310: ['the getters of a subclass of a typed array are not called'],
  S367: ['the same holds for memory that the caller pinned, of any class'],
  S369: ['calls that take the name of an element type refuse the names of other libraries with the right spelling'],
  S373: ['pinned arrays with two dimensions, in structs, and memory that the caller made'],
  S471: ['arrays of one variable share its memory, which outlives them', 'static variables, structs and pointers are arrays of their size'],
  S504: ['synchronize of a device, and of all devices, waits for the streams of other threads'],
  S523: [
    'addresses are those of the first elements of arrays and views, and handles are of the stream',
    'foreign work runs behind earlier operations and before later ones',
    'the function is called when earlier work was submitted to a GPU, and when it has finished on the host',
  ],
  S524: ['the arrays order streams, and are hazards of checked streams'],
  S525: [
    'a failure that is noticed while the function runs poisons what it wrote',
    'a failure that no promise reports reaches errors$',
    'a function that fails fails the operation, and poisons what it should have written',
    'failures one after another have the errors of their own functions',
    'the function is not called if what it reads is poisoned',
  ],
  S526: [
    'a promise stops its stream, and no other, until it settles',
    'a promise that takes longer than timeoutMs fails the operation, and its stream continues',
    'a signal that aborts first prevents the call, and later reaches the function',
  ],
  S527: [
    'a device that is closed or destroyed while the function runs ends it',
    'a wait for the stream inside the function is refused at once',
    'memory that is disposed while the function runs is freed after it',
  ],
  S530: ['1000 items with foreign work, aborted at random, leave nothing behind'],
  S813: [
    'another thread opens the device by its token and has streams of its own',
    'in the thread that opened the device, the token gives another Device of it',
    'what is no token is an ArgumentError, the token of a device that is gone a DeviceLostError',
  ],
  S814: [
    'an array that was disposed before it was adopted fails what uses it',
    'nothing that derives from a failed kernel of another thread is given out, there and back',
    'the first use of an adopted array waits for what the other thread submitted, on the device',
    'what is no token of an array, or of one on another device, is an ArgumentError',
  ],
  S815: ['pinned memory passes to another thread as it is, and is pinned there again'],
  S816: ['the Devices of other threads are lost when the opener closes the device'],
  S817: ['a thread that ends takes nothing along: its streams end, its memory is freed, others go on'],
  S950: ['memory that an operation may still use, or that something outside refers to, is not taken over'],
  S1029: ['launch of a graph with a stream, and record with two arguments, say how the call is written'],
  S1234: ['each thread that shares a device measures its own operations'],
  S1235: ['a call that throws and an operation that fails tell their errors, and errors$ still has the failure'],
};

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
    reason:
      'the fake driver runs the nodes of a graph one after another, in an order that their dependencies allow: they would spin for seconds',
    isNotRun: true,
  },
  ...Object.entries(REFUSED_APART).flatMap(([rule, titles]) =>
    titles.map((title) => ({
      target: 'isolated',
      rule: rule as RuleNumber,
      title,
      reason: 'S633 refuses pointers, handles, memory of others and other threads',
      isNotRun: true,
    })),
  ),
];
