// An open device of this thread: its streams, its default stream, and how it ends. Each `openDevice` call makes a Device of its own, and all
// Devices of one device share its context. The last one to be closed closes the device.
// Thread: owner.
import { DeviceLostError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import { DESTROY_MS } from '../device/hung-device.js';
import { InternalStreams } from '../device/internal-streams.js';
import type { Ordering } from '../device/stream-context.js';
import { waitForDevices } from '../device/synchronize-devices.js';
import { MemoryPool } from '../memory/memory-pool.js';
import type { Storage } from '../memory/storage.js';
import { Observation } from '../operations/observation.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlockAtEnd } from '../waits/deadlock-check.js';
import { diagnoseWait } from '../waits/wait-diagnosis.js';
import { checkWaitCall, type WaitOptions, waitWith } from '../waits/wait.js';
import type { Device } from './device.js';
import type { DeviceOwner } from './device-info.js';
import { leave } from './open-devices.js';
import { Partitions, type Partition } from './partition.js';
import { Stream } from './stream.js';
import { WrappedStreams } from './wrapped-streams.js';

/** How a stream is made. */
export interface StreamSettings {
  readonly priority: number;
  readonly ordering: Ordering;
  readonly timing: boolean;
  readonly foreign?: bigint;
  readonly partition?: Partition | undefined;
}

export class DeviceContext {
  readonly core: DeviceCore;
  readonly owner: DeviceOwner;
  /** Explicit streams that are made from now on are checked. */
  checksExplicit = false;
  readonly pool: MemoryPool;
  /** Aborted with the DeviceLostError when the device is lost. */
  readonly signal: AbortSignal;
  /** The observers of the operations of all its streams. */
  readonly observation: Observation = new Observation(() => {
    for (const stream of this.#streams.values()) stream.watch();
  });
  readonly defaultStream: Stream;
  readonly partitions: Partitions = new Partitions(this);
  readonly #devices: Set<Device> = new Set();
  readonly #streams: Map<Timeline, Stream> = new Map();
  readonly #readbackStreams: InternalStreams<Stream>;
  readonly #wrapped: WrappedStreams<Stream> = new WrappedStreams();
  #made = 0;
  #closing: Promise<void> | undefined = undefined;

  constructor(core: DeviceCore, owner: DeviceOwner) {
    this.core = core;
    this.owner = owner;
    const aborter = new AbortController();
    this.signal = aborter.signal;
    core.onLost = (error) => {
      const ending = [...this.#streams.values()].map((stream) => stream.finish(error)).filter((rest) => rest !== undefined);
      if (ending.length === 0) this.observation.end(error);
      else void Promise.all(ending).then(() => this.observation.end(error));
      this.#leave();
      aborter.abort(error);
    };
    core.isChecked = owner.ordering === 'checked';
    this.defaultStream = this.makeStream(undefined, 'default', { priority: 0, ordering: owner.ordering, timing: false });
    this.pool = new MemoryPool(core);
    core.home = this.defaultStream.timeline;
    this.#readbackStreams = new InternalStreams(
      'readback',
      (nth) => this.makeStream(undefined, nth === 1 ? 'readback' : `readback-${nth}`, { priority: 0, ordering: 'tracked', timing: false }),
      ({ timeline }) => timeline.isComplete,
    );
  }

  // ── its Devices ──

  join(device: Device): void {
    this.#devices.add(device);
  }

  /** Is the Device open, or was it the last one to be closed? */
  has(device: Device): boolean {
    return this.#devices.has(device);
  }

  /** `maker`, the Device that made an object; if it is closed and others are open, the oldest of these. */
  deviceOf(maker: Device | undefined): Device {
    if (maker !== undefined && this.#devices.has(maker)) return maker;
    const [oldest = maker] = this.#devices;
    return oldest as Device;
  }

  // ── streams ──

  get streams(): Iterable<Stream> {
    return this.#streams.values();
  }

  get timelines(): Iterable<Timeline> {
    return this.#streams.keys();
  }

  /** Makes a stream. `maker` is undefined for streams that belong to all Devices. */
  makeStream(maker: Device | undefined, label: string | undefined, opts: StreamSettings): Stream {
    const error = this.core.refuseIfOver();
    if (error !== undefined) throw error;
    const name = label ?? `${opts.foreign === undefined ? 'stream' : 'foreign'}-${++this.#made}`;
    const stream = new Stream(this, maker, this.core.openTimeline(name, opts.priority, opts.foreign, opts.partition), opts);
    this.#streams.set(stream.timeline, stream);
    return stream;
  }

  /** The stream with this driver handle. It is made if there is none. */
  wrapStream(maker: Device, handle: bigint, label: string | undefined, owner: object | undefined): Stream {
    const known = this.#wrapped.find(handle, owner);
    if (known !== undefined) return known;
    for (const stream of this.#streams.values())
      if (stream.isOpen && this.core.channel.streamHandle(stream.timeline.slot) === handle) return stream;
    const { ordering } = this.owner;
    const stream = this.makeStream(maker, label, { priority: 0, ordering, timing: false, foreign: handle });
    this.#wrapped.add(handle, stream, owner);
    return stream;
  }

  /** The stream for a `read` of these bytes: one that waits for nothing but their last writes. */
  readStream(storage: Storage, start: number, end: number): Stream {
    const { core, defaultStream } = this;
    const writes = storage.lastWrites(start, end);
    const [first] = writes;
    const isOne = writes.every(({ timeline }) => timeline === first?.timeline);
    const writer = first !== undefined && isOne ? this.#streams.get(first.timeline) : undefined;
    // The stream that wrote them, unless later work was submitted to it.
    if (writer?.isOpen === true) {
      const { last, isComplete } = writer.timeline;
      if (isComplete || writes.some(({ ticket }) => ticket === last)) return writer;
    }
    // The default stream, if neither the writes nor its own work would delay the read; on a closed device too, where it refuses the read.
    const areReached = writes.every(({ timeline, ticket }) => timeline.hasReached(ticket));
    if ((areReached && defaultStream.timeline.isComplete) || core.state !== 'open') return defaultStream;
    return this.#readbackStreams.take();
  }

  /** The stream has closed. */
  forget(stream: Stream): void {
    this.#streams.delete(stream.timeline);
    this.#wrapped.forget(stream);
  }

  // ── the end ──

  /** Closes one Device. The last one closes the device. */
  close(device: Device, opts: WaitOptions | undefined): Promise<void> {
    let limits: WaitOptions;
    try {
      limits = checkWaitCall(opts);
    } catch (error) {
      return Promise.reject(error);
    }
    if (!this.#devices.has(device)) return Promise.resolve();
    const isEnding = this.#closing !== undefined || this.core.state !== 'open';
    if (!isEnding && this.owner.isShared()) {
      this.owner.release();
      this.#devices.delete(device);
      leave(device);
      return Promise.resolve();
    }
    const refused = refuseDeadlockAtEnd(this.core.timelines) ?? this.core.peerUsers.refuse();
    if (refused !== undefined) return Promise.reject(refused);
    if (this.#closing === undefined) this.owner.release();
    const closing = this.end();
    if (limits.signal === undefined && limits.timeoutMs === undefined) return closing;
    return waitWith(closing, limits, `device ${this.core.name} to close`, [], () => diagnoseWait(this.#ends()), this.core.clock);
  }

  /** Drains and closes the device, once. */
  end(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = this.#close();
      this.owner.ends(this.#closing);
    }
    return this.#closing;
  }

  /** Ends the device for all its Devices, and drops work that has not begun. */
  destroy(reason: unknown): Promise<void> {
    // A close that is in progress stops waiting.
    if (this.core.state === 'closing') this.#lose(reason);
    this.#closing ??= this.#destroy(reason);
    this.owner.destroying();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { core } = this;
    if (core.state === 'open') {
      core.state = 'closing';
      for (const stream of this.#streams.values()) stream.stop();
      // If the device is lost meanwhile, there is nothing left to wait for.
      await waitForDevices([core], undefined).catch(() => undefined);
      await core.peerUsers.left();
      await Promise.all(Array.from(this.#streams.values(), (stream) => stream.allReported()));
      await core.failures.reportAll();
      await core.recorded();
      if (core.lostError === undefined) core.finish();
      for (const stream of this.#streams.values()) void stream.finish();
      this.#leave();
      this.observation.end(undefined);
    }
    if (core.lostError === undefined) {
      await core.channel.close();
      core.arena.end();
    } else await this.#abandon(core.lostError);
  }

  async #destroy(reason: unknown): Promise<void> {
    this.#lose(reason);
    // The device leaves the table of open devices, so the next `openDevice` opens it anew.
    this.owner.release();
    await this.#abandon(undefined);
  }

  /** Ends the worker, whatever runs. `lost`: the error that the device was lost with; a hung kernel is not reported on top of a fault. */
  async #abandon(lost: DeviceLostError | undefined): Promise<void> {
    const still = await this.core.channel.destroy(DESTROY_MS);
    if (still !== undefined && (lost === undefined || lost.reason === 'closed')) {
      const error = this.core.hang(still);
      this.owner.hung(error);
      throw error;
    }
  }

  #lose(reason: unknown): void {
    const message = `Device ${this.core.name} was destroyed.`;
    this.core.lose(new DeviceLostError('ERR_MILLRACE_LOST', message, 'closed', { device: this.core.name, cause: reason }));
  }

  #leave(): void {
    for (const device of this.#devices) leave(device);
  }

  /** The present ends of its streams. */
  #ends(): Point[] {
    return Array.from(this.core.timelines, (timeline) => timeline.here());
  }
}
