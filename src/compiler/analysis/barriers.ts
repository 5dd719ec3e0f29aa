// Where threads wait for each other, and the error of a place that they do not all reach.
import { KernelTextError } from '../places/diagnostics.js';
import type { BarrierScope, KernelIr, Stmt } from '../ir/ir.js';
import type { BrokenBarrier, Group } from './uniformity.js';
import { someStmt } from '../ir/walk.js';

export const BARRIER_NAMES: Readonly<Record<BarrierScope, string>> = { warp: 'syncwarp()', block: 'syncthreads()', grid: 'gridSync()' };

export function hasBarrier(stmt: Stmt): boolean {
  return someStmt(stmt, (inner) => inner.kind === 'barrier');
}

/** Do blocks wait for each other? */
export function hasGridBarrier({ body }: Pick<KernelIr, 'body'>): boolean {
  return body.some((stmt) => someStmt(stmt, (inner) => inner.kind === 'barrier' && inner.scope === 'grid'));
}

/** K401, with the frame on the condition that parts the threads of the group. */
export function brokenBarrier({ barrier, parting }: BrokenBarrier, group: Group): KernelTextError {
  const name = BARRIER_NAMES[barrier.scope];
  const depends = `(it depends on ${parting.cause})`;
  const threads = group === 'block' ? 'threads of a block' : 'blocks of the grid';
  const sentences = {
    branch: `${name} stands below a condition that differs between the ${threads} ${depends}.`,
    loop: `${name} stands in a loop that ${threads} leave at different times: its condition differs between them ${depends}.`,
    break: `${name} stands in a loop that ${threads} leave at different times, by a break under a condition that differs between them ${depends}.`,
    continue: `${name} is passed by some ${threads} only: others continue with the next turn of the loop, under a condition that differs between them ${depends}.`,
  };
  const every = group === 'block' ? 'thread' : 'block';
  const remedy = `Let every ${every} reach the barrier, and keep the condition around the work before and after it.`;
  const warp = barrier.scope === 'warp' ? ' A barrier of a warp is held to this too: on the CPU device it is one of the whole block.' : '';
  return new KernelTextError('K401', { start: parting.stmt.at, end: parting.stmt.at + 1 }, sentences[parting.how], remedy + warp);
}
