// The host functions of one launch of a graph, as the event loop's part of the launch.
//
// Each function is a host operation after the launch. `done` of the launch also waits for them, and rejects with the first error that one of
// them threw if the device's part succeeded. Other errors of the functions are reported as those of a function that no code awaits.
// Thread: owner.
import type { EventLoopPart, HostCompletion } from '../waits/host-completion.js';

export class LaunchCalls implements EventLoopPart {
  readonly givenUp: undefined = undefined;
  isAwaited: boolean = false;
  /** The ticket of the last function; before that is submitted, the one of the launch. */
  #ticket: number;
  /** The functions that are not submitted yet. */
  #missing: number;
  readonly #calls: HostCompletion[] = [];
  readonly #hasFailed: () => boolean;

  /** `ticket`: of the launch. `hasFailed`: whether the launch itself failed, once its ticket is reached. */
  constructor(ticket: number, count: number, hasFailed: () => boolean) {
    this.#ticket = ticket;
    this.#missing = count;
    this.#hasFailed = hasFailed;
  }

  get ticket(): number {
    return this.#ticket;
  }

  get isSettled(): boolean {
    return this.#missing === 0 && this.#calls.every(({ isSettled }) => isSettled);
  }

  get error(): Error | undefined {
    return this.#calls.find(({ error }) => error !== undefined)?.error;
  }

  /** The next function was submitted. */
  add(call: HostCompletion): void {
    call.reporter = this;
    this.#calls.push(call);
    this.#ticket = call.ticket;
    this.#missing--;
  }

  /** No further function is submitted: the queue was full, or the device is gone. */
  end(): void {
    this.#missing = 0;
  }

  /** Whether `done` of the launch was read, and rejects with this call's error. */
  reports(call: HostCompletion): boolean {
    return this.isAwaited && this.error === call.error && !this.#hasFailed();
  }
}
