// What the devices of this thread do now, for those who look at it from outside: the page of the live view, and `npx millrace top`.
// Thread: owner.
import { basename } from 'node:path';
import type { DeviceTelemetry } from '../core/api/telemetry.js';
import type { Device } from '../core/api/device.js';
import { onEnter, onLeave, openDevices } from '../core/api/open-devices.js';
import { performance } from '../core/base/timers.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { compacted, LiveOperations, type LiveSlice } from './live-operations.js';

/** Telemetry is asked for so often, while somebody looks. */
const TELEMETRY_MS = 1000;
const MOST_TEXT = 200;

/** What a stream has pending. */
export interface LiveStream {
  readonly stream: string;
  readonly pending: number;
  /** The first pending operation: its label, or its kind. */
  readonly current?: string;
  /** A sentence of `device.whatAreYouWaitingFor()`. */
  readonly waiting?: string;
}

/** A device, now. */
export interface LiveDevice {
  readonly device: string;
  readonly name: string;
  readonly state: Device['state'];
  /** Why it was lost. */
  readonly error?: string;
  readonly operationsPerSecond: number;
  readonly pending: number;
  readonly streams: readonly LiveStream[];
  readonly telemetry?: DeviceTelemetry;
}

/** What one program serves. */
export interface LiveProgram {
  readonly pid: number;
  readonly title: string;
  /** In milliseconds of the program's `performance.now()`. */
  readonly nowMs: number;
  readonly devices: readonly LiveDevice[];
}

/** Slices of one stream, as the page gets them: kind, label, start, end, number of operations. */
export interface LiveRow {
  readonly device: string;
  readonly stream: string;
  readonly slices: readonly (readonly [kind: string, label: string, startMs: number, endMs: number, count: number])[];
}

interface Watched {
  /** One of those that have it open. */
  device: Device;
  readonly operations: LiveOperations | undefined;
  telemetry?: DeviceTelemetry;
  askedMs: number;
  goneMs?: number;
}

/** The devices that are served. */
export class LiveDevices {
  readonly #devices: Map<DeviceCore, Watched> = new Map();
  readonly #keptMs: number;
  readonly #deviceTimes: boolean;

  /** Without `devices`: all that are open or will be. */
  constructor(devices: readonly Device[] | undefined, keptMs: number, deviceTimes: boolean) {
    this.#keptMs = keptMs;
    this.#deviceTimes = deviceTimes;
    for (const device of devices ?? openDevices()) this.#enter(device);
    if (devices === undefined) onEnter.add(this.#enter);
    onLeave.add(this.#leave);
  }

  end(): void {
    onEnter.delete(this.#enter);
    onLeave.delete(this.#leave);
    for (const { operations } of this.#devices.values()) operations?.end();
    this.#devices.clear();
  }

  /** Call it every few milliseconds. A device that is gone stays as long as its operations. */
  read(): void {
    const now = performance.now();
    for (const [core, { operations, goneMs }] of this.#devices) {
      operations?.read(now);
      if (goneMs === undefined || goneMs > now - this.#keptMs) continue;
      operations?.end();
      this.#devices.delete(core);
    }
  }

  now(): LiveProgram {
    const title = [basename(process.execPath), ...(process.argv[1] === undefined ? [] : [basename(process.argv[1])])].join(' ');
    const devices = [...this.#devices.values()].map((watched) => this.#look(watched));
    return { pid: process.pid, title: shortened(title), nowMs: performance.now(), devices };
  }

  /** What has ended since the last call. `most`: slices of a stream. */
  fresh(most: number): LiveRow[] {
    return this.#rows((operations) => operations.takeFresh(), most);
  }

  /** Everything that is kept. */
  all(most: number): LiveRow[] {
    return this.#rows(({ slices }) => slices, most);
  }

  #rows(of: (operations: LiveOperations) => readonly LiveSlice[], most: number): LiveRow[] {
    return [...this.#devices.values()].flatMap(({ device, operations }) =>
      [...compacted(operations === undefined ? [] : of(operations), most)].map(([stream, list]) => ({
        device: device.info.id,
        stream: shortened(stream),
        slices: list.map(
          ({ kind, label, startMs, endMs, count }) => [kind, shortened(label), rounded(startMs), rounded(endMs), count] as const,
        ),
      })),
    );
  }

  #look(watched: Watched): LiveDevice {
    const { device, operations, telemetry } = watched;
    const { state, streams } = device.inspect();
    if (state === 'open') this.#ask(watched);
    const sentences = state === 'open' ? device.whatAreYouWaitingFor() : [];
    const { lostError } = device.core;
    return {
      device: device.info.id,
      name: device.info.name,
      state,
      ...(lostError !== undefined && state === 'lost' && { error: lostError.message }),
      operationsPerSecond: operations?.operationsPerSecond ?? 0,
      pending: streams.reduce((sum, { pending }) => sum + pending, 0),
      streams: streams.map(({ stream, pending, current }) => {
        const label = current && (current.label ?? current.kind);
        const waiting = sentences.find((one) => one.stream === stream)?.sentence;
        return {
          stream: shortened(stream),
          pending,
          ...(label !== undefined && { current: shortened(label) }),
          ...(waiting !== undefined && { waiting: shortened(waiting) }),
        };
      }),
      ...(telemetry !== undefined && { telemetry }),
    };
  }

  /** The answer is for a later look. */
  #ask(watched: Watched): void {
    const now = performance.now();
    if (watched.askedMs > now - TELEMETRY_MS) return;
    watched.askedMs = now;
    watched.device.telemetry().then(
      (telemetry) => void (watched.telemetry = telemetry),
      // Without NVML there is none.
      () => undefined,
    );
  }

  readonly #enter = (device: Device): void => {
    if (this.#devices.has(device.core) || device.state !== 'open') return;
    const operations = LiveOperations.of(device.core, this.#keptMs, this.#deviceTimes);
    this.#devices.set(device.core, { device, operations, askedMs: Number.NEGATIVE_INFINITY });
  };

  readonly #leave = (device: Device): void => {
    const watched = this.#devices.get(device.core);
    if (watched === undefined) return;
    const other = openDevices().find(({ core }) => core === device.core);
    if (other === undefined) watched.goneMs ??= performance.now();
    else watched.device = other;
  };
}

const rounded = (ms: number): number => Math.round(ms * 1e3) / 1e3;
const shortened = (text: string): string => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text);
