// An event is its latest point: the stream that it was last recorded on, and the last ticket of that stream at the time. Recording it again
// moves the event; earlier waits and promises keep the earlier point. A plain event submits nothing.
//
// An event with timing has a new driver event for each record. An event for other processes has one driver event for all records.
// Thread: owner.
import { refuseWait } from '../base/apart.js';
import { badArgument, belongsTo, refuseSurplus, show, wrongDevice } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import { type CaptureReason, StateError } from '../base/errors.js';
import { nextSerial } from '../base/serial.js';
import { EVENT_STAYS } from '../base/uncloneable.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { checkEventOptions, type EventOptions } from '../events/event-options.js';
import { disown, type EventHandle, EventCell, own, stamp } from '../events/event-handles.js';
import { InterprocessEvent } from '../events/interprocess-event.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from '../waits/deadlock-check.js';
import { noteObserved } from '../waits/host-observed.js';
import { checkWaitCall, type WaitOptions, waitWith } from '../waits/wait.js';
import type { Device } from './device.js';

/** A point and the driver event with its timestamp. */
export interface TimedPoint extends Point {
  readonly eventHandle: EventHandle;
}

/**
 * A point of a stream: `CUevent`, `cupy.cuda.Event`, `wp.Event`. (`Event` itself is a DOM global.) Streams of any device can wait for it.
 * Every call that takes a disposed event throws a StateError.
 */
export class DeviceEvent implements Disposable {
  /** @internal */
  readonly uncloneable: symbol = EVENT_STAYS;
  /** @internal */
  readonly serial: number = nextSerial();
  /** Whether the event takes timestamps, which `elapsed` needs. */
  readonly timing: boolean;
  readonly #core: DeviceCore;
  readonly #maker: Device;
  /** With timing: the driver event of its point. */
  readonly #stamps: EventCell | undefined;
  readonly #shared: InterprocessEvent | undefined;
  #recorded: Point | undefined = undefined;
  /** The promise of `done` for the point, once it was read. */
  #done: Promise<void> | undefined = undefined;
  #state: 'open' | 'disposed' = 'open';

  /** @internal Made by `device.createEvent`, `stream.record` and, with its event, `device.openIpcEvent`. */
  constructor(device: Device, core: DeviceCore, opts?: EventOptions, opened?: EventHandle) {
    const { timing, interprocess } = checkEventOptions(opts, core);
    this.#maker = device;
    this.timing = timing;
    this.#core = core;
    this.#stamps = timing ? new EventCell() : undefined;
    this.#shared = interprocess ? new InterprocessEvent(core, opened) : undefined;
    const cell = this.#stamps ?? this.#shared?.cell;
    if (cell !== undefined) own(this, cell);
  }

  /** @internal */
  get core(): DeviceCore {
    return this.#core;
  }

  /**
   * The device whose streams can record the event: the Device object that made it or, once that object is closed, another one of the same
   * device.
   */
  get device(): Device {
    return this.#maker.context.deviceOf(this.#maker);
  }

