// The hubs of a stream, or of a device for all its streams: finished operations, and phases of operations.
// Thread: owner.
import { Hub, type ObservableOf, observe } from '../base/observable.js';
import type { Activity, Operation } from './operation.js';

export class Observation {
  readonly operations: Hub<Operation> = new Hub();
  readonly activity: Hub<Activity> = new Hub();
  #operations$: ObservableOf<Operation> | undefined = undefined;
  #activity$: ObservableOf<Activity> | undefined = undefined;

  /** `onChange` is called when `isObserved` or `isAwaited` may have changed. */
  constructor(onChange: () => void) {
    this.operations.onChange = onChange;
    this.activity.onChange = onChange;
  }

  get operations$(): ObservableOf<Operation> {
    this.#operations$ ??= observe(this.operations);
    return this.#operations$;
  }

  get activity$(): ObservableOf<Activity> {
    this.#activity$ ??= observe(this.activity);
    return this.#activity$;
  }

  get isObserved(): boolean {
    return this.operations.observed || this.activity.observed;
  }

  /** Whether a reader awaits the next value, so that pending operations must keep the process alive. */
  get isAwaited(): boolean {
    return this.operations.isAwaited || this.activity.isAwaited;
  }

  end(error: Error | undefined): void {
    for (const hub of [this.activity, this.operations]) {
      if (error === undefined) hub.complete();
      else hub.error(error);
    }
  }
}
