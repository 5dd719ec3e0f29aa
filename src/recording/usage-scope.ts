// What one call of `usage` has counted so far.
// Thread: owner.
import type { DeviceCore } from '../core/device/device-core.js';
import type { Timeline } from '../core/timeline/timeline.js';
import { noCounts, type UsageCounts } from './usage-counts.js';

/** What a usage counted. Without `deviceMs`, the device did not tell its times. */
export interface UsageTotals extends Readonly<Omit<UsageCounts, 'deviceMs'>> {
  readonly deviceMs: number | undefined;
  /** The most bytes that were allocated and not yet freed at one time, in the order of the calls. */
  readonly peakBytes: number;
}

export interface DeviceUsage extends UsageTotals {
  /** Its name, such as 'cuda:0'. */
  readonly device: string;
}

/** What a function cost, over all devices. Numbers of bytes are sums; milliseconds of several devices, too. */
export interface Usage extends UsageTotals {
  /** From the call of the function until it returned or its promise settled. */
  readonly elapsedMs: number;
  /** Those that were used, in the order of their first operation. */
  readonly devices: readonly DeviceUsage[];
}

/** A usage that an operation counts for, and which part of the operation: less than 1 for a request of a batch. */
export interface Target {
  readonly scope: UsageScope;
  readonly share: number;
}

interface Held {
  bytes: number;
  peak: number;
}

interface OfDevice extends Held {
  readonly counts: UsageCounts;
  hasTimes: boolean;
}

export class UsageScope {
  /** The function has settled: what is submitted from now on does not count. */
  isOver = false;
  /** Its result was made. */
  isFinal = false;
  /** Operations whose times the device has not told. */
  untold = 0;
  /** The last operation on each stream. */
  readonly points: Map<Timeline, { readonly core: DeviceCore; readonly ticket: number }> = new Map();
  readonly #devices: Map<string, OfDevice> = new Map();
  readonly #held: Held = { bytes: 0, peak: 0 };

  count(device: string, key: keyof UsageCounts, amount: number): void {
    this.#of(device).counts[key] += amount;
  }

  /** Memory was allocated, or, if negative, freed. */
  hold(device: string, bytes: number): void {
    for (const held of [this.#held, this.#of(device)]) {
      held.bytes += bytes;
      held.peak = Math.max(held.peak, held.bytes);
    }
  }

  /** The device does not tell all times. */
  lacksTimes(device: string): void {
    this.#of(device).hasTimes = false;
  }

  result(elapsedMs: number): Usage {
    const devices = [...this.#devices].map(([device, { counts, hasTimes, peak }]) => ({
      device,
      ...counts,
      deviceMs: hasTimes ? counts.deviceMs : undefined,
      peakBytes: peak,
    }));
    const sums = noCounts();
    for (const { counts } of this.#devices.values()) for (const key of Object.keys(sums) as (keyof UsageCounts)[]) sums[key] += counts[key];
    const isTold = devices.every(({ deviceMs }) => deviceMs !== undefined);
    return { elapsedMs, ...sums, deviceMs: isTold ? sums.deviceMs : undefined, peakBytes: this.#held.peak, devices };
  }

  #of(device: string): OfDevice {
    let own = this.#devices.get(device);
    if (own === undefined) this.#devices.set(device, (own = { counts: noCounts(), hasTimes: true, bytes: 0, peak: 0 }));
    return own;
  }
}
