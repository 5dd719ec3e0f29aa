// Analyses the control flow of SIMD lanes in statements before emission.
import { type Expr, type Stmt } from '../ir/ir.js';
import { bodiesOf, expressionsOf, operands, someExprOf, someStmt } from '../ir/walk.js';

type Loop = Extract<Stmt, { kind: 'loop' }>;

/** Whether lanes may leave the kernel in the statements. */
export function mayLose(body: readonly Stmt[], isChecked: boolean): boolean {
  return body.some((stmt) =>
    someStmt(stmt, (inner) => {
      if (inner.kind === 'return' || inner.kind === 'assert') return true;
      return isChecked && (inner.kind === 'store' || someExprOf(inner, ({ kind }) => kind === 'load' || kind === 'atomic'));
    }),
  );
}

/** Whether only some lanes of the loop may reach a `break` or `continue` of it. */
export function hasPartial(loop: Loop, kind: 'break' | 'continue', isVarying: (expr: Expr) => boolean): boolean {
  const search = (body: readonly Stmt[], isBelow: boolean): boolean =>
    body.some((stmt) => {
      if (stmt.kind === kind) return isBelow;
      if (stmt.kind === 'if') return bodiesOf(stmt).some((inner) => search(inner, isBelow || isVarying(stmt.test)));
      return stmt.kind === 'block' && search(stmt.body, isBelow);
    });
  return search(loop.body, false);
}

/** Whether running the statements with no active lane costs less than a test for active lanes. */
export function isBrief(body: readonly Stmt[]): boolean {
  const isSimple = (stmt: Stmt): boolean =>
    (stmt.kind === 'assign' || stmt.kind === 'declare') &&
    !someExprOf(
      stmt,
      (expr) => expr.kind === 'load' || expr.kind === 'atomic' || expr.kind === 'call' || expr.kind === 'draw' || isLong(expr),
    );
  return body.length <= 3 && body.every(isSimple) && sizeOf(body) <= 16;
}

function isLong(expr: Expr): boolean {
  if (expr.kind === 'arithmetic') return expr.op === '/' || expr.op === '%';
  return expr.kind === 'builtin' && !['min', 'max', 'abs', 'clamp', 'imul', 'fma', 'mix', 'floatBits', 'bitsFloat'].includes(expr.name);
}

/** Estimates the size of the emitted source, in expressions. */
export function sizeOf(body: readonly Stmt[]): number {
  const ofExpr = (expr: Expr): number => operands(expr).reduce((sum, operand) => sum + ofExpr(operand), 1);
  return body.reduce((sum, stmt) => {
    const own = expressionsOf(stmt).reduce((inner, expr) => inner + ofExpr(expr), 1);
    return sum + own + bodiesOf(stmt).reduce((inner, list) => inner + sizeOf(list), 0);
  }, 0);
}

/** Whether the statements contain a memory access, which a mask slows down. */
export function touchesMemory(body: readonly Stmt[]): boolean {
  return body.some((stmt) =>
    someStmt(stmt, (inner) => inner.kind === 'store' || inner.kind === 'loop' || someExprOf(inner, ({ kind }) => kind === 'load')),
  );
}
