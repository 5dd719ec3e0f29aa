// Streams of a device that user code did not create. The library takes one for work that has to wait where a stream of user code must
// not, or that belongs to another device than the caller's stream:
//
//   purpose         taken by                                   most
//   frees           StreamOrderedFrees, for frees that wait       4
//   copies          Relay, for a device's part of a copy         32
//   interprocess    InterprocessEvent, for waits of the host      8
//   adoptions       adopt, of arrays of other threads             4
//   readback        DeviceContext, for `array.read`               8
//
// Work on a shared stream runs in sequence although nothing in user code orders it. So an idle stream is taken first, then a new one,
// and only when there are `most` of them are they shared in turn.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';

interface InternalStream<S> {
  readonly stream: S;
  /** The stream that it worked for last; weak, because an internal stream lives as long as its device. */
  served: WeakRef<Timeline> | undefined;
}

/** `S`: how the owner refers to them, a Timeline or a Stream. */
export class InternalStreams<S> {
  readonly #most: number;
  readonly #make: (nth: number) => S;
  readonly #isIdle: (stream: S) => boolean;
  readonly #made: InternalStream<S>[] = [];
  #turn = 0;

  /** At most `most` streams. `make` makes the nth, counted from 1. */
  constructor(most: number, make: (nth: number) => S, isIdle: (stream: S) => boolean) {
    this.#most = most;
    this.#make = make;
    this.#isIdle = isIdle;
  }

  /** A stream for independent work. Throws what `make` throws. */
  take(): S {
    return (this.#idle() ?? this.#next()).stream;
  }

  /**
   * A stream that does a part of the work of `given`: the one that did so last, else as `take`. With `mayTakeIdle` false it takes no idle
   * stream that worked for another one: an order of the two that depends on timing would hide a hazard. Throws what `make` throws.
   */
  takeFor(given: Timeline, mayTakeIdle: boolean): S {
    const taken = this.#made.find(({ served }) => served?.deref() === given) ?? (mayTakeIdle ? this.#idle() : undefined) ?? this.#next();
    taken.served = new WeakRef(given);
    return taken.stream;
  }

  #idle(): InternalStream<S> | undefined {
    return this.#made.find(({ stream }) => this.#isIdle(stream));
  }

  #next(): InternalStream<S> {
    if (this.#made.length === this.#most) return this.#made[this.#turn++ % this.#most] as InternalStream<S>;
    const made = { stream: this.#make(this.#made.length + 1), served: undefined };
    this.#made.push(made);
    return made;
  }
}
