// The lanes of a run: how many there are on each device, which are free, and their streams.
// Thread: owner.
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import type { Clock } from '../core/base/clock.js';
import { isPromiseLike } from '../core/base/promise-like.js';
import type { Device } from '../core/api/device.js';
import { checkOpenDevice, type DeviceLike } from '../core/api/open-devices.js';
import type { Stream } from '../core/api/stream.js';
import type { Slot } from './lane.js';
import { LaneMemory } from './lane-memory.js';
import { clearTimeout, setTimeout } from '../core/base/timers.js';

/** One device, or several, each also by the name of an open one. */
export type Devices = DeviceLike | readonly DeviceLike[];

const DEFAULT_DEPTH = 3;
/** Each lane uses a stream; a larger number is probably meant as a queue length. */
const MAX_DEPTH = 1024;
/** A free lane keeps the memory of its last item at least for this time. */
const IDLE_MS = 20;
/** `depth: 'auto'` starts with `first` lanes per device and adds lanes up to `most`. */
const AUTO_DEPTH = { first: DEFAULT_DEPTH, most: 64 } as const;

export interface LaneLayout {
  readonly devices: readonly Device[];
  /** Lanes on each device at the start. */
  readonly depth: number;
  readonly isAuto: boolean;
  readonly streams: readonly Stream[] | undefined;
  /** The devices'. */
  readonly clock: Clock;
}

/** Checks the devices, `depth` and `streams` of a call. */
export function checkLayout(devices: Devices, depth: number | 'auto' | undefined, streams: readonly Stream[] | undefined): LaneLayout {
  const list = (Array.isArray(devices) ? (devices as readonly unknown[]) : [devices]).map(checkDevice);
  if (list.length === 0) throw badArgument('device', devices, 'The list of devices is empty.', 1);
  const { clock } = (list[0] as Device).core;
  if (list.some((device) => device.core.clock !== clock))
    throw badArgument('device', devices, 'The devices of the run have different clocks: create all test devices of a run with one clock.');
  if (streams !== undefined) {
    if (!Array.isArray(streams) || streams.length === 0)
      throw badArgument('streams', streams, 'streams is not a list of at least one stream.', 1);
    const foreign = streams.find((stream) => !list.some((device) => stream.device.core === device.core));
    if (foreign)
      throw badArgument('streams', foreign, `Stream ${foreign.label} belongs to a device that is not among the devices of the run.`);
    const idle = list.find((device) => !streams.some((stream) => stream.device.core === device.core));
    if (idle) throw badArgument('streams', streams, `The list streams has no stream of device ${idle.core.name}.`);
  }
  const isAuto = depth === 'auto';
  const given = isAuto ? AUTO_DEPTH.first : (depth ?? streams?.length ?? DEFAULT_DEPTH);
  return { devices: list, depth: checkInteger('depth', given, 1, MAX_DEPTH), isAuto, streams, clock };
}

/** A run on a device that is closed ends with the error of its first call. */
function checkDevice(device: unknown): Device {
  if (typeof device === 'string') return checkOpenDevice('device', device);
  const { core, createStream } = (device ?? {}) as Partial<Device>;
  if (core !== undefined && typeof createStream === 'function') return device as Device;
  throw badArgument('device', device, `The device (${show(device)}) is not a Device${isPromiseLike(device) ? ': await it first' : ''}.`);
}

interface DeviceLanes {
  readonly device: Device;
  readonly streams: readonly Stream[] | undefined;
  readonly free: Slot[];
  /** Lanes that were dropped, for `grow`. */
  readonly spare: Slot[];
  count: number;
  busy: number;
  /** Lanes to drop when they are next released. */
  surplus: number;
}

export class LanePool {
  readonly #lanes: DeviceLanes[];
  readonly #ownStreams: Set<Stream> = new Set();
  readonly #abandoned: Set<Stream> = new Set();
  readonly #memories: LaneMemory[] = [];
  #nextIndex = 0;
  #idleTimer: NodeJS.Timeout | undefined = undefined;

