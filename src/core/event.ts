// An event is its latest point: the stream it was last recorded on and that stream's last ticket then. Recording it
// again moves it; waits and promises taken earlier keep the point they saw. It costs the device nothing.
import { describeAs } from './describe.js';
import { badArgument, show } from './arguments.js';
import type { DeviceCore, StreamSite } from './device-core.js';
import type { Device } from './device.js';
import { StateError } from './errors.js';
import { refuseHeld } from './held.js';
import { see } from './seen.js';
import type { Point } from './timeline.js';
import { type WaitOptions, waitWith } from './wait.js';

export interface EventOptions {
  /** `elapsed` takes it: `cudaEventDefault` and not `cudaEventDisableTiming`. Costs a timestamp on the device for each record. */
  readonly timing?: boolean;
  /** Other processes can wait for it, by its `ipcHandle`. CUDA only; excludes timing. */
  readonly interprocess?: boolean;
}

/**
 * A point of a stream, without a time: `CUevent`, `cupy.cuda.Event`, `wp.Event`. Named so because `Event` is a DOM global. It may be
 * waited for on streams of any device; recording or waiting for a disposed one is a StateError.
 */
export class DeviceEvent implements Disposable {
  readonly device: Device;
  readonly #core: DeviceCore;
  #point: Point | undefined = undefined;
  #done: { readonly point: Point; readonly promise: Promise<void> } | undefined = undefined;
  #state: 'open' | 'disposed' = 'open';

  /** @internal Made by `device.createEvent` and `stream.record`. */
  constructor(device: Device, core: DeviceCore, _opts?: EventOptions) {
    this.device = device;
    this.#core = core;
  }

  /** Has the device passed it? `cuEventQuery`, CuPy's `event.done`, `wp.Event.is_complete`. Never recorded counts as complete. */
  get isComplete(): boolean {
    if (this.#point === undefined) return true;
    const isComplete = this.#point.timeline.hasReached(this.#point.ticket);
    if (isComplete) see(this.#point);
    return isComplete;
  }

  /**
   * Resolves when the device has passed it: `cuEventSynchronize`. Of the point recorded when it is read: a later record does not move a
   * promise already taken. Rejects with DeviceLostError only; failed operations before it do not reject it.
   */
  get done(): Promise<void> {
    const point = this.#point;
    if (point === undefined) return Promise.resolve();
    const refused = refuseHeld(point.timeline, point.ticket);
    if (refused !== undefined) return Promise.reject(refused);
    if (this.#done?.point !== point)
      this.#done = { point, promise: this.#core.wait(point.timeline, point.ticket, undefined, undefined, [point]) };
    return this.#done.promise;
  }

  /** `done` with a signal or a timeout: `event.synchronize()`, `wp.synchronize_event`. Rejects with AbortError or WaitTimeoutError too. */
  synchronize(opts?: WaitOptions): Promise<void> {
    const point = this.#point;
    if (opts === undefined) return this.done;
    return point === undefined
      ? waitWith(Promise.resolve(), opts, 'an event that was never recorded')
      : this.#core.wait(point.timeline, point.ticket, undefined, opts, [point]);
  }

  /** `cuEventDestroy`. Waits and promises already taken go on. */
  [Symbol.dispose](): void {
    this.#state = 'disposed';
  }

  /** @internal */
  get point(): Point | undefined {
    this.#check();
    return this.#point;
  }

  /** @internal */
  moveTo(point: Point): void {
    this.#check();
    this.#point = point;
  }

  #check(): void {
    if (this.#state === 'disposed') {
      throw new StateError('ERR_MILLRACE_STATE', 'The event was disposed.', { device: this.device.info.id });
    }
  }
}

/** `stream.record`. */
export function recordEvent(
  site: StreamSite & { readonly device: Device },
  eventOrOptions: DeviceEvent | EventOptions | undefined,
): DeviceEvent {
  const { core, device, timeline } = site;
  if (eventOrOptions !== undefined && !(eventOrOptions instanceof DeviceEvent))
    throw badArgument('event', eventOrOptions, `The event (${show(eventOrOptions)}) is not an event of a device.`);
  const event = eventOrOptions ?? new DeviceEvent(device, core);
  if (event.device !== device) {
    throw badArgument('event', event, `The event is one of device ${event.device.info.id}; the stream is one of ${core.name}.`);
  }
  event.moveTo(timeline.here());
  return event;
}

/** `stream.waitEvent`. False: the stream comes after it already. */
export function submitWaitEvent({ core, timeline }: StreamSite, event: unknown): boolean {
  if (!(event instanceof DeviceEvent)) throw badArgument('event', event, `The event (${show(event)}) is not an event of a device.`);
  const { point } = event;
  return point !== undefined && core.order(timeline, point.timeline, point.ticket, 'event', point.clock);
}

describeAs(
  DeviceEvent.prototype,
  ({ device, isComplete }) => `DeviceEvent of ${device.info.id} (${isComplete ? 'complete' : 'pending'})`,
  ({ device, isComplete }) => ({ device: device.info.id, isComplete }),
);
