// Loops that go on until an atomic says so: of a lock, above all. One lane may hold what its neighbours wait for, and would
// never come to give it back, for they are in the loop together. One thread after the other ends.
import type { ArrayRef, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { bodiesOf, someExpr, someStmt, statementsIn } from '../ir/walk.js';

type Loop = Extract<Stmt, { kind: 'loop' }>;

export function mayWait({ body }: Pick<KernelIr, 'body'>): boolean {
  for (const stmt of statementsIn(body)) if (stmt.kind === 'loop' && new Waiting(stmt).isFound) return true;
  return false;
}

class Waiting {
  isFound = false;
  /** What depends on the result of an atomic of the loop. */
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

/** Of a counter, as of a queue of work: whoever asks gets on. */
function isTaking({ op, args }: Extract<Expr, { kind: 'atomic' }>): boolean {
  const [by] = args;
  if (op !== 'add' && op !== 'sub') return false;
  return by !== undefined && ((by.kind === 'const' && by.value !== 0) || (by.kind === 'wide' && by.value !== 0n));
}
