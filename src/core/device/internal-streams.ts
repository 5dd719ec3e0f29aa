// Streams of a device that user code did not create. The library takes one for work that has to wait where a stream of user code must
// not, or that belongs to another device than the caller's stream.
//
// Work on a shared stream runs in sequence although nothing in user code orders it. So an idle stream is taken first, then a new one,
// and only when the purpose has its most streams are they shared in turn.
// Thread: owner.
import type { Timeline } from '../timeline/timeline.js';

/** The most streams of each purpose. */
const MOST_STREAMS = {
  /** StreamOrderedFrees: frees that wait. Sharing a stream delays only the reuse of memory. */
  frees: 4,
  /** MultiStepCopy: a device's part of a copy between devices. */
  copies: 32,
  /** InterprocessEvent: host waits for events of other processes. */
  interprocess: 8,
  /** CapturedExternal: waits for addresses. */
  captures: 4,
  /** `adopt`: arrays of other threads that are not allocated yet. */
  adoptions: 4,
  /** waitForDevices: waits for streams of other threads, which all have to end anyway. */
  'other-threads': 1,
  /** DeviceContext: `array.read`, of arrays with different writers. */
  readback: 8,
} as const;

/** What the library takes an internal stream for. */
export type StreamPurpose = keyof typeof MOST_STREAMS;

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

  /** `make` makes the nth stream, counted from 1. */
  constructor(purpose: StreamPurpose, make: (nth: number) => S, isIdle: (stream: S) => boolean) {
    this.#most = MOST_STREAMS[purpose];
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