  /**
   * Whether the device has passed the recorded point: `cuEventQuery`, CuPy's `event.done`, `wp.Event.is_complete`. True for an event that
   * was never recorded. For an interprocess event, the first read after each `record` submits a wait, and `isComplete` becomes true when
   * the device has passed the point that was recorded before that read. A later record by the other process does not make `isComplete`
   * false; `done` asks again.
   */
  get isComplete(): boolean {
    if (this.#shared?.isShared === true) {
      if (this.#state === 'open') this.#shared.ask(this.#point);
      return this.#shared.isComplete;
    }
    if (this.#point === undefined) return true;
    this.#refuseCaptured('query', "has no 'isComplete'");
    const isComplete = this.#point.timeline.hasReached(this.#point.ticket);
    if (isComplete) noteObserved(this.#point);
    return isComplete;
  }

  /**
   * Resolves when the device has passed the point that is recorded when `done` is read: `cuEventSynchronize`. A later record does not
   * change a promise that was read before. Rejects only with DeviceLostError; failed operations before the point do not reject it. For an
   * interprocess event, each read submits a wait, and the promise also rejects if the device refuses that wait.
   */
  get done(): Promise<void> {
    if (this.#shared?.isShared === true) return this.#waitShared(this.#shared, undefined);
    const point = this.#point;
    if (point === undefined) return Promise.resolve();
    this.#refuseCaptured('host-wait', 'cannot be awaited');
    const refused = refuseDeadlock(point.timeline, point.ticket);
    if (refused !== undefined) return Promise.reject(refused);
    this.#done ??= this.core.waits.until(point.timeline, point.ticket, undefined, undefined, [point]);
    return this.#done;
  }

  /**
   * Waits as `done` does, with a signal or a timeout: `event.synchronize()`, `wp.synchronize_event`. Rejects also with AbortError or
   * WaitTimeoutError.
   */
  synchronize(opts?: WaitOptions): Promise<void> {
    if (arguments.length > 1) refuseSurplus('synchronize', arguments, 1);
    this.#refuseCaptured('host-wait', 'cannot be awaited');
    return this.#synchronize(opts);
  }

  async #synchronize(opts: WaitOptions | undefined): Promise<void> {
    if (opts === undefined) return this.done;
    checkWaitCall(opts);
    if (this.#shared?.isShared === true) return this.#waitShared(this.#shared, opts);
    const point = this.#point;
    return point === undefined
      ? waitWith(Promise.resolve(), opts, 'an event that was never recorded')
      : this.core.waits.until(point.timeline, point.ticket, undefined, opts, [point]);
  }

  /**
   * Resolves to the 64 bytes that `device.openIpcEvent` of another process takes: `cuIpcGetEventHandle`. Keep the event alive while other
   * processes use it. Rejects with StateError for an event made without `interprocess`, one of another process, and a disposed one.
   */
  async ipcHandle(): Promise<Uint8Array<ArrayBuffer>> {
    if (arguments.length > 0) refuseSurplus('ipcHandle', arguments, 0);
    this.#check();
    if (this.#shared === undefined) throw this.#stateError('was made without the option interprocess');
    return this.#shared.export();
  }

  /** Releases the event: `cuEventDestroy`. Submitted waits and promises that were read before continue. */
  [Symbol.dispose](): void {
    this.#state = 'disposed';
    if (this.#stamps !== undefined) disown(this.#stamps);
    if (this.#shared !== undefined) disown(this.#shared.cell);
  }

  /** Its latest record: the one of this object, or a launch of a graph. */
  get #point(): Point | undefined {
    return this.#stamps?.eventHandles[0]?.capturedPoint ?? this.#recorded;
  }

  // ── for the rest of core ──

  /** @internal As `isComplete`, for logs: asks nothing of the device, and also answers for a captured event. */
  get isOver(): boolean {
    return this.#shared?.isShared === true ? this.#shared.isComplete : (this.#point?.timeline.hasReached(this.#point.ticket) ?? true);
  }

  /** @internal */
  get point(): Point | undefined {
    this.#check();
    return this.#point;
  }

  /** @internal The point of an event with timing. */
  get timedPoint(): TimedPoint | undefined {
    const { point } = this;
    const [eventHandle] = this.#stamps?.eventHandles ?? [];
    return point === undefined || eventHandle === undefined ? undefined : { ...point, eventHandle };
  }

  /** @internal Defined if another process may record the event: its last record may then be another one than its point. */
  get shared(): InterprocessEvent | undefined {
    return this.#shared?.isShared === true ? this.#shared : undefined;
  }

  /** @internal Does each record of the event submit a record to the stream? */
  get hasHandle(): boolean {
    return this.#stamps !== undefined || this.#shared !== undefined;
  }

  /** @internal Submits the record that the event needs, if any. Returns the ticket of its new point. */
  submitRecord(timeline: Timeline): number {
    this.#check();
    if (this.#stamps === undefined) return this.#shared?.record(timeline) ?? timeline.last;
    const eventHandle = stamp(this.core, timeline);
    // The free of the former driver event is submitted after it.
    const ticket = timeline.last;
    this.#stamps.replace(eventHandle);
    return ticket;
  }

  /** @internal */
  moveTo(point: Point): void {
    this.#check();
    this.#recorded = point;
    this.#done = undefined;
    const [eventHandle] = this.#stamps?.eventHandles ?? [];
    if (this.#stamps !== undefined && point.timeline.recording !== undefined) eventHandle?.noteCapture(this.#stamps, point);
  }

  async #waitShared(shared: InterprocessEvent, opts: WaitOptions | undefined): Promise<void> {
    this.#check();
    return shared.wait(this.#point, opts);
  }

  #refuseCaptured(reason: CaptureReason, what: string): void {
    const { timeline } = this.#point ?? {};
    if (timeline?.recording === undefined) return;
    throw timeline.recording.refusal(timeline, reason, `an event that was recorded in the capture ${what}`);
  }

  #check(): void {
    if (this.#state === 'disposed') throw this.#stateError('was disposed');
  }

  #stateError(what: string): StateError {
    return new StateError('ERR_MILLRACE_STATE', `The event ${what}.`, { device: this.device.info.id });
  }
}

/** `stream.record`. */
export function recordEvent(
  site: StreamContext & { readonly device: Device },
  eventOrOptions: DeviceEvent | EventOptions | undefined,
): DeviceEvent {
  const { core, device, timeline } = site;
  const event = eventOrOptions instanceof DeviceEvent ? eventOrOptions : new DeviceEvent(device, core, checkPlain(eventOrOptions));
  if (event.core !== core) {
    throw wrongDevice('event', event, `The event ${belongsTo(event.device.info.id, core.name)}.`);
  }
  try {
    const ticket = event.submitRecord(timeline);
    const here = timeline.here();
    event.moveTo(here.ticket === ticket ? here : { ...here, ticket });
  } catch (error) {
    // The caller did not get the new event.
    if (event !== eventOrOptions) event[Symbol.dispose]();
    throw error;
  }
  return event;
}

/** `stream.waitEvent`. Returns false if the stream comes after the event already. */
export function submitWaitEvent({ core, timeline }: StreamContext, event: unknown): boolean {
  if (!(event instanceof DeviceEvent)) throw badArgument('event', event, `The event (${show(event)}) is not an event of a device.`);
  refuseWait(core, event.core, 'an event');
  const { point, shared } = event;
  if (shared === undefined) return point !== undefined && core.tracker.waitFor(core, timeline, point, 'event');
  shared.waitOn(core, timeline, point);
  return true;
}

function checkPlain(opts: unknown): EventOptions | undefined {
  if (opts === undefined) return undefined;
  const prototype: unknown = typeof opts === 'object' && opts !== null ? Object.getPrototypeOf(opts) : undefined;
  if (prototype === Object.prototype || prototype === null) return opts as EventOptions;
  throw badArgument('event', opts, `The event (${show(opts)}) is neither an event of a device nor options for one.`);
}

describeAs(
  DeviceEvent.prototype,
  ({ device, isOver }) => `DeviceEvent of ${device.info.id} (${isOver ? 'complete' : 'pending'})`,
  ({ device, isOver }) => ({ device: device.info.id, isComplete: isOver }),
);
