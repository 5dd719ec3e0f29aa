// The engine compiles a function when it is first called, and the reader of kernels has a thousand: together some
// milliseconds of the first kernel. A device that opens leaves this thread idle for longer than that.
import { f32, i32 } from '../../core/elements/dtype.js';
import { inout } from '../../core/kernels/kernel.js';
import { parseFunction } from '../source/parse.js';
import { isWarm, kernel } from './kernel.js';

/** Something of what most kernels have. */
function read(
  { x, n }: { x: { [index: number]: number }; n: number },
  { i, min }: { i: number; min: (a: number, b: number) => number },
): void {
  let sum = 0;
  for (let k = 0; k < n; k++) if (i + k < n) sum += x[i + k]! * 0.5;
  x[i] = min(Math.sqrt(sum), 1);
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Reads a kernel in two turns of the loop, unless one was read before. Rejects under a tool that leaves functions no text. */
export async function warmUp(): Promise<void> {
  await nextTurn();
  if (isWarm()) return;
  parseFunction(read);
  await nextTurn();
  if (!isWarm()) kernel('read', { x: inout(f32), n: i32 }, read as never);
}
