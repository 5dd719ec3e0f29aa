// Finds values that grow by a constant stride from lane to lane: an index, and sums with it. Only lane 0's value is computed, as a scalar,
// and a load at such an index can be a vector load.
import type { Expr, Stmt, Variable } from '../ir/ir.js';
import { assignedIn, expressionsOf, partsOf, statementsIn } from '../ir/walk.js';

/** C++ source of a stride; '0' for a uniform value, '1' for adjacent elements. */
export type Step = string;

export class Strides {
  readonly #of = new Map<Variable, Step>();
  readonly #isVarying: (expr: Expr) => boolean;
  readonly #uniformText: (expr: Expr) => string;

  constructor(isVarying: (expr: Expr) => boolean, uniformText: (expr: Expr) => string) {
    this.#isVarying = isVarying;
    this.#uniformText = uniformText;
  }

  set(variable: Variable, step: Step): void {
    this.#of.set(variable, step);
  }
  has(variable: Variable): boolean {
    return this.#of.has(variable);
  }

  /** Undefined when the value has no stride. Only i32 values have one, because a u32 may wrap between two lanes. */
  stepOf(expr: Expr): Step | undefined {
    if (expr.type !== 'i32') return undefined;
    if (!this.#isVarying(expr)) return '0';
    switch (expr.kind) {
      case 'index':
      case 'thread':
        return '1';
      case 'variable':
        return this.#of.get(expr.variable);
      case 'negate':
        return difference('0', this.stepOf(expr.operand));
      case 'arithmetic':
        return this.#arithmetic(expr);
      default:
        return undefined;
    }
  }

  #arithmetic({ op, left, right }: Extract<Expr, { kind: 'arithmetic' }>): Step | undefined {
    // Long sums nest on the left, so the short right side goes first.
    const b = this.stepOf(right);
    const a = b && this.stepOf(left);
    if (a === undefined || b === undefined) return undefined;
    switch (op) {
      case '+':
        return sum(a, b);
      case '-':
        return difference(a, b);
      case '*':
        if (b === '0') return product(a, this.#factor(right));
        return a === '0' ? product(b, this.#factor(left)) : undefined;
      case '<<':
        return b === '0' && right.kind === 'const' ? product(a, String(2 ** (right.value & 31))) : undefined;
      default:
        return undefined;
    }
  }

  /** A factor is emitted twice, so only a short expression without side effects qualifies. */
  #factor(expr: Expr): string | undefined {
    if (expr.kind === 'const') return String(expr.value);
    const isShort = expr.kind === 'scalar' || expr.kind === 'extent' || expr.kind === 'thread' || expr.kind === 'variable';
    return isShort ? this.#uniformText(expr) : undefined;
  }
}

/** Finds the strides of a kernel before emission, for variables that are never reassigned. */
export function stepsIn(body: readonly Stmt[], isVarying: (expr: Expr) => boolean): Strides {
  const strides = new Strides(isVarying, () => 'step');
  const assigned = assignedIn(body);
  const note = (variable: Variable, value: Expr): void => {
    const step = assigned.has(variable) ? undefined : strides.stepOf(value);
    if (step !== undefined && step !== '0') strides.set(variable, step);
  };
  for (const stmt of statementsIn(body)) {
    for (const expr of expressionsOf(stmt)) {
      for (const part of partsOf(expr)) if (part.kind === 'bind') note(part.variable, part.value);
    }
    if (stmt.kind === 'declare' && stmt.value !== undefined) note(stmt.variable, stmt.value);
  }
  return strides;
}

export function isNumber(text: string): boolean {
  return /^-?\d+$/.test(text);
}

function sum(a: Step, b: Step): Step {
  if (a === '0') return b;
  if (b === '0') return a;
  return isNumber(a) && isNumber(b) ? String(Number(a) + Number(b)) : `(${a} + ${b})`;
}

function difference(a: Step, b: Step | undefined): Step | undefined {
  if (b === undefined || b === '0') return b && a;
  return isNumber(a) && isNumber(b) ? String(Number(a) - Number(b)) : `(${a} - ${b})`;
}

function product(a: Step, b: string | undefined): Step | undefined {
  if (b === undefined || a === '0') return b && a;
  if (a === '1') return b;
  const value = Number(a) * Number(b);
  return isNumber(a) && isNumber(b) ? (Math.abs(value) < 2 ** 24 ? String(value) : undefined) : `(${a} * ${b})`;
}
