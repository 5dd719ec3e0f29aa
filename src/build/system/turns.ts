// Turns of compilers: as many at once as the process has cores, over all its devices, in the order in which they were asked for.
import { buildHost, MOST_COMPILERS } from './leftovers.js';

let isOpen = false;
const asking: (() => void)[] = [];
/** Without an addon: taken in this thread. */
let taken = 0;

/** Runs the work when it is its turn. */
export async function inTurn<T>(work: () => Promise<T>): Promise<T> {
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
    host.openTurns(() => {
      for (let granted = host.grantedTurns(); granted > 0; granted--) asking.shift()?.();
    });
    isOpen = true;
  }
  return host.takeTurn(MOST_COMPILERS);
}

function give(): void {
  const host = buildHost();
  if (host !== undefined) {
    host.giveTurn();
    return;
  }
  const next = asking.shift();
  if (next !== undefined) next();
  else taken--;
}
