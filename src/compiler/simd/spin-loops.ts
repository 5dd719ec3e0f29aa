// Finds loops that spin on an atomic, such as a lock. In SIMD form, one lane could hold the lock while its neighbours spin in the same
// loop, so it would never release it. One thread after the other, the loop ends.
import type { ArrayRef, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { bodiesOf, someExpr, someStmt, statementsIn } from '../ir/walk.js';

type Loop = Extract<Stmt, { kind: 'loop' }>;

export function mayWait({ body }: Pick<KernelIr, 'body'>): boolean {
  for (const stmt of statementsIn(body)) if (stmt.kind === 'loop' && new Waiting(stmt).isFound) return true;
  return false;
}

class Waiting {
  isFound = false;
  /** Variables and local arrays that depend on the result of an atomic of the loop. */
  readonly #tainted = new Set<Variable | ArrayRef>();

  constructor(loop: Loop) {
    for (let size = -1; size !== this.#tainted.size; ) {
      size = this.#tainted.size;
      this.#list([loop], false);
    }
  }

  #list(body: readonly Stmt[], isBelow: boolean): void {
    for (const stmt of body) {
      if ((stmt.kind === 'declare' || stmt.kind === 'assign') && (isBelow || this.#isTainted(stmt.value))) this.#tainted.add(stmt.variable);
      if (stmt.kind === 'store' && stmt.array.space === 'local' && (isBelow || this.#isTainted(stmt.value))) this.#tainted.add(stmt.array);
      const isAsked = (stmt.kind === 'if' || stmt.kind === 'loop') && this.#isTainted(stmt.test);
      this.isFound ||= isAsked && (stmt.kind === 'loop' || someStmt(stmt, leaves));
      for (const inner of bodiesOf(stmt)) this.#list(inner, isBelow || isAsked);
    }
  }

  #isTainted(expr: Expr | undefined): boolean {
    if (expr === undefined) return false;
    return someExpr(expr, (part) => {
      if (part.kind === 'variable') return this.#tainted.has(part.variable);
      if (part.kind === 'load') return this.#tainted.has(part.array);
      return part.kind === 'atomic' && !isTaking(part);
    });
  }
}

function leaves({ kind }: Stmt): boolean {
  return kind === 'break' || kind === 'continue' || kind === 'return';
}

/** Whether the atomic takes from a counter, such as a work queue: every caller makes progress. */
function isTaking({ op, args }: Extract<Expr, { kind: 'atomic' }>): boolean {
  const [by] = args;
  if (op !== 'add' && op !== 'sub') return false;
  return by !== undefined && ((by.kind === 'const' && by.value !== 0) || (by.kind === 'wide' && by.value !== 0n));
}
