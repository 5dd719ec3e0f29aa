// Streams of a device that no program made: where a copy does what only this device can do, while its own stream belongs
// to another. Each use is bracketed by waits, so it takes the place of a piece of that stream.
//
// Two copies on one helper come one after the other although nothing orders their streams, so a copy takes a helper that
// is idle, or the one its stream used before, and a new one before it shares. Where hazards are looked for it takes no idle
// one of another stream's: the order between them would be chance, and no order that a program may rely on.
// Thread: owner.
import { areClocksKept } from '../timeline/vector-clock.js';
import type { Timeline } from '../timeline/timeline.js';

/** Streams that copy through one device at the same time without waiting for each other. */
const MAX_HELPERS = 32;

interface Helper {
  readonly timeline: Timeline;
  /** The stream it worked for last; weak, since a helper outlives those. */
  served: WeakRef<Timeline>;
}

export class Helpers {
  readonly #open: (label: string) => Timeline;
  readonly #helpers: Helper[] = [];
  #shared = 0;

  /** `open` makes a stream of the device. */
  constructor(open: (label: string) => Timeline) {
    this.#open = open;
  }

  /** A stream of this device for what `given` is to wait for. Throws LimitError when the device has no place for another stream. */
  take(given: Timeline): Timeline {
    const helper =
      this.#helpers.find(({ served }) => served.deref() === given) ??
      (areClocksKept() ? undefined : this.#helpers.find(({ timeline }) => timeline.isComplete)) ??
      this.#make(given);
    helper.served = new WeakRef(given);
    return helper.timeline;
  }

  #make(given: Timeline): Helper {
    if (this.#helpers.length === MAX_HELPERS) return this.#helpers[this.#shared++ % MAX_HELPERS] as Helper;
    const helper = { timeline: this.#open(`copies-${this.#helpers.length + 1}`), served: new WeakRef(given) };
    this.#helpers.push(helper);
    return helper;
  }
}
