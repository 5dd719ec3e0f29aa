// RxJS's timers on a test clock, as in `TestScheduler.run`: operators without a scheduler use the clock too.
//
// RxJS gets timers and the time from small objects that accept a delegate. Its index does not export them, but
// its package exports their files. `asapScheduler` stays as it is: it runs in a microtask, which the clock lets happen.
import { createRequire } from 'node:module';
import { StateError, UnavailableError } from '../core/base/errors.js';
import { Scheduler } from './test-scheduler.js';

/** What moves the time. */
interface Time {
  readonly now: number;
  after(ms: number, call: () => void): () => void;
}

type Handler = (...args: unknown[]) => void;
interface Provider {
  delegate: object | undefined;
}

const PROVIDERS = ['dateTimestampProvider', 'performanceTimestampProvider', 'intervalProvider', 'timeoutProvider'] as const;
type Providers = Readonly<Record<(typeof PROVIDERS)[number], Provider>>;
let loaded: Providers | undefined;
let isUsed = false;

function providers(): Providers {
  loaded ??= load();
  return loaded;
}

function load(): Providers {
  try {
    return {
      ...createRequire(import.meta.url)('rxjs/internal/scheduler/dateTimestampProvider'),
      ...createRequire(import.meta.url)('rxjs/internal/scheduler/performanceTimestampProvider'),
      ...createRequire(import.meta.url)('rxjs/internal/scheduler/intervalProvider'),
      ...createRequire(import.meta.url)('rxjs/internal/scheduler/timeoutProvider'),
    } as Providers;
  } catch (cause) {
    const message = 'This version of rxjs has no timers that a test clock could replace.';
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, ['Install a release of rxjs 7.'], { cause });
  }
}

/** Lets RxJS use this time until the returned function is called. Throws StateError while it uses another. */
export function useVirtualTime(time: Time): () => void {
  const { dateTimestampProvider, performanceTimestampProvider, intervalProvider, timeoutProvider } = providers();
  if (isUsed || intervalProvider.delegate !== undefined)
    throw new StateError('ERR_MILLRACE_STATE', 'Another run of a test clock or of a TestScheduler is under way in this process.');
  isUsed = true;
  const { frameTimeFactor } = Scheduler;
  Scheduler.frameTimeFactor = 1;
  const now = { now: () => time.now };
  dateTimestampProvider.delegate = now;
  performanceTimestampProvider.delegate = now;
  const timers = timersOf(time);
  intervalProvider.delegate = timers;
  timeoutProvider.delegate = timers;
  return () => {
    isUsed = false;
    Scheduler.frameTimeFactor = frameTimeFactor;
    for (const name of PROVIDERS) providers()[name].delegate = undefined;
  };
}

/** The global timer functions on a virtual time. */
function timersOf(time: Time): object {
  const cancels: Map<number, () => void> = new Map();
  let last = 0;
  const clear = (id: number): void => {
    cancels.get(id)?.();
    cancels.delete(id);
  };
  return {
    setTimeout: (handler: Handler, ms = 0, ...args: unknown[]) => {
      const id = ++last;
      cancels.set(
        id,
        time.after(ms, () => {
          cancels.delete(id);
          handler(...args);
        }),
      );
      return id;
    },
    setInterval: (handler: Handler, ms = 0, ...args: unknown[]) => {
      const id = ++last;
      const wait = (): void =>
        void cancels.set(
          id,
          time.after(ms, () => {
            // The handler may clear it.
            wait();
            handler(...args);
          }),
        );
      wait();
      return id;
    },
    clearTimeout: clear,
    clearInterval: clear,
  };
}
