// Requests that wait for a lane: in the order of their calls, at most `maxQueue`, at most `maxQueueMs`, each with a signal and a timeout.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import type { Clock } from '../core/base/clock.js';
import { AbortError, LimitError, StateError } from '../core/base/errors.js';
import { checkWaitCall, type WaitOptions, waitWith } from '../core/waits/wait.js';

/** A request between its call and its answer. */
export interface Request<T, R> {
  readonly item: T;
  /** The clock's time at the call. */
  readonly sinceMs: number;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
  /** The asynchronous context of the call. */
  readonly context: AsyncResource;
  /** The caller's signal aborted or its timeout passed. */
  isGivenUp: boolean;
  /** Called when a request that has begun is given up. */
  onGiveUp: (() => void) | undefined;
}

/** What may wait for a lane. */
export interface QueueLimits {
  readonly maxQueue: number;
  readonly maxQueueMs: number;
}

export class RequestQueue<T, R> {
  readonly #name: string;
  readonly #maxQueue: number;
  readonly #maxQueueMs: number;
  readonly #clock: Clock;
  readonly #canBegin: () => boolean;
  readonly #onChange: () => void;
  #waiting: Request<T, R>[] = [];
  #room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  #closed: 'closed' | 'destroyed' | undefined;

  /** `canBegin` returns whether another request could begin at once. `onChange` is called when a request is added or given up. */
  constructor(name: string, limits: QueueLimits, clock: Clock, canBegin: () => boolean, onChange: () => void) {
    this.#name = name;
    this.#maxQueue = limits.maxQueue;
    this.#maxQueueMs = limits.maxQueueMs;
    this.#clock = clock;
    this.#canBegin = canBegin;
    this.#onChange = onChange;
  }

  /** The request that has waited longest. */
  get first(): Request<T, R> | undefined {
    return this.#waiting[0];
  }

  get length(): number {
    return this.#waiting.length;
  }

  async add(item: T, opts: WaitOptions | undefined): Promise<R> {
    const { signal } = checkWaitCall(opts);
    if (this.#closed)
      throw new StateError('ERR_MILLRACE_STATE', `The ${this.#name} ${this.#name === 'lanes' ? 'are' : 'is'} ${this.#closed}.`);
    if (signal?.aborted) throw new AbortError(signal);
    if (this.#waiting.length >= this.#maxQueue && !this.#canBegin())
      throw this.#refusal(`The number of waiting requests (${this.#waiting.length})`, 'maxQueue', this.#maxQueue);
    let request!: Request<T, R>;
    const answer = new Promise<R>((resolve, reject) => {
      const context = new AsyncResource('millrace.request');
      request = { item, sinceMs: this.#clock.now(), resolve, reject, context, isGivenUp: false, onGiveUp: undefined };
    });
    this.#waiting.push(request);
    this.#onChange();
    return waitWith(answer, opts, `an answer of the ${this.#name}`, [() => this.#giveUp(request)], undefined, this.#clock);
  }

  /** Removes and returns at most `most` requests, those that have waited longest. */
  take(most: number): Request<T, R>[] {
    const taken = this.#waiting.splice(0, most);
    this.tellRoom();
    return taken;
  }

  /** Rejects the requests that have waited longer than `maxQueueMs`. */
  refuseLate(): void {
    const { first } = this;
    if (first === undefined || this.#maxQueueMs === Infinity) return;
    const sinceMs = this.#clock.now() - this.#maxQueueMs;
    if (first.sinceMs >= sinceMs) return;
    const others = this.#waiting.findIndex((request) => request.sinceMs >= sinceMs);
    for (const request of this.take(others < 0 ? this.#waiting.length : others)) {
      const waitedMs = Math.ceil(this.#clock.now() - request.sinceMs);
      request.reject(this.#refusal(`The time that the request waited for a lane (${waitedMs} ms)`, 'maxQueueMs', this.#maxQueueMs));
      request.context.emitDestroy();
    }
  }

  #refusal(what: string, option: string, limit: number): LimitError {
    const message = `${what} has reached the limit (${option} ${limit}). Await the error's retryAfter.`;
    return new LimitError('ERR_MILLRACE_LIMIT', message, limit, () => this.#roomAgain());
  }

  close(): void {
    this.#closed ??= 'closed';
  }

  /** Rejects the waiting requests. */
  destroy(error: Error): void {
    this.#closed = 'destroyed';
    for (const request of this.take(this.#waiting.length)) request.reject(error);
  }

  #giveUp(request: Request<T, R>): void {
    request.isGivenUp = true;
    const at = this.#waiting.indexOf(request);
    if (at >= 0) this.#waiting.splice(at, 1);
    else request.onGiveUp?.();
    this.tellRoom();
    this.#onChange();
  }

  #roomAgain(): Promise<void> {
    if (this.#waiting.length < this.#maxQueue || this.#canBegin() || this.#closed) return Promise.resolve();
    if (!this.#room) {
      let resolve!: () => void;
      const promise = new Promise<void>((settle) => {
        resolve = settle;
      });
      this.#room = { promise, resolve };
    }
    return this.#room.promise;
  }

  /** Call it when there may be room for another request: resolves the `retryAfter` promises. */
  tellRoom(): void {
    if (this.#waiting.length >= this.#maxQueue && !this.#canBegin() && !this.#closed) return;
    this.#room?.resolve();
    this.#room = undefined;
  }
}
