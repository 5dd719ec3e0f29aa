// Ends what V8 collected without its having been disposed. V8 calls the finalizers of a collection in one turn of the event loop, so a
// finalizer only notes what it is called for. Later turns end it, some of it each, and may submit records, which a finalizer does not.
// Thread: owner.
import { performance, setImmediate } from './timers.js';

/** How long one turn of the event loop ends forgotten objects: or as long as the other work since, so that they do not accumulate. */
const LEAST_MS = 0.5;

/** What was collected, in its order: each with the function that ends it. */
let pending: { readonly held: unknown; readonly end: (held: never) => void }[] = [];
let next = 0;
/** When a turn last ended some of the present ones. */
let sinceMs: number | undefined;

/** Whether collected objects have not been ended yet. */
export function hasForgotten(): boolean {
  return pending.length > 0;
}

/** A registry whose objects are ended by `end` in a later turn of the event loop. */
export function endForgotten<T>(end: (held: T) => void): FinalizationRegistry<T> {
  return new FinalizationRegistry<T>((held) => {
    if (pending.length === 0) setImmediate(endSome);
    pending.push({ held, end });
  });
}

function endSome(): void {
  const nowMs = performance.now();
  const endMs = nowMs + Math.max(LEAST_MS, nowMs - (sinceMs ?? nowMs));
  try {
    while (next < pending.length && performance.now() < endMs) {
      const { held, end } = pending[next++] as (typeof pending)[number];
      end(held as never);
    }
  } finally {
    if (next < pending.length) {
      sinceMs = performance.now();
      setImmediate(endSome);
    } else {
      pending = [];
      next = 0;
      sinceMs = undefined;
    }
  }
}
