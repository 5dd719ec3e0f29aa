// `device.telemetry()` and `device.telemetry$()`: load, memory, clocks, temperature and power of a device, by NVML or by the process.
// Thread: owner.
import type { GpuReport } from '../../protocol/reports.js';
import type { Listener, Observed } from '../base/observable.js';
import { performance } from '../base/timers.js';
import type { DeviceCore } from '../device/device-core.js';
import type { DeviceName } from './device-info.js';

/** Why a GPU runs with lower clocks than it could, by NVML's names: `nvmlClocksEventReasons`. 'other' is one that is newer than this version. */
export type ThrottleReason =
  | 'gpu-idle'
  | 'applications-clocks-setting'
  | 'sw-power-cap'
  | 'hw-slowdown'
  | 'sync-boost'
  | 'sw-thermal-slowdown'
  | 'hw-thermal-slowdown'
  | 'hw-power-brake-slowdown'
  | 'display-clock-setting'
  | 'other';

/** In the order of NVML's bits. */
const REASONS: readonly ThrottleReason[] = [
  'gpu-idle',
  'applications-clocks-setting',
  'sw-power-cap',
  'hw-slowdown',
  'sync-boost',
  'sw-thermal-slowdown',
  'hw-thermal-slowdown',
  'hw-power-brake-slowdown',
  'display-clock-setting',
];

/** A fault that the driver reported of a GPU: the number in NVIDIA's list of XID errors. */
export interface XidError {
  /** 79 for example: the GPU has fallen off the bus. */
  readonly code: number;
  /** When it was noticed, in milliseconds of `performance.now()`. */
  readonly noticedMs: number;
}

/** The values of NVML, as `nvidia-smi --query-gpu` has them. A value that the device or its driver does not tell is undefined. */
export interface GpuTelemetry {
  /** `nvmlDeviceGetUUID`. Undefined for a CPU device. */
  readonly uuid?: string;
  /** It is a slice of a GPU (MIG). The clocks, temperature, power, reasons and errors are then those of the whole GPU, if they are told. */
  readonly isSlice: boolean;
  /**
   * The share of the last sampling period (up to 1 s) in which a kernel ran: `utilization.gpu`. A slice has none. Of the CPU device, the
   * processor time of this process since the last answer, of all processors that it may use.
   */
  readonly busyPercent?: number;
  /** The share of that period in which device memory was read or written: `utilization.memory`. */
  readonly memoryBusyPercent?: number;
  /** Memory that all processes use: `memory.used`. Of the CPU device, what this process uses (its resident set). */
  readonly memoryUsedBytes?: number;
  /** `memory.total`; of the CPU device, `info.totalMemoryBytes`. */
  readonly memoryTotalBytes?: number;
  /** `clocks.gr`. */
  readonly graphicsClockMHz?: number;
  /** `clocks.sm`: of the multiprocessors. */
  readonly smClockMHz?: number;
  /** `clocks.mem`. */
  readonly memoryClockMHz?: number;
  /** `temperature.gpu`. */
  readonly temperatureC?: number;
  /** `power.draw`. */
  readonly powerW?: number;
  /** `enforced.power.limit`. */
  readonly powerLimitW?: number;
  /** `clocks_event_reasons.active`. An idle GPU names 'gpu-idle'. */
  readonly throttleReasons: readonly ThrottleReason[];
  /** The newest 16 that were noticed since this process first asked for the GPU, the newest last. */
  readonly xidErrors: readonly XidError[];
}

/** What a device measures of itself: plain data. */
export interface DeviceTelemetry extends GpuTelemetry {
  /** The device's id, for example 'cuda:0'. */
  readonly device: DeviceName;
  /** When it was read, in milliseconds of `performance.now()`. */
  readonly atMs: number;
}

/** What NVML answered. */
export function ofReport({ uuid, name: _, isSlice, throttleBits = 0, xids, ...values }: GpuReport): GpuTelemetry {
  const known = 2 ** REASONS.length;
  const reasons = REASONS.filter((_reason, bit) => Math.floor(throttleBits / 2 ** bit) % 2 === 1);
  const now = performance.now();
  return {
    uuid,
    isSlice,
    ...values,
    throttleReasons: throttleBits >= known ? [...reasons, 'other'] : reasons,
    xidErrors: xids.map(({ code, agoMs }) => ({ code, noticedMs: now - agoMs })),
  };
}

/** The telemetry of one device. */
export class Telemetry {
  readonly #core: DeviceCore;
  /** Of the CPU device: processor time in microseconds, and when. */
  #used = 0;
  #usedAtMs = performance.now() - process.uptime() * 1e3;

  constructor(core: DeviceCore) {
    this.#core = core;
  }

  async read(): Promise<DeviceTelemetry> {
    const { channel, clock, name } = this.#core;
    const values = channel.backend === 'cpu' ? this.#ofProcess() : ofReport(await channel.ask('telemetry'));
    return { device: name as DeviceName, atMs: clock.now(), ...values };
  }

  #ofProcess(): GpuTelemetry {
    const { user, system } = process.cpuUsage();
    const now = performance.now();
    const used = user + system;
    const { multiprocessors, totalMemoryBytes } = this.#core.info;
    const busy = (used - this.#used) / 1e3 / Math.max(now - this.#usedAtMs, 1) / multiprocessors;
    this.#used = used;
    this.#usedAtMs = now;
    return {
      isSlice: false,
      busyPercent: Math.min(100 * busy, 100),
      memoryUsedBytes: process.memoryUsage.rss(),
      memoryTotalBytes: totalMemoryBytes,
      throttleReasons: [],
      xidErrors: [],
    };
  }
}

/** An open Device. */
export interface Measured {
  readonly core: DeviceCore;
  telemetry(): Promise<DeviceTelemetry>;
  refusal(): Error | undefined;
}

/** Who is told of each Device that is closed or lost. */
export interface Leaving {
  add(told: (gone: unknown) => void): unknown;
  delete(told: (gone: unknown) => void): unknown;
}

/** Asks at once and then so often, for each listener, until the Device is closed or lost. An answer that is late is not overtaken. */
export class TelemetryTicks implements Observed<DeviceTelemetry> {
  readonly observed = true;
  readonly #device: Measured;
  readonly #intervalMs: number;
  readonly #leaving: Leaving;

  constructor(device: Measured, intervalMs: number, leaving: Leaving) {
    this.#device = device;
    this.#intervalMs = intervalMs;
    this.#leaving = leaving;
  }

  expect(): () => void {
    return () => undefined;
  }

  add(listener: Listener<DeviceTelemetry>): () => void {
    const device = this.#device;
    const { clock } = device.core;
    let cancel = (): void => undefined;
    let isOver = false;
    const end = (tell?: () => void): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      this.#leaving.delete(left);
      tell?.();
    };
    const left = (gone: unknown): void => void (gone === device && end(() => listener.complete?.()));
    const ask = (): void => {
      const dueMs = clock.now() + this.#intervalMs;
      device.telemetry().then(
        (value) => {
          if (isOver) return;
          listener.next(value);
          // The listener may have ended it.
          if (!isOver) cancel = clock.after(Math.max(dueMs - clock.now(), 0), ask);
        },
        (error: unknown) => end(() => (device.refusal() === undefined ? listener.error?.(error) : listener.complete?.())),
      );
    };
    this.#leaving.add(left);
    ask();
    return () => end();
  }
}
