// `millrace/testing`: pipelines in virtual time, on devices without native code.
import { installObservableFactory } from '../core/base/observable.js';
import { observableOf } from '../reactive/index.js';

installObservableFactory(observableOf);

export { createTestClock } from './clock.js';
export type { TestClock, TestClockOptions, TestRunOptions } from './clock.js';
export { createTestDevice } from './device.js';
export type { TestDeviceOptions } from './device.js';
export type { CopyMs } from './channel.js';
export { expectNoLeaks } from './leaks.js';
export type { LeakOptions } from './leaks.js';
export { testKernel } from './kernels.js';
export type { TestKernel, TestKernelArgs, TestKernelOptions, TestLaunch } from './kernels.js';
export type { Marbles } from './marbles.js';
export { expectNoRaces } from './races.js';
export type { RaceOptions } from './races.js';
export { expectNoGap, expectOverlap } from './recordings.js';
export type { NamedOperation } from './recordings.js';
