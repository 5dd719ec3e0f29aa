// In place of src/core/base/timers.ts, for tests that replace the global timers: `vi.mock('.../timers.js', () => import('.../global-timers.js'))`.
import type * as timers from '../../src/core/base/timers.js';

type Timers = typeof timers;

export const setTimeout = ((...args: Parameters<typeof globalThis.setTimeout>) => globalThis.setTimeout(...args)) as Timers['setTimeout'];
export const clearTimeout: Timers['clearTimeout'] = (timer) => globalThis.clearTimeout(timer);
export const setImmediate = ((...args: Parameters<typeof globalThis.setImmediate>) =>
  globalThis.setImmediate(...args)) as Timers['setImmediate'];
export const queueMicrotask: Timers['queueMicrotask'] = (call) => globalThis.queueMicrotask(call);
export const performance: Timers['performance'] = { now: () => globalThis.performance.now() };
export const Date: Timers['Date'] = { now: () => globalThis.Date.now() };
