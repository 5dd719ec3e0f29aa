// May blocks that stand side by side along x run as one, row after row? Threads of different blocks come in any order, so
// they may where nobody asks which block it is in, nor could tell by what others have done. And then: have all values room
// in narrower lanes?
import { analyse } from '../analysis/uniformity.js';
import { Names } from '../emission/names.js';
import { rangeTest } from '../emission/ranges.js';
import type { ArrayRef, Expr, KernelIr, Stmt } from '../ir/ir.js';
import { expressionsOf, operands, someExpr, someExprOf, statementsIn } from '../ir/walk.js';
import { type Narrow, narrowest } from './element-width.js';
import { isNumber, type Strides, stepsIn } from './strides.js';

export interface SimdForm {
  /** Blocks side by side run as one. */
  readonly isTogether: boolean;
  /** Lanes are narrower than 32 bits. */
  readonly narrow: Narrow | undefined;
}

const APART: SimdForm = { isTogether: false, narrow: undefined };

export function formOf(ir: KernelIr, isChecked: boolean): SimdForm {
  if (!mayRunTogether(ir)) return APART;
  // Checks are asked for a whole run of blocks.
  if (isChecked && rangeTest(ir.body, new Names(), new Set(), ir.indexRank) === undefined) return APART;
  const { causeOf } = analyse(ir, { indexRank: ir.indexRank, differing: [] });
  const known = new Map<Expr, boolean>();
  const isVarying = (expr: Expr): boolean => {
    let isKnown = known.get(expr);
    // What is made of something that differs does so too.
    if (isKnown === undefined) known.set(expr, (isKnown = operands(expr).some(isVarying) || causeOf(expr) !== undefined));
    return isKnown;
  };
  const strides = stepsIn(ir.body, isVarying);
  // Rows of one block are too short for more lanes.
  return goesAlongRows(ir, isVarying, strides) ? { isTogether: true, narrow: narrowest(ir, isVarying, strides) } : APART;
}

/** Not where there are loops: what a block's threads load again and again is near for as long as they run together. */
function mayRunTogether(ir: KernelIr): boolean {
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

/** Nor where neighbours along x look at different rows, as in a transposition: those of a block share what is near. */
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
