// Where threads wait for each other, and the error of a place that they do not all reach.
import { KernelTextError } from '../places/diagnostics.js';
import type { BarrierScope, Stmt } from '../ir/ir.js';
import type { BrokenBarrier } from './uniformity.js';
import { someStmt } from '../ir/walk.js';

export const BARRIER_NAMES: Readonly<Record<BarrierScope, string>> = { warp: 'syncwarp()', block: 'syncthreads()', grid: 'gridSync()' };

export function hasBarrier(stmt: Stmt): boolean {
  return someStmt(stmt, (inner) => inner.kind === 'barrier');
}

/** K401, with the frame on the condition that parts the threads. */
export function brokenBarrier({ barrier, parting }: BrokenBarrier): KernelTextError {
  const name = BARRIER_NAMES[barrier.scope];
  const depends = `(it depends on ${parting.cause})`;
  const sentences = {
    branch: `${name} stands below a condition that differs between the threads of a block ${depends}.`,
    loop: `${name} stands in a loop that threads of a block leave at different times: its condition differs between them ${depends}.`,
    break: `${name} stands in a loop that threads of a block leave at different times, by a break under a condition that differs between them ${depends}.`,
    continue: `${name} is passed by some threads of a block only: others continue with the next turn of the loop, under a condition that differs between them ${depends}.`,
  };
  const remedy = 'Let every thread reach the barrier, and keep the condition around the work before and after it.';
  const warp = barrier.scope === 'warp' ? ' A barrier of a warp is held to this too: on the CPU device it is one of the whole block.' : '';
  return new KernelTextError('K401', { start: parting.stmt.at, end: parting.stmt.at + 1 }, sentences[parting.how], remedy + warp);
}

/** K405: what the language has a word for, and neither device an answer yet. */
export function gridBarrier(at: number): KernelTextError {
  const message = 'gridSync() needs a launch whose blocks all run at once, which this version does not make.';
  return new KernelTextError(
    'K405',
    { start: at, end: at + 'gridSync'.length },
    message,
    'End the kernel there and launch another for what follows: launches of a stream are in order.',
  );
}
