// Finds the barriers of a kernel, checks that a grid barrier fits in shared memory, and builds the error for a divergent barrier.
import { KernelTextError } from '../diagnostics/diagnostics.js';
import { DTYPES } from '../../core/elements/dtype.js';
import { type ArrayRef, type BarrierScope, type KernelIr, MAX_SHARED_BYTES, type Stmt } from '../ir/ir.js';
import type { BrokenBarrier, Group } from './uniformity.js';
import { someStmt, statementsIn } from '../ir/walk.js';

export const BARRIER_NAMES: Readonly<Record<BarrierScope, string>> = { warp: 'syncwarp()', block: 'syncthreads()', grid: 'gridSync()' };

const GRID_BARRIER_BYTES = 16;

export function hasBarrier(stmt: Stmt): boolean {
  return someStmt(stmt, (inner) => inner.kind === 'barrier');
}

/** Whether it contains a barrier of the block. A barrier of the warp is one on the CPU device. */
export function hasBlockBarrier(stmt: Stmt): boolean {
  return someStmt(stmt, (inner) => inner.kind === 'barrier' && inner.scope !== 'grid');
}

/** Whether the statements contain a grid barrier. */
export function hasGridBarrier({ body }: Pick<KernelIr, 'body'>): boolean {
  return body.some((stmt) => someStmt(stmt, (inner) => inner.kind === 'barrier' && inner.scope === 'grid'));
}

/** Throws K404 when the grid barrier's counters (16 bytes of shared memory) do not fit beside the kernel's own shared arrays. */
export function checkRoomForGrid({ arrays, body }: Pick<KernelIr, 'arrays' | 'body'>): void {
  const bytes = arrays.filter(({ space }) => space === 'shared').reduce((sum, array) => sum + bytesOf(array), 0);
  const limit = MAX_SHARED_BYTES - GRID_BARRIER_BYTES;
  if (bytes <= limit) return;
  const at = [...statementsIn(body)].find((stmt) => stmt.kind === 'barrier' && stmt.scope === 'grid')!.at;
  throw new KernelTextError(
    'K404',
    { start: at, end: at + 'gridSync'.length },
    `gridSync() and the shared memory of a block need ${bytes + GRID_BARRIER_BYTES} bytes (${MAX_SHARED_BYTES} at most).`,
    'Use sharedDynamic(type), and pass its size at the launch: { grid, block, sharedBytes }.',
  );
}

function bytesOf({ dtype, extents }: ArrayRef): number {
  return extents.reduce((product, extent) => product * extent, DTYPES[dtype].byteSize);
}

/** Builds K401. Its code frame shows the condition on which the threads diverge. */
export function brokenBarrier({ barrier, parting }: BrokenBarrier, group: Group): KernelTextError {
  const name = BARRIER_NAMES[barrier.scope];
  const depends = `(it depends on ${parting.cause})`;
  const threads = group === 'block' ? 'threads of a block' : 'blocks of the grid';
  const sentences = {
    branch: `${name} is in a branch whose condition differs between the ${threads} ${depends}.`,
    loop: `${name} is in a loop that ${threads} leave at different iterations: its condition differs between them ${depends}.`,
    break: `${name} is in a loop that ${threads} leave at different iterations: the condition of a break differs between them ${depends}.`,
    continue: `Some ${threads} skip ${name}: the condition of a continue differs between them ${depends}.`,
  };
  const every = group === 'block' ? 'thread' : 'block';
  const remedy = `Make every ${every} reach the barrier: put the condition around the work before and after the barrier.`;
  const warp =
    barrier.scope === 'warp' ? ' This also applies to a warp barrier, because on the CPU device it is a barrier of the whole block.' : '';
  return new KernelTextError('K401', { start: parting.stmt.at, end: parting.stmt.at + 1 }, sentences[parting.how], remedy + warp);
}
