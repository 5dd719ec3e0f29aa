// Limits the compilers of the process, over all devices, to the number of cores. Builds take turns in the order of their requests.
import { buildHost, MOST_COMPILERS } from './exit-cleanup.js';

let isOpen = false;
const asking: (() => void)[] = [];
/** Turns in use by this thread when there is no addon, as in unit tests. */
let taken = 0;

/** Waits for a turn, runs `work`, and passes the turn on when it has settled. */
export async function withCompilerSlot<T>(work: () => Promise<T>): Promise<T> {
  if (!take()) {
    await new Promise<void>((resolve) => {
      asking.push(resolve);
    });
  }
  try {
    return await work();
  } finally {
    give();
  }
}

function take(): boolean {
  const host = buildHost();
  if (host === undefined) {
    if (taken === MOST_COMPILERS) return false;
    taken++;
    return true;
  }
  if (!isOpen) {
    host.openCompilerSlots(() => {
      for (let granted = host.grantedCompilerSlots(); granted > 0; granted--) asking.shift()?.();
    });
    isOpen = true;
  }
  return host.takeCompilerSlot(MOST_COMPILERS);
}

function give(): void {
  const host = buildHost();
  if (host !== undefined) {
    host.releaseCompilerSlot();
    return;
  }
  const next = asking.shift();
  if (next !== undefined) next();
  else taken--;
}
