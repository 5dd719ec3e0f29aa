// Derives facts about integers from conditions: comparisons that hold together, and the counter of a `for` loop.
import type { ComparisonOp, Expr, Stmt, Variable } from '../ir/ir.js';
import { statementsIn } from '../ir/walk.js';

export interface Comparison {
  readonly left: Expr;
  readonly op: ComparisonOp;
  readonly right: Expr;
}

/** Functions of the shim's index_ranges.h that narrow a range to the values for which `value op bound` can hold. */
export const BOUND: Readonly<Record<ComparisonOp, readonly string[]>> = {
  '<': ['mr_below'],
  '<=': ['mr_at_most'],
  '>': ['mr_above'],
  '>=': ['mr_at_least'],
  '==': ['mr_at_least', 'mr_at_most'],
  '!=': ['mr_except'],
};
const NEGATED: Readonly<Record<ComparisonOp, ComparisonOp>> = { '<': '>=', '<=': '>', '>': '<=', '>=': '<', '==': '!=', '!=': '==' };
const MIRRORED: Readonly<Record<ComparisonOp, ComparisonOp>> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '==': '==', '!=': '!=' };

export function mirrored(op: ComparisonOp): ComparisonOp {
  return MIRRORED[op];
}

function isInteger(expr: Expr): boolean {
  return expr.type === 'i32' || expr.type === 'u32';
}

/** The integer comparisons that are all true whenever the condition is true. */
export function conjuncts(test: Expr | undefined): readonly Comparison[] {
  if (test?.kind === 'compare') return isInteger(test.left) ? [test] : [];
  if (test?.kind === 'logical' && test.op === '&&') return [...conjuncts(test.left), ...conjuncts(test.right)];
  // `negated` returns the same expression when it cannot negate it.
  const turned = test?.kind === 'not' ? negated(test.operand) : test;
  return turned === undefined || turned.kind === 'not' || turned === test ? [] : conjuncts(turned);
}

/** The negation of a condition, for the forms that `conjuncts` understands. */
export function negated(test: Expr): Expr {
  if (test.kind === 'compare') return { ...test, op: NEGATED[test.op] };
  if (test.kind === 'not') return test.operand;
  if (test.kind === 'logical') return { ...test, op: test.op === '&&' ? '||' : '&&', left: negated(test.left), right: negated(test.right) };
  return { kind: 'not', type: 'bool', operand: test };
}

/** Whether every path through the list ends in a jump out of it. */
export function endsIn(body: readonly Stmt[]): boolean {
  const last = body.at(-1);
  if (last === undefined) return false;
  if (last.kind === 'return' || last.kind === 'continue' || last.kind === 'break') return true;
  if (last.kind === 'if') return endsIn(last.then) && endsIn(last.otherwise);
  return last.kind === 'block' && endsIn(last.body);
}

/** `up` is `for (let v = from; v < bound; v += step)`. `down` uses `>` and `-=`. `shrink` uses `>>=` or integer division. */
export interface Counter {
  readonly variable: Variable;
  readonly how: 'up' | 'down' | 'shrink';
  readonly from: Expr;
  /** The first value that fails the condition. */
  readonly bound: Expr;
  readonly step: Expr;
}

/** The loop's counter: a variable that the head declares, the condition compares, and only the update assigns. */
export function counterOf(loop: Extract<Stmt, { kind: 'loop' }>): Counter | undefined {
  if (loop.tested === 'after') return undefined;
  for (const stmt of loop.init) {
    if (stmt.kind !== 'declare' || stmt.value === undefined) continue;
    const counter = counted(loop, stmt.variable, stmt.value);
    if (counter !== undefined) return counter;
  }
  return undefined;
}

function counted(loop: Extract<Stmt, { kind: 'loop' }>, variable: Variable, from: Expr): Counter | undefined {
  const updates = loop.update.filter((stmt) => stmt.kind === 'assign' && stmt.variable === variable);
  const isVariable = (expr: Expr): boolean => expr.kind === 'variable' && expr.variable === variable;
  for (const stmt of statementsIn([...loop.body, ...loop.update])) {
    if (stmt.kind === 'assign' && stmt.variable === variable && !updates.includes(stmt)) return undefined;
  }
  const [update] = updates;
  if (updates.length !== 1 || update?.kind !== 'assign') return undefined;
  const step = stepOf(update.value, isVariable);
  if (step === undefined) return undefined;
  for (const { left, op, right } of conjuncts(loop.test)) {
    const [bound, of] = isVariable(left) ? [right, op] : [left, mirrored(op)];
    if (!isVariable(left) && !isVariable(right)) continue;
    const isTowards = step.how === 'up' ? of === '<' || of === '<=' : of === '>' || of === '>=';
    if (!isTowards) continue;
    const one: Expr = { kind: 'const', type: variable.type, value: 1 };
    const beyond: Expr =
      of === '<' || of === '>' ? bound : { kind: 'arithmetic', type: variable.type, op: of === '<=' ? '+' : '-', left: bound, right: one };
    return { variable, ...step, from, bound: beyond };
  }
  return undefined;
}

function stepOf(value: Expr, isVariable: (expr: Expr) => boolean): Pick<Counter, 'how' | 'step'> | undefined {
  if (value.kind === 'builtin' && value.name === 'idiv' && isVariable(value.args[0]!)) return { how: 'shrink', step: value.args[1]! };
  if (value.kind !== 'arithmetic') return undefined;
  const { op, left, right } = value;
  if (op === '+' && isVariable(left)) return { how: 'up', step: right };
  if (op === '+' && isVariable(right)) return { how: 'up', step: left };
  if (op === '-' && isVariable(left)) return { how: 'down', step: right };
  // A right shift never moves the value away from 0, whatever the shift count.
  if (op === '>>' && isVariable(left)) return { how: 'shrink', step: { kind: 'const', type: 'i32', value: 1 } };
  return undefined;
}
