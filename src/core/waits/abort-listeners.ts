// Who hears of an AbortSignal: one listener a signal, however many waits use it. A listener for each would cost Node a search
// through all of them when it is added and when it is removed, and a warning from the eleventh on.
// Thread: owner.
import { addAbortListener } from 'node:events';

interface Heard {
  readonly calls: Set<{ readonly call: () => void }>;
  readonly listener: Disposable;
}

const heard: WeakMap<AbortSignal, Heard> = new WeakMap();

/**
 * Calls `call` once when the signal aborts, in the order of these calls; it must not throw. Returns what takes it back. Of a signal
 * that has aborted already nothing is heard.
 */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  const { calls } = heard.get(signal) ?? listen(signal);
  // An entry of its own: the same function may be given twice.
  const entry = { call };
  calls.add(entry);
  return () => {
    if (calls.delete(entry) && calls.size === 0) stopListening(signal, calls);
  };
}

function listen(signal: AbortSignal): Heard {
  const calls: Heard['calls'] = new Set();
  const listener = addAbortListener(signal, () => {
    heard.delete(signal);
    for (const entry of calls) {
      calls.delete(entry);
      entry.call();
    }
  });
  const made = { calls, listener };
  heard.set(signal, made);
  return made;
}

function stopListening(signal: AbortSignal, calls: Heard['calls']): void {
  const known = heard.get(signal);
  // Those of a signal that is telling its waits are no longer known.
  if (known?.calls !== calls) return;
  heard.delete(signal);
  known.listener[Symbol.dispose]();
}

/**
 * Is it an AbortSignal, of whichever realm or implementation? As Node's own functions, it goes by what it can do. Never throws.
 */
export function isAbortSignal(value: unknown): value is AbortSignal {
  try {
    if (typeof value !== 'object' || value === null) return false;
    const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
    return typeof aborted === 'boolean' && typeof addEventListener === 'function' && typeof removeEventListener === 'function';
  } catch {
    return false;
  }
}
