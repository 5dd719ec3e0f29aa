// Block fusion: decides whether blocks that are adjacent along x may run as one, row by row. Blocks run in any order, so fusion is safe if
// no thread uses its block's index and no thread can observe the effects of others. If so, also decides whether all values fit in narrower
// SIMD lanes.
import { analyse } from '../analysis/uniformity.js';
import { Names } from '../emission/names.js';
import { rangeTest } from '../emission/ranges.js';
import type { ArrayRef, Expr, KernelIr, Stmt } from '../ir/ir.js';
import { expressionsOf, operands, someExpr, someExprOf, statementsIn } from '../ir/walk.js';
import { type Narrow, narrowest } from './element-width.js';
import { isNumber, type Strides, stepsIn } from './strides.js';

export interface SimdForm {
  /** Whether adjacent blocks run as one. */
  readonly isFused: boolean;
  /** Set when elements are narrower than 32 bits. */
  readonly narrow: Narrow | undefined;
}

const UNFUSED: SimdForm = { isFused: false, narrow: undefined };

export function formOf(ir: KernelIr, isChecked: boolean): SimdForm {
  if (!mayFuse(ir)) return UNFUSED;
  // Index checks are tested for a whole run of blocks at once.
  if (isChecked && rangeTest(ir.body, new Names(), new Set(), ir.indexRank) === undefined) return UNFUSED;
  const { causeOf } = analyse(ir, { indexRank: ir.indexRank, differing: [] });
  const known = new Map<Expr, boolean>();
  const isVarying = (expr: Expr): boolean => {
    let isKnown = known.get(expr);
    // An expression with a varying operand varies.
    if (isKnown === undefined) known.set(expr, (isKnown = operands(expr).some(isVarying) || causeOf(expr) !== undefined));
    return isKnown;
  };
  const strides = stepsIn(ir.body, isVarying);
  // Narrow elements need long rows, which a single block does not have.
  return goesAlongRows(ir, isVarying, strides) ? { isFused: true, narrow: narrowest(ir, isVarying, strides) } : UNFUSED;
}

/** Loops exclude fusion, because data that a block's threads load repeatedly leaves the cache when many blocks run together. */
function mayFuse(ir: KernelIr): boolean {
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

/** Different rows for neighbours along x (a transposition) exclude fusion, because they share cache lines only within a block. */
function goesAlongRows({ body }: KernelIr, isVarying: (expr: Expr) => boolean, strides: Strides): boolean {
  const isNear = ({ indices }: { readonly array: ArrayRef; readonly indices: readonly Expr[] }): boolean =>
    indices.every((index, at) => {
      if (at < indices.length - 1) return !isVarying(index);
      const step = strides.stepOf(index);
      return step === undefined || isNumber(step);
    });
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'store' && !isNear(stmt)) return false;
    if (expressionsOf(stmt).some((expr) => someExpr(expr, (part) => part.kind === 'load' && !isNear(part)))) return false;
  }
  return true;
}
