// The parts of an expression and of a statement, for those who look through a kernel for something.
import type { ArrayRef, Expr, KernelIr, Stmt, Variable } from './ir.js';

/** What an expression is made of, in the order of the text. */
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

/** The expression, and all that is in it. */
export function* partsOf(expr: Expr): Generator<Expr, void, undefined> {
  yield expr;
  for (const operand of operands(expr)) yield* partsOf(operand);
}

/** Is it so for the expression or for something in it? */
export function someExpr(expr: Expr, test: (expr: Expr) => boolean): boolean {
  return test(expr) || operands(expr).some((operand) => someExpr(operand, test));
}

/** The expressions of a statement itself, not of the statements in it. */
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

/** The lists of statements in a statement. */
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

/** Every statement, each before those in it. */
export function* statementsIn(body: readonly Stmt[]): Generator<Stmt, void, undefined> {
  for (const stmt of body) {
    yield stmt;
    for (const inner of bodiesOf(stmt)) yield* statementsIn(inner);
  }
}

/** Is it so for the statement or for one in it? */
export function someStmt(stmt: Stmt, test: (stmt: Stmt) => boolean): boolean {
  return test(stmt) || bodiesOf(stmt).some((body) => body.some((inner) => someStmt(inner, test)));
}

/** Is it so for an expression of the statement or of one in it? */
export function someExprOf(stmt: Stmt, test: (expr: Expr) => boolean): boolean {
  return someStmt(stmt, (inner) => expressionsOf(inner).some((expr) => someExpr(expr, test)));
}

/** Arrays that a list of statements may change. */
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

/** What is assigned again after its declaration. */
export function assignedIn(body: readonly Stmt[]): Set<Variable> {
  const assigned = new Set<Variable>();
  for (const stmt of statementsIn(body)) if (stmt.kind === 'assign') assigned.add(stmt.variable);
  return assigned;
}

export type Assertion = Extract<Stmt, { kind: 'assert' }>;

/** A kernel's assertions, in the order of the numbers that reports name them by. */
export function assertionsIn(ir: KernelIr): Assertion[] {
  return [...statementsIn(ir.body)].filter((stmt) => stmt.kind === 'assert');
}
