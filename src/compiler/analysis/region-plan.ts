// Splits a kernel with barriers into regions for the block form. Every thread of the block runs a region from start to end before the next
// piece begins. Between regions the block runs some statements once: barriers, the branches and loops around barriers, and the variables
// that control those. uniformity.ts proves that these are the same for all threads that have not returned; otherwise the compiler rejects
// the kernel. storage.ts decides where each variable lives. docs/decisions/0015 gives the reasons.
import { brokenBarrier, checkRoomForGrid, hasBarrier, hasGridBarrier } from './barriers.js';
import type { BarrierScope, Expr, KernelIr, Stmt, Variable } from '../ir/ir.js';
import { analyse, type Uniformity } from './uniformity.js';
import { bodiesOf, expressionsOf, someExpr, someExprOf, someStmt, statementsIn, writtenArrays } from '../ir/walk.js';

export type Loop = Extract<Stmt, { kind: 'loop' }>;
export interface Region {
  readonly kind: 'region';
  /** Starts at 1. */
  readonly number: number;
  readonly body: readonly Stmt[];
}
export type Piece =
  | Region
  /** A declaration or assignment of a block variable; or a `break`, `continue` or `return` that all threads take. */
  | { readonly kind: 'once'; readonly stmt: Stmt }
  | { readonly kind: 'barrier'; readonly at: number; readonly scope: BarrierScope }
  | { readonly kind: 'if'; readonly at: number; readonly test: Expr; readonly then: readonly Piece[]; readonly otherwise: readonly Piece[] }
  | {
      readonly kind: 'loop';
      readonly loop: Loop;
      readonly init: readonly Piece[];
      readonly update: readonly Piece[];
      readonly body: readonly Piece[];
    }
  | { readonly kind: 'block'; readonly at: number; readonly body: readonly Piece[] };

export interface Plan {
  readonly pieces: readonly Piece[];
  readonly regions: readonly Region[];
  /** Variables of which the block holds one copy. */
  readonly shared: ReadonlySet<Variable>;
}

/** The pieces of a kernel; undefined for a kernel without barriers. Throws K401 when some threads may not reach a barrier. */
export function planRegions(ir: KernelIr): Plan | undefined {
  const uniformity = checkBarriers(ir);
  return uniformity && new Planner(ir, uniformity).plan();
}

/** The uniformity of a kernel's values; undefined without barriers. Throws K401 when some threads may not reach a barrier. */
export function checkBarriers(ir: KernelIr): Uniformity | undefined {
  if (!ir.body.some(hasBarrier)) return undefined;
  const uniformity = analyse(ir);
  const [broken] = uniformity.brokenBarriers;
  if (broken !== undefined) throw brokenBarrier(broken, 'block');
  if (hasGridBarrier(ir)) {
    checkRoomForGrid(ir);
    const parted = analyse(ir, 'grid').brokenBarriers.find(({ barrier }) => barrier.scope === 'grid');
    if (parted !== undefined) throw brokenBarrier(parted, 'grid');
  }
  return uniformity;
}

/** A kernel without barriers is one region; an empty one has none. */
export function oneRegion(ir: KernelIr): Plan {
  if (ir.body.length === 0) return { pieces: [], regions: [], shared: new Set() };
  const region: Region = { kind: 'region', number: 1, body: ir.body };
  return { pieces: [region], regions: [region], shared: new Set() };
}

class Planner {
  readonly #body: readonly Stmt[];
  readonly #uniformity: Uniformity;
  /** Branches, loops and blocks that run once per block, outside the regions. */
  readonly #outer = new Set<Stmt>();
  /** Variables that the conditions of `#outer` depend on. */
  readonly #deciding = new Set<Variable>();
  /** Variables of which the block holds one copy. */
  readonly #shared = new Set<Variable>();
  readonly #regions: Region[] = [];

