// `warmUp()` compiles a small kernel while a device opens, when this thread is idle. V8 compiles a function at its first call, and the
// kernel compiler has about a thousand functions, so without this the first kernel of a program would take some milliseconds more.
import { f32, i32 } from '../../core/elements/dtype.js';
import { inout } from '../../core/kernels/kernel.js';
import { parseFunction } from '../source/parse.js';
import { isWarm, kernel } from './kernel.js';
import { setImmediate } from '../../core/base/timers.js';

/** A kernel with the constructs that most kernels use. */
function read(
  { x, n }: { x: { [index: number]: number }; n: number },
  { i, min }: { i: number; min: (a: number, b: number) => number },
): void {
  let sum = 0;
  for (let k = 0; k < n; k++) if (i + k < n) sum += x[i + k]! * 0.5;
  x[i] = min(Math.sqrt(sum), 1);
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Compiles a kernel in two event loop turns, unless this thread has compiled one. Rejects when functions have no source. */
export async function warmUp(): Promise<void> {
  await nextTurn();
  if (isWarm()) return;
  parseFunction(read);
  await nextTurn();
  if (!isWarm()) kernel('read', { x: inout(f32), n: i32 }, read as never);
}
