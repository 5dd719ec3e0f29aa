// Decides which kernels can have a SIMD form, and which gain from it.
import { DTYPES, is16BitFloat } from '../../core/elements/dtype.js';
import { elementsOf } from '../emission/region-emitter.js';
import { type Expr, type KernelIr, type Stmt } from '../ir/ir.js';
import { expressionsOf, partsOf, someExpr, statementsIn } from '../ir/walk.js';
import { isVectorFunction, isWide } from './operators.js';
import { formOf } from './block-fusion.js';
import { mayWait } from './spin-loops.js';

/** All statements of the kernel and its helpers. */
function* statementsOf(ir: KernelIr): Generator<Stmt, void, undefined> {
  yield* statementsIn(ir.body);
  for (const func of ir.funcs) yield* statementsIn(func.body);
}
function* expressionsIn(ir: KernelIr): Generator<Expr, void, undefined> {
  for (const stmt of statementsOf(ir)) for (const expr of expressionsOf(stmt)) yield* partsOf(expr);
}

/** Limit of a thread's local memory: the stack holds that of 16 threads, twice when a region is emitted in two versions. */
const MOST_LOCAL_BYTES = 16 * 1024;

export function isTaken(ir: KernelIr): boolean {
  const local = ir.arrays.filter(({ space }) => space === 'local');
  if (local.reduce((sum, array) => sum + elementsOf(array) * DTYPES[array.dtype].byteSize, 0) > MOST_LOCAL_BYTES) return false;
  if (mayWait(ir)) return false;
  for (const stmt of statementsOf(ir)) {
    if (stmt.kind === 'print' || stmt.kind === 'seed') return false;
    if (stmt.kind === 'store' && is16BitFloat(stmt.array.dtype)) return false;
  }
  for (const expr of expressionsIn(ir)) {
    if (expr.kind === 'draw') return false;
    if ((expr.kind === 'load' || expr.kind === 'atomic') && is16BitFloat(expr.array.dtype)) return false;
  }
  return true;
}

/** Whether a varying value has 64 bits. Then a vector has only as many lanes as 64-bit values fit. */
export function usesWide(ir: KernelIr, isVarying: (expr: Expr) => boolean): boolean {
  for (const func of ir.funcs) {
    if (isWide(func.result) || func.params.some(({ type }) => isWide(type))) return true;
    for (const stmt of statementsIn(func.body)) {
      if (stmt.kind === 'declare' && isWide(stmt.variable.type)) return true;
      for (const expr of expressionsOf(stmt)) for (const part of partsOf(expr)) if (isWide(part.type)) return true;
    }
  }
  for (const stmt of statementsIn(ir.body)) {
    if (stmt.kind === 'store' && isWide(stmt.array.dtype)) return true;
    if (
      stmt.kind === 'declare' &&
      isWide(stmt.variable.type) &&
      isVarying({ kind: 'variable', type: stmt.variable.type, variable: stmt.variable })
    )
      return true;
    for (const expr of expressionsOf(stmt)) for (const part of partsOf(expr)) if (isWide(part.type) && isVarying(part)) return true;
  }
  return false;
}

/**
 * C++ compilers vectorise straight-line code themselves, unless it calls functions, and atomics are sequential in any case. But they do not
 * know neighbouring blocks, and calling the kernel for a block of 256 threads takes as long as the threads of `y[i] = a[i] + b[i]`.
 */
export function isFaster(ir: KernelIr, isChecked: boolean): boolean {
  for (const stmt of statementsOf(ir)) if (stmt.kind === 'if' || stmt.kind === 'loop' || stmt.kind === 'barrier') return true;
  for (const expr of expressionsIn(ir)) {
    if (expr.kind === 'builtin' && isVectorFunction(expr)) return true;
    const arms = expr.kind === 'select' ? [expr.then, expr.otherwise] : expr.kind === 'logical' ? [expr.right] : [];
    if (arms.some((arm) => someExpr(arm, ({ kind }) => kind === 'load'))) return true;
  }
  return formOf(ir, isChecked).isFused;
}