  /** Creates the streams. If `createStream` throws, closes the streams created so far and throws its error. */
  constructor({ devices, depth, streams }: LaneLayout) {
    this.#lanes = devices.map((device) => {
      const own = streams?.filter((stream) => stream.device.core === device.core);
      return { device, streams: own, free: [], spare: [], count: 0, busy: 0, surplus: 0 };
    });
    try {
      for (let at = 0; at < depth; at++) for (const lanes of this.#lanes) this.#add(lanes);
      // `pop` takes lane 0 first.
      for (const lanes of this.#lanes) lanes.free.reverse();
    } catch (error) {
      void this.close().catch(() => undefined);
      throw error;
    }
  }

  /** Lanes that take items, over all devices. */
  get count(): number {
    return this.#sum(({ count, surplus }) => count - surplus);
  }

  get free(): number {
    return this.#sum(({ free }) => free.length);
  }

  get busy(): number {
    return this.#sum(({ busy }) => busy);
  }

  /** A free lane of the device with the fewest busy ones. */
  acquire(): Slot | undefined {
    let least: DeviceLanes | undefined;
    for (const lanes of this.#lanes) if (lanes.free.length > 0 && (!least || lanes.busy < least.busy)) least = lanes;
    const slot = least?.free.pop();
    if (least === undefined || slot === undefined) return undefined;
    least.busy++;
    slot.memory.isIdle = false;
    return slot;
  }

  release(slot: Slot): void {
    const lanes = this.#lanes.find(({ device }) => device === slot.device) as DeviceLanes;
    lanes.busy--;
    if (lanes.surplus === 0) {
      lanes.free.push(slot);
      if (!slot.memory.isEmpty) this.#clearIdleSoon();
      return;
    }
    lanes.surplus--;
    this.#drop(lanes, slot);
  }

  /** Adds lanes to each device, up to the limit of 'auto'. False if the limit is reached already. */
  grow(by: number): boolean {
    const lanes = this.#lanes.filter(({ count, surplus }) => count - surplus < AUTO_DEPTH.most);
    for (const each of lanes) {
      for (let n = Math.min(by, AUTO_DEPTH.most - each.count + each.surplus); n > 0; n--) {
        if (each.surplus > 0) each.surplus--;
        else this.#add(each);
      }
    }
    return lanes.length > 0;
  }

  /** Drops this many lanes of each device when they are next released. Whoever saw a free lane may still count on it. */
  shrink(by: number): void {
    for (const lanes of this.#lanes) lanes.surplus += by;
  }

  /** Excludes the lane's stream from `close`, which would wait for operations of a stage that exceeded its time limit. */
  abandon({ stream }: Slot): void {
    if (this.#ownStreams.delete(stream)) this.#abandoned.add(stream);
  }

  /** Closes the streams that the lanes created, after their operations. */
  async close(): Promise<void> {
    clearTimeout(this.#idleTimer);
    for (const memory of this.#memories) memory.close();
    for (const stream of this.#abandoned) stream.close().catch(() => undefined);
    this.#abandoned.clear();
    const streams = [...this.#ownStreams];
    this.#ownStreams.clear();
    await Promise.all(streams.map((stream) => stream.close()));
  }

  #drop(lanes: DeviceLanes, slot: Slot): void {
    lanes.count--;
    slot.memory.clear();
    lanes.spare.push(slot);
  }

  /** Frees the memory of lanes that stay free for IDLE_MS or up to twice as long. */
  #clearIdleSoon(): void {
    this.#idleTimer ??= setTimeout(() => {
      this.#idleTimer = undefined;
      let areAllCleared = true;
      for (const { free } of this.#lanes) {
        for (const { memory } of free) {
          if (memory.isIdle) memory.clear();
          memory.isIdle = true;
          areAllCleared &&= memory.isEmpty;
        }
      }
      if (!areAllCleared) this.#clearIdleSoon();
    }, IDLE_MS).unref();
  }

  #add(lanes: DeviceLanes): void {
    const spare = lanes.spare.pop();
    if (spare !== undefined) {
      lanes.count++;
      return void lanes.free.push(spare);
    }
    const index = this.#nextIndex++;
    let stream = lanes.streams?.[lanes.count % lanes.streams.length];
    if (!stream) this.#ownStreams.add((stream = lanes.device.createStream({ label: `lane ${String(index)}` })));
    lanes.count++;
    const memory = new LaneMemory();
    this.#memories.push(memory);
    lanes.free.push({ index, device: lanes.device, stream, memory });
  }

  #sum(of: (lanes: DeviceLanes) => number): number {
    let sum = 0;
    for (const lanes of this.#lanes) sum += of(lanes);
    return sum;
  }
}
