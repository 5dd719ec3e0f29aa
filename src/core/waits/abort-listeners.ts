// One abort listener per AbortSignal, however many waits use it. With a listener for each wait, Node would search all listeners at
// each addition and removal, and print a warning from the eleventh on.
// Thread: owner.
import { addAbortListener } from 'node:events';

interface Listening {
  readonly calls: Set<{ readonly call: () => void }>;
  readonly listener: Disposable;
}

const listening: WeakMap<AbortSignal, Listening> = new WeakMap();

/**
 * Calls `call` once when the signal aborts, in the order of registration. `call` must not throw. Returns a function that removes it. Does
 * nothing for a signal that has aborted already.
 */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  const { calls } = listening.get(signal) ?? listen(signal);
  // Each registration is a separate entry, because the same function may be given twice.
  const entry = { call };
  calls.add(entry);
  return () => {
    if (calls.delete(entry) && calls.size === 0) stopListening(signal, calls);
  };
}

function listen(signal: AbortSignal): Listening {
  const calls: Listening['calls'] = new Set();
  const listener = addAbortListener(signal, () => {
    listening.delete(signal);
    for (const entry of calls) {
      calls.delete(entry);
      entry.call();
    }
  });
  const made = { calls, listener };
  listening.set(signal, made);
  return made;
}

function stopListening(signal: AbortSignal, calls: Listening['calls']): void {
  const known = listening.get(signal);
  // The signal is aborting: its list was taken already.
  if (known?.calls !== calls) return;
  listening.delete(signal);
  known.listener[Symbol.dispose]();
}

/**
 * Whether the value is an AbortSignal, of any realm or implementation. Like Node's own functions, it checks the methods. Never throws.
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