  constructor(ir: KernelIr, uniformity: Uniformity) {
    this.#body = ir.body;
    this.#uniformity = uniformity;
    while (this.#findOuter(ir.body, undefined) || this.#findDeciding(ir.body));
    this.#findShared();
  }

  plan(): Plan {
    const pieces = this.#pieces(this.#body);
    return { pieces, regions: this.#regions, shared: this.#shared };
  }

  /**
   * Adds to `#outer` every statement that contains a barrier, an assignment to a deciding variable, or a `break`, `continue` or `return`
   * that all threads take. Returns true when it added one.
   */
  #findOuter(body: readonly Stmt[], loop: Stmt | undefined): boolean {
    let hasFound = false;
    for (const stmt of body) {
      const inner = bodiesOf(stmt);
      if (inner.length === 0) continue;
      const around = stmt.kind === 'loop' ? stmt : loop;
      for (const list of inner) hasFound = this.#findOuter(list, around) || hasFound;
      if (this.#outer.has(stmt) || !inner.flat().some((part) => this.#pullsOut(part, around))) continue;
      this.#outer.add(stmt);
      hasFound = true;
    }
    return hasFound;
  }

  #pullsOut(stmt: Stmt, loop: Stmt | undefined): boolean {
    if (stmt.kind === 'barrier' || this.#outer.has(stmt)) return true;
    if (this.#uniformity.divergent.has(stmt)) return false;
    if (stmt.kind === 'assign') return this.#deciding.has(stmt.variable);
    if (stmt.kind === 'break' || stmt.kind === 'continue') return loop !== undefined && this.#outer.has(loop);
    return stmt.kind === 'return';
  }

  #findDeciding(body: readonly Stmt[]): boolean {
    const before = this.#deciding.size;
    for (const stmt of statementsIn(body)) {
      const isAssigned = (stmt.kind === 'declare' || stmt.kind === 'assign') && this.#deciding.has(stmt.variable);
      if (isAssigned || this.#outer.has(stmt)) for (const expr of expressionsOf(stmt)) forEachVariable(expr, (v) => this.#deciding.add(v));
    }
    return this.#deciding.size > before;
  }

  /** Finds the uniform variables that only statements outside the regions declare and assign, from values of such variables. */
  #findShared(): void {
    const inside = new Set<Variable>();
    const values = new Map<Variable, Expr[]>();
    const visit = (body: readonly Stmt[], isOutside: boolean): void => {
      for (const stmt of body) {
        if (stmt.kind === 'declare' || stmt.kind === 'assign') {
          if (!isOutside || !this.#uniformity.isUniform(stmt.variable) || this.#uniformity.divergent.has(stmt)) inside.add(stmt.variable);
          values.set(stmt.variable, [...(values.get(stmt.variable) ?? []), ...expressionsOf(stmt)]);
        }
        for (const list of bodiesOf(stmt)) visit(list, isOutside && this.#outer.has(stmt));
      }
    };
    visit(this.#body, true);
    for (let hasChanged = true; hasChanged; ) {
      hasChanged = false;
      for (const [variable, exprs] of values) {
        if (inside.has(variable) || !exprs.some((expr) => mentions(expr, inside))) continue;
        inside.add(variable);
        hasChanged = true;
      }
    }
    for (const variable of values.keys()) if (!inside.has(variable)) this.#shared.add(variable);
  }

  #pieces(body: readonly Stmt[]): Piece[] {
    const pieces: Piece[] = [];
    let open: Stmt[] = [];
    const close = (): void => {
      if (open.length === 0) return;
      const region: Region = { kind: 'region', number: this.#regions.length + 1, body: open };
      this.#regions.push(region);
      pieces.push(region);
      open = [];
    };
    for (const stmt of body) {
      if (!this.#isOnce(stmt)) {
        open.push(stmt);
        continue;
      }
      // A statement that the open region does not depend on may run before it, so the region continues.
      if (!mayComeBefore(stmt, open)) close();
      pieces.push(this.#piece(stmt));
    }
    close();
    return pieces;
  }

  #isOnce(stmt: Stmt): boolean {
    switch (stmt.kind) {
      case 'barrier':
        return true;
      case 'declare':
      case 'assign':
        return this.#shared.has(stmt.variable);
      case 'break':
      case 'continue':
      case 'return':
        return !this.#uniformity.divergent.has(stmt);
      default:
        return this.#outer.has(stmt);
    }
  }

  #piece(stmt: Stmt): Piece {
    switch (stmt.kind) {
      case 'barrier':
        return { kind: 'barrier', at: stmt.at, scope: stmt.scope };
      case 'if': {
        const { at, test } = stmt;
        return { kind: 'if', at, test, then: this.#pieces(stmt.then), otherwise: this.#pieces(stmt.otherwise) };
      }
      case 'loop': {
        const init = this.#pieces(stmt.init);
        const body = this.#pieces(stmt.body);
        return { kind: 'loop', loop: stmt, init, update: this.#pieces(stmt.update), body };
      }
      case 'block':
        return { kind: 'block', at: stmt.at, body: this.#pieces(stmt.body) };
      default:
        return { kind: 'once', stmt };
    }
  }
}

/** Whether the block can run `stmt` before a region that precedes it in the source. */
function mayComeBefore(stmt: Stmt, region: readonly Stmt[]): boolean {
  if (region.length === 0) return true;
  if (stmt.kind !== 'declare' && stmt.kind !== 'assign') return false;
  // All threads may have returned before the load. The region may also write the same memory, since a launch can pass one array twice.
  const loads = someExprOf(stmt, (expr) => expr.kind === 'load');
  if (loads && region.some((inner) => someStmt(inner, ({ kind }) => kind === 'return' || kind === 'assert'))) return false;
  if (loads && [...writtenArrays(region)].some(({ space }) => space === 'parameter')) return false;
  const own = new Set([stmt.variable]);
  return stmt.kind === 'declare' || !region.some((inner) => someExprOf(inner, (expr) => mentions(expr, own)));
}

export function mentions(expr: Expr, variables: ReadonlySet<Variable>): boolean {
  return someExpr(expr, (part) => part.kind === 'variable' && variables.has(part.variable));
}

export function forEachVariable(expr: Expr, visit: (variable: Variable) => void): void {
  someExpr(expr, (part) => {
    if (part.kind === 'variable') visit(part.variable);
    return false;
  });
}
