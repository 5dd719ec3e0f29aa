// `usage`: what a function costs, with everything that it awaits.
//
// AsyncLocalStorage tells which usages the code that submits an operation belongs to. A meter of each device counts the operation for them, and
// adds the device's time when the device tells it.
// Thread: owner.
import { AsyncLocalStorage, type AsyncResource } from 'node:async_hooks';
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { sharedCost } from '../core/base/shared-cost.js';
import { clearTimeout, performance, setTimeout } from '../core/base/timers.js';
import type { Device } from '../core/api/device.js';
import { onEnter, openDevices } from '../core/api/open-devices.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { DeviceMeter } from './device-meter.js';
import { LOOK_MS } from './host-spans.js';
import { type Target, type Usage, UsageScope } from './usage-scope.js';

/** Options of `usage`. */
export interface UsageOptions {
  /**
   * Default true: a GPU tells how long each operation took, by two events around it. With false, `deviceMs` is undefined, unless another
   * usage of this thread asks for the times.
   */
  readonly deviceTimes?: boolean;
}

/** What `usage` returns. */
export interface Measured<T> {
  /** The result of the function: rejects with its error. */
  readonly value: Promise<T>;
  /**
   * Resolves when the function has settled and the operations that it submitted before have ended. Never rejects: a function that fails
   * has cost something, too.
   */
  readonly used: Promise<Usage>;
}

/** Devices are metered for so long after the last usage, because a service begins the next one soon. */
const LINGER_MS = 1000;

/** What code counts for: the usages that enclose it. */
interface Context {
  targets: readonly Target[];
}

const NOTHING: readonly Target[] = [];
const storage: AsyncLocalStorage<Context> = new AsyncLocalStorage();

/** The usages that have not ended, of this code. */
function current(): readonly Target[] {
  const context = storage.getStore();
  if (context === undefined) return NOTHING;
  if (context.targets.some(({ scope }) => scope.isOver)) context.targets = context.targets.filter(({ scope }) => !scope.isOver);
  return context.targets;
}

/** The meters of this thread's devices while there are usages. */
class Meters {
  readonly #meters: Map<DeviceCore, DeviceMeter> = new Map();
  #users = 0;
  #deviceTimes = false;
  #timer: NodeJS.Timeout | undefined;
  #idleSinceMs = 0;

  begin(deviceTimes: boolean): void {
    this.#users++;
    if (deviceTimes && !this.#deviceTimes) {
      this.#deviceTimes = true;
      for (const meter of this.#meters.values()) meter.askForTimes();
    }
    if (this.#timer !== undefined) return;
    sharedCost.run = runShared;
    for (const device of openDevices()) this.#onEnter(device);
    onEnter.add(this.#onEnter);
    this.#look();
  }

  async end(scope: UsageScope): Promise<void> {
    const cores = new Set([...scope.points.values()].map(({ core }) => core));
    const meters = [...this.#meters.values()].filter(({ core }) => cores.has(core));
    // A device that is lost reaches nothing more.
    await Promise.all(
      [...scope.points].map(([timeline, { core, ticket }]) => core.waits.reach(timeline, ticket, []).catch(() => undefined)),
    );
    for (const meter of meters) meter.read();
    if (scope.untold > 0) {
      await Promise.all(meters.map((meter) => meter.ending()));
    }
    scope.isFinal = true;
    if (scope.untold > 0) for (const meter of meters) meter.forget();
    this.#users--;
    this.#idleSinceMs = performance.now();
  }

  readonly #onEnter = ({ core, state }: Device): void => {
    if (state !== 'open' || this.#meters.has(core)) return;
    const meter = new DeviceMeter(core, current);
    this.#meters.set(core, meter);
    if (this.#deviceTimes) meter.askForTimes();
  };

  #look(): void {
    for (const meter of this.#meters.values()) meter.read();
    for (const [core, meter] of this.#meters) {
      if (!core.isGone) continue;
      meter.end();
      this.#meters.delete(core);
    }
    if (this.#users === 0 && performance.now() - this.#idleSinceMs > LINGER_MS) this.#stop();
    else this.#timer = setTimeout(() => this.#look(), LOOK_MS).unref();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    onEnter.delete(this.#onEnter);
    for (const meter of this.#meters.values()) meter.end();
    this.#meters.clear();
    this.#deviceTimes = false;
    sharedCost.run = undefined;
  }
}

const meters = new Meters();

function runShared<T>(contexts: readonly AsyncResource[], fn: () => T): T {
  const shares: Map<UsageScope, number> = new Map();
  for (const context of contexts)
    for (const { scope, share } of context.runInAsyncScope(current)) shares.set(scope, (shares.get(scope) ?? 0) + share / contexts.length);
  const targets = [...shares].map(([scope, share]) => ({ scope, share }));
  return (contexts[0] as AsyncResource).runInAsyncScope(() => storage.run({ targets }, fn));
}

/**
 * Calls `fn` and counts what it and everything that it awaits or starts cost: milliseconds of devices, operations, launches, and bytes that
 * were copied and allocated. It counts across `await`, `overlap` and `createLanes`, and a batch of `createBatcher` counts for its requests in
 * equal parts. An outer usage has the cost of inner ones, too; usages side by side have each their own. Throws ArgumentError at the call for
 * what is no function and for wrong options; an error of `fn` is in `value`. PyTorch's `profile`, `wp.ScopedTimer`.
 * @example
 * const { value, used } = usage(() => answer(request));
 * void used.then(({ deviceMs, bytesToDevice }) => log(request.id, deviceMs, bytesToDevice));
 * return value;
 */
export function usage<T>(fn: () => T | PromiseLike<T>, opts: UsageOptions = {}): Measured<T> {
  if (arguments.length > 2) refuseSurplus('usage', arguments, 2);
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The function to measure (${show(fn)}) is not a function.`);
  checkOptionNames(opts, ['deviceTimes']);
  const { deviceTimes = true } = opts;
  if (typeof deviceTimes !== 'boolean')
    throw badArgument('deviceTimes', deviceTimes, `The option deviceTimes (${show(deviceTimes)}) is neither true nor false.`);
  const scope = new UsageScope();
  const startMs = performance.now();
  const targets = [{ scope, share: 1 }, ...current()];
  meters.begin(deviceTimes);
  const value = storage.run({ targets }, () => call(fn));
  const end = async (): Promise<Usage> => {
    const elapsedMs = performance.now() - startMs;
    scope.isOver = true;
    await meters.end(scope);
    return scope.result(elapsedMs);
  };
  return { value, used: value.then(end, end) };
}

/** An error of the function rejects. */
async function call<T>(fn: () => T | PromiseLike<T>): Promise<T> {
  return await fn();
}
