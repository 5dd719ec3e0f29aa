// Regions whose rows of threads read the same elements of shared memory: gone through column by column, these stay in registers. Asked by
// regions.ts.
import type { Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { expressionsOf, operands, someExpr, statementsIn, writtenArrays } from '../ir/walk.js';

/**
 * It is a question of speed alone: threads of a region take turns in any order. But one that changes memory keeps its order, in which
 * a thread may wait for one before it, and one that asserts, of which the first thread that fails is named.
 */
export function readsAlikeInRows(body: readonly Stmt[], indexRank: KernelIr['indexRank'], shared: ReadonlySet<Variable>): boolean {
  if (writtenArrays(body).size > 0) return false;
  const alike = new Set(shared);
  const isAlike = (expr: Expr): boolean => {
    switch (expr.kind) {
      case 'index':
        return expr.axis === indexRank - 1;
      case 'thread':
        return expr.vector !== 'threadIdx' || expr.axis === 0;
      case 'variable':
        return alike.has(expr.variable);
      case 'const':
      case 'scalar':
      case 'extent':
        return true;
      case 'arithmetic':
        return operands(expr).every(isAlike);
      default:
        return false;
    }
  };
  const isFound = (expr: Expr): boolean => expr.kind === 'load' && expr.array.space === 'shared' && expr.indices.every(isAlike);
  let isAny = false;
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'assert') return false;
    if (stmt.kind === 'declare' && stmt.value !== undefined && isAlike(stmt.value)) alike.add(stmt.variable);
    if (stmt.kind === 'assign' && !isAlike(stmt.value)) alike.delete(stmt.variable);
    isAny ||= expressionsOf(stmt).some((expr) => someExpr(expr, isFound));
  }
  return isAny;
}
