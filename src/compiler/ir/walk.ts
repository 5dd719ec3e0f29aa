// Traversal of expressions and statements.
import type { ArrayRef, Expr, KernelIr, Stmt, Variable } from './ir.js';

/** The operands of an expression, in source order. */
export function operands(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'load':
      return expr.indices;
    case 'negate':
    case 'invert':
    case 'not':
    case 'cast':
      return [expr.operand];
    case 'arithmetic':
    case 'compare':
    case 'logical':
      return [expr.left, expr.right];
    case 'select':
      return [expr.test, expr.then, expr.otherwise];
    case 'builtin':
    case 'call':
      return expr.args;
    case 'bind':
      return [expr.value, expr.body];
    case 'atomic':
      return [...expr.indices, ...expr.args];
    default:
      return [];
  }
}

/** The expression and all its subexpressions. */
export function* partsOf(expr: Expr): Generator<Expr, void, undefined> {
  yield expr;
  for (const operand of operands(expr)) yield* partsOf(operand);
}

/** Whether the test holds for the expression or a subexpression. */
export function someExpr(expr: Expr, test: (expr: Expr) => boolean): boolean {
  return test(expr) || operands(expr).some((operand) => someExpr(operand, test));
}

/** The expressions of a statement, without those of nested statements. */
export function expressionsOf(stmt: Stmt): readonly Expr[] {
  switch (stmt.kind) {
    case 'declare':
    case 'return':
      return stmt.value === undefined ? [] : [stmt.value];
    case 'assign':
      return [stmt.value];
    case 'store':
      return [...stmt.indices, stmt.value];
    case 'seed':
      return [stmt.seed, stmt.sequence];
    case 'effect':
      return [stmt.expr];
    case 'print':
      return stmt.parts.filter((part) => typeof part !== 'string');
    case 'assert':
    case 'if':
      return [stmt.test];
    case 'loop':
      return stmt.test === undefined ? [] : [stmt.test];
    default:
      return [];
  }
}

/** The statement lists nested in a statement. */
export function bodiesOf(stmt: Stmt): readonly (readonly Stmt[])[] {
  switch (stmt.kind) {
    case 'if':
      return [stmt.then, stmt.otherwise];
    case 'loop':
      return [stmt.init, stmt.update, stmt.body];
    case 'block':
      return [stmt.body];
    default:
      return [];
  }
}

/** Every statement, each before those nested in it. */
export function* statementsIn(body: readonly Stmt[]): Generator<Stmt, void, undefined> {
  for (const stmt of body) {
    yield stmt;
    for (const inner of bodiesOf(stmt)) yield* statementsIn(inner);
  }
}

/** Whether the test holds for the statement or a nested one. */
export function someStmt(stmt: Stmt, test: (stmt: Stmt) => boolean): boolean {
  return test(stmt) || bodiesOf(stmt).some((body) => body.some((inner) => someStmt(inner, test)));
}

/** Whether the test holds for an expression of the statement or of a nested one. */
export function someExprOf(stmt: Stmt, test: (expr: Expr) => boolean): boolean {
  return someStmt(stmt, (inner) => expressionsOf(inner).some((expr) => someExpr(expr, test)));
}

/** Arrays that the statements may write. */
export function writtenArrays(body: readonly Stmt[]): Set<ArrayRef> {
  const written = new Set<ArrayRef>();
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'store') written.add(stmt.array);
    for (const expr of expressionsOf(stmt)) {
      someExpr(expr, (part) => {
        if (part.kind === 'atomic') written.add(part.array);
        return false;
      });
    }
  }
  return written;
}

/** Variables that the statements assign after their declaration. */
export function assignedIn(body: readonly Stmt[]): Set<Variable> {
  const assigned = new Set<Variable>();
  for (const stmt of statementsIn(body)) if (stmt.kind === 'assign') assigned.add(stmt.variable);
  return assigned;
}

export type Assertion = Extract<Stmt, { kind: 'assert' }>;

/** A kernel's assertions. A fault report identifies each by its index here. */
export function assertionsIn(ir: KernelIr): Assertion[] {
  return [...statementsIn(ir.body)].filter((stmt) => stmt.kind === 'assert');
}
