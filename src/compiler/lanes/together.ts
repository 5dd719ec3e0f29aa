// May blocks that stand side by side along x run as one, row after row? Threads of different blocks come in any order, so
// they may where nobody asks which block it is in, nor could tell by what others have done.
import type { Expr, KernelIr, Stmt } from '../ir/ir.js';
import { someExprOf, statementsIn } from '../ir/walk.js';

/** Not where there are loops: what a block's threads load again and again is near for as long as they run together. */
export function mayRunTogether(ir: KernelIr): boolean {
  if (ir.arrays.length > 0) return false;
  for (const func of ir.funcs) for (const stmt of statementsIn(func.body)) if (stmt.kind === 'loop') return false;
  return ir.body.every((stmt) => !someExprOf(stmt, asksForBlock) && [...statementsIn([stmt])].every(isFree));
}

function isFree({ kind }: Stmt): boolean {
  return kind !== 'loop' && kind !== 'barrier' && kind !== 'fence' && kind !== 'assert';
}

function asksForBlock(expr: Expr): boolean {
  if (expr.kind === 'thread') return expr.axis === 0 && (expr.vector === 'threadIdx' || expr.vector === 'blockIdx');
  return expr.kind === 'atomic' || expr.kind === 'draw';
}
