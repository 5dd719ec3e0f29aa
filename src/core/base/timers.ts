// The timers and clocks of the process as they stood when the library was imported. Fake timers of tests (`vi.useFakeTimers`) replace the
// global ones, and nothing of the library would end until the test moves their time. So no other file uses the global ones.
const real: typeof globalThis = globalThis;

export const setTimeout: typeof real.setTimeout = real.setTimeout;
export const clearTimeout: typeof real.clearTimeout = real.clearTimeout;
export const setImmediate: typeof real.setImmediate = real.setImmediate;
export const clearImmediate: typeof real.clearImmediate = real.clearImmediate;
export const queueMicrotask: typeof real.queueMicrotask = real.queueMicrotask;
// Fake timers replace the method of the global object.
export const performance: { now(): number } = { now: real.performance.now.bind(real.performance) };
export const Date: { now(): number } = { now: real.Date.now };
