// A function of `stream.external` in a capture. The device's memory has addresses only when its records have been issued. Where one is
// missing, an internal stream waits for it; then the function is called, once, with a stream of the driver that lists the calls. The list
// is bound to the handle of a kernel, for which launches of the graph wait as for a build.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import { driverErrorIn } from '../base/driver-errors.js';
import { CaptureError } from '../base/errors.js';
import { isPromiseLike } from '../base/promise-like.js';
import { queueMicrotask } from '../base/timers.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import type { ExternalNode, PendingUse } from '../graphs/captured-node.js';
import type { Storage } from '../memory/storage.js';
import type { KernelFacts } from '../timeline/failure-errors.js';
import type { Timeline } from '../timeline/timeline.js';
import { addressesOf, pendingCalls, type Place, type RawStream, type ReadyCall } from '../operations/external-function.js';
import { asError } from '../operations/host-function.js';

type CallCaptures = NonNullable<DeviceCore['channel']['callCaptures']>;

const UNCAPTURED =
  'A call that waits for work, such as cuStreamSynchronize, and work on other streams without events that join them cannot be captured: call the function before or after a launch of the graph';

export class CapturedExternal implements ExternalNode, ReadyCall {
  /** The handle that the node's launch names. */
  readonly kernel: number;
  ticket: number = 0;
  readonly #core: DeviceCore;
  readonly #captures: CallCaptures;
  /** In messages. */
  readonly #what: string;
  readonly #stream: string;
  readonly #fn: (raw: RawStream) => unknown;
  readonly #signal: AbortSignal | undefined;
  readonly #places: readonly Place[];
  /** That of the call in the capture. */
  readonly #context: AsyncResource = new AsyncResource('MILLRACE_HOST');
  #state: 'new' | 'waiting' | 'over' = 'new';
  #use: PendingUse | undefined = undefined;
  #holders = 0;
  /** The holders that need the call. */
  #needs = 0;
  /** Those of `places`, until the call is prepared. */
  #storages: readonly Storage[];
  #succeed: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(
    { core, timeline }: StreamContext,
    captures: CallCaptures,
    fn: (raw: RawStream) => unknown,
    opts: {
      readonly label: string | undefined;
      readonly signal: AbortSignal | undefined;
      readonly places: readonly Place[];
      readonly storages: readonly Storage[];
    },
  ) {
    this.#core = core;
    this.#captures = captures;
    this.#fn = fn;
    this.#signal = opts.signal;
    this.#places = opts.places;
    this.#storages = opts.storages;
    this.#stream = timeline.label;
    this.#what = `The external function${opts.label === undefined ? '' : ` ${opts.label}`} of stream ${timeline.label} of device ${core.name}`;
    const built = new Promise<void>((resolve, reject) => {
      this.#succeed = resolve;
      this.#fail = reject;
    });
    // Launches of graphs report it.
    built.catch(() => undefined);
    const facts: KernelFacts = {
      name: opts.label ?? 'external',
      parameters: [],
      parameterOf: () => undefined,
      arrays: [],
      assertions: [],
      built,
      locate: () => built.then(() => ({ lines: [undefined, undefined], reason: undefined, variable: undefined })),
    };
    this.kernel = core.kernelRegistry.takeFor(facts);
  }

  /** Has the function called, once, when the memory has its addresses. Returns the record that waits for them, until it is over. */
  begin(): PendingUse | undefined {
    if (this.#state === 'new') this.#submit();
    return this.#use;
  }

  keep(): void {
    this.#holders++;
    this.#needs++;
  }

  dropAfter(timeline: Timeline, ticket: number, isUsed: boolean): void {
    // The memory may get its addresses before the stream is there.
    if (!isUsed) this.#needs--;
    const settle = (): void => {
      if (isUsed) this.#needs--;
      this.#unhold();
    };
    this.#core.progress.keep(timeline, { ticket, keepsAlive: false, settle, lose: () => undefined });
  }

  drop(): void {
    this.#needs--;
    this.#unhold();
  }

  #unhold(): void {
    if (--this.#holders === 0 && this.#state !== 'waiting') this.#release();
  }

  /** Calls the function: the record that waited for the addresses is at its turn. */
  run(): void {
    const timeline = this.#leave();
    if (timeline === undefined) return;
    this.#call();
    if (this.#core.lostError?.reason !== 'worker-exit') this.#core.channel.releaseHold(timeline.slot, this.ticket);
  }

  #call(): void {
    this.#state = 'over';
    if (this.#needs > 0) this.#context.runInAsyncScope(() => this.#capture());
    if (this.#holders === 0) this.#release();
  }

  #submit(): void {
    const core = this.#core;
    this.#state = 'waiting';
    const late = this.#storages.find(({ handle }) => core.channel.memoryAddress(handle) === undefined);
    const allocating = late && core.live.allocatingStream(late);
    this.#storages = [];
    if (late === undefined) {
      // Not in the call of `capture`, as where a stream waits.
      queueMicrotask(() => this.#call());
      return;
    }
    try {
      // Functions whose arrays one stream allocates wait together, so none of them waits behind those of another stream.
      const { captures } = core.internalStreams;
      const timeline = allocating === undefined ? captures.take() : captures.takeFor(allocating, !core.tracker.areClocksKept);
      const record = core.tracker.begin({ core, timeline, ordering: 'tracked' });
      record.order('external', undefined);
      for (const [at, { handle }] of this.#places.entries()) core.encoder.memoryArg(at, 0, handle, 0);
      this.ticket = core.submit(timeline, core.encoder.external(timeline.slot, this.#places.length));
      this.#use = { timeline, ticket: this.ticket, info: record.commit(this.ticket) };
      pendingCalls(core, timeline).add(this);
      // It has not been called where memory could not be allocated, or the device is gone.
      const over = (error?: unknown): void => {
        if (this.#leave() === undefined) return;
        this.#refuse(asError(error ?? new Error('its arrays have no memory')));
        if (this.#holders === 0) this.#release();
      };
      core.waits.until(timeline, this.ticket).then(() => over(), over);
    } catch (error) {
      this.#state = 'over';
      this.#refuse(asError(error));
    }
  }

  /** It is not waited for any more. Returns the stream if it was. */
  #leave(): Timeline | undefined {
    if (this.#state !== 'waiting' || this.#use === undefined) return undefined;
    const { timeline } = this.#use;
    pendingCalls(this.#core, timeline).remove(this);
    this.#state = 'over';
    this.#use = undefined;
    return timeline;
  }

  #capture(): void {
    let thrown: unknown;
    let isDone = false;
    const call = (stream: bigint, context: bigint): boolean => {
      try {
        this.#signal?.throwIfAborted();
        const pointers = addressesOf(this.#core, this.#places);
        const answer = this.#fn({ stream, context, pointers, signal: this.#signal ?? new AbortController().signal });
        isDone = !isPromiseLike(answer);
        if (!isDone) {
          thrown = new Error('it returned a promise, and a graph contains only what the function has called when it returns');
          Promise.resolve(answer).catch(() => undefined);
        }
      } catch (error) {
        thrown = error;
      }
      return isDone;
    };
    try {
      this.#captures.capture(this.kernel, call);
      if (isDone) this.#succeed();
      else this.#refuse(asError(thrown));
    } catch (error) {
      this.#refuse(asError(thrown ?? error), error as { readonly driverStatus?: number });
    }
  }

  /** Launches of graphs with it fail. `ended`: by the driver. */
  #refuse(cause: Error, ended?: { readonly driverStatus?: number }): void {
    const driverStatus = ended?.driverStatus ?? 0;
    const isThrown = ended !== cause;
    const why = isThrown ? `: ${cause.message}` : '';
    const driver = driverStatus === 0 ? '' : `${isThrown ? '; ' : ': '}the driver ended the capture${driverErrorIn(driverStatus)}`;
    const cure = driverStatus === 0 ? '' : `. ${UNCAPTURED}`;
    const facts = { device: this.#core.name, stream: this.#stream, driverStatus, cause };
    this.#fail(new CaptureError(`${this.#what} was not captured${why}${driver}${cure}.`, 'external', facts));
    if (!this.#core.isGone) this.#captures.fail(this.kernel);
  }

  #release(): void {
    if (this.#core.isGone) return;
    this.#captures.drop(this.kernel);
    this.#core.kernelRegistry.drop(this.kernel);
  }
}
