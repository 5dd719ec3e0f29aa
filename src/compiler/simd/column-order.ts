// Finds regions in which the rows of threads read the same elements of shared memory. simd-regions.ts runs these column by
// column, which keeps the elements in registers.
import type { Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { expressionsOf, operands, someExpr, statementsIn, writtenArrays } from '../ir/walk.js';

/**
 * The order affects only speed, since a region's threads may run in any order. Two kinds of region keep their order: one that writes
 * memory, where a thread may wait for an earlier one, and one that asserts, where the report names the first thread that fails.
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
