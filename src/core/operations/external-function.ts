// Functions that submit foreign work in stream order. The channel parks the stream, as for a hold, and says when everything before has
// been given to the driver; on a device that runs on the host, when it has finished. A function that fails is a failure of the record.
// Thread: owner.
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import type { Timeline } from '../timeline/timeline.js';
import { HoldCall } from './hold-function.js';
import { hostError } from './host-function.js';
import type { Operation } from './operation.js';

/** What the function of `stream.external` gets. All values are valid until the function has returned or its promise has settled. */
export interface RawStream<N extends string = string> {
  /** The `CUstream` to which the function submits its work; on a CPU device a number that no other stream has, on a test device 0n. */
  readonly stream: bigint;
  /** The `CUcontext` of the device; 0n on a device without one. */
  readonly context: bigint;
  /**
   * The addresses of the first elements, by the names in `reads` and `writes`: `CUdeviceptr` on CUDA, host addresses on a CPU device, 0n on
   * a test device and for an array without elements. The array itself tells `strides` and `isContiguous`.
   */
  readonly pointers: Readonly<Record<N, bigint>>;
  /** Aborts when the option `signal` aborts, at the timeout, and when the device is lost. */
  readonly signal: AbortSignal;
}

/** The address of the first element of an array. */
export interface Place {
  readonly name: string;
  readonly handle: number;
  /** In bytes. */
  readonly offset: number;
}

/** A function whose record has the ticket. */
export interface ReadyCall {
  readonly ticket: number;
  run(): void;
}

/** The calls of one stream that were not made yet, in the order of their tickets. */
class PendingCalls {
  readonly #calls: ReadyCall[] = [];
  readonly #wakes: Set<() => void>;
  readonly #look: () => void;

  constructor(core: DeviceCore, timeline: Timeline) {
    this.#wakes = core.progress.onWake;
    this.#look = () => {
      // Records before it failed without a call.
      const ready = core.channel.readyExternal(timeline.slot);
      const next = this.#calls.find(({ ticket }) => ticket >= ready);
      if (next?.ticket === ready) next.run();
    };
  }

  add(call: ReadyCall): void {
    if (this.#calls.push(call) === 1) this.#wakes.add(this.#look);
  }

  remove(call: ReadyCall): void {
    const at = this.#calls.indexOf(call);
    if (at < 0) return;
    this.#calls.splice(at, 1);
    if (this.#calls.length === 0) this.#wakes.delete(this.#look);
  }
}

const pending: WeakMap<Timeline, PendingCalls> = new WeakMap();

export function pendingCalls(core: DeviceCore, timeline: Timeline): PendingCalls {
  let calls = pending.get(timeline);
  if (calls === undefined) pending.set(timeline, (calls = new PendingCalls(core, timeline)));
  return calls;
}

/** The addresses of arrays, by their names. */
export function addressesOf({ channel }: DeviceCore, places: readonly Place[]): Readonly<Record<string, bigint>> {
  return Object.fromEntries(
    places.map(({ name, handle, offset }) => {
      const base = channel.memoryAddress(handle);
      return [name, base === undefined ? 0n : base + BigInt(offset)];
    }),
  );
}

/** A call of a function with addresses. Its record has the ticket. */
export class ExternalCall extends HoldCall {
  readonly #fn: (raw: RawStream) => unknown;
  readonly #places: readonly Place[];

  constructor(
    site: StreamContext,
    ticket: number,
    fn: (raw: RawStream) => unknown,
    opts: { readonly signal?: AbortSignal; readonly timeoutMs: number; readonly places: readonly Place[] },
  ) {
    // The call tells nothing of what has finished: on a GPU, earlier work may still run.
    super(site, ticket, () => undefined, opts.signal, opts.timeoutMs, { timeline: site.timeline, ticket: 0 });
    this.#fn = fn;
    this.#places = opts.places;
  }

  override begin(make: (ticket: number) => Operation): Operation {
    pendingCalls(this.site.core, this.site.timeline).add(this);
    return super.begin(make);
  }

  override run(): void {
    pendingCalls(this.site.core, this.site.timeline).remove(this);
    super.run();
  }

  override settle(error?: Error): void {
    pendingCalls(this.site.core, this.site.timeline).remove(this);
    super.settle(error);
  }

  /** It is called at a wake. If the record completes without it, the record failed. */
  protected override expect(wait: (ticket: number, settle: () => void) => void): void {
    wait(this.ticket, () => this.run());
  }

  protected override isPassed(timeline: Timeline): boolean {
    return timeline.hasReached(this.ticket);
  }

  protected override invoke(signal: AbortSignal): unknown {
    const { core, timeline } = this.site;
    const { channel } = core;
    const pointers = addressesOf(core, this.#places);
    const stream = channel.streamHandle(timeline.slot) ?? 0n;
    const context = channel.enterContext();
    try {
      return this.#fn({ stream, context, pointers, signal });
    } finally {
      channel.leaveContext();
    }
  }

  /** The failure of the record reports it. */
  protected override fail(error: Error): void {
    this.settle(error);
  }

  protected override release(error?: Error): void {
    if (error === undefined) return super.release();
    const { core, timeline } = this.site;
    if (core.lostError?.reason === 'worker-exit') return;
    core.failures.willFail(timeline, this.ticket, hostError(error, this.operation as Operation));
    core.channel.failExternal(timeline.slot, this.ticket);
  }
}
