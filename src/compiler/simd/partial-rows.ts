// Finds regions in which only the first threads of a row do work; their groups end there, so they need no masks.
import { mirrored, negated } from '../analysis/conditions.js';
import type { RegionParts } from '../emission/region-emitter.js';
import type { Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { operands } from '../ir/walk.js';

/** Threads with an index below `bound + beyond` take part. */
export interface Narrowed {
  readonly index: 'thread' | 'launch';
  readonly bound: Expr;
  readonly beyond: 0 | 1;
  /** The statements that these threads run. */
  readonly body: readonly Stmt[];
}

/** Matches a region that is only `if (threadIdx.x < bound) ...`, or `if (i >= bound) return;` if later regions ignore who returned. */
export function narrow(
  { body, storage, isLosing }: RegionParts,
  indexRank: KernelIr['indexRank'],
  shared: ReadonlySet<Variable>,
): Narrowed | undefined {
  const [first, ...rest] = body;
  if (first?.kind !== 'if' || first.otherwise.length > 0 || storage.anew.length > 0) return undefined;
  const isGuard = first.then.length === 1 && first.then[0]!.kind === 'return';
  if (isGuard ? isLosing : rest.length > 0) return undefined;
  const test = isGuard ? negated(first.test) : first.test;
  if (test.kind !== 'compare' || test.left.type !== 'i32') return undefined;
  for (const [side, op, bound] of [
    [test.left, test.op, test.right],
    [test.right, mirrored(test.op), test.left],
  ] as const) {
    const index = indexOf(side, indexRank);
    if (index === undefined || !isOne(bound, shared)) continue;
    if (op === '<' || op === '<=') return { index, bound, beyond: op === '<' ? 0 : 1, body: isGuard ? rest : first.then };
    // The body still tests for equality with the bound.
    if (op === '==' && !isGuard) return { index, bound, beyond: 1, body };
  }
  return undefined;
}

function indexOf(expr: Expr, indexRank: KernelIr['indexRank']): Narrowed['index'] | undefined {
  if (expr.kind === 'thread' && expr.vector === 'threadIdx' && expr.axis === 0) return 'thread';
  return expr.kind === 'index' && expr.axis === indexRank - 1 ? 'launch' : undefined;
}

/** Whether the value is known before the region and is the same for all threads. */
function isOne(expr: Expr, shared: ReadonlySet<Variable>): boolean {
  switch (expr.kind) {
    case 'const':
    case 'scalar':
    case 'extent':
      return true;
    case 'variable':
      return shared.has(expr.variable);
    case 'thread':
      return expr.vector !== 'threadIdx';
    case 'arithmetic':
      return ['+', '-', '*'].includes(expr.op) && operands(expr).every((operand) => isOne(operand, shared));
    default:
      return false;
  }
}
