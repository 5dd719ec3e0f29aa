// Decides where the variables of a kernel with barriers live, apart from block variables. A variable is local to the one region that uses
// it, or every region recomputes it when that costs a few instructions and no memory access (so that compilers can analyse index
// expressions and vectorise), or an array with one element per thread keeps it from region to region.
import type { ArrayRef, Axis, Expr, Stmt, Variable } from '../ir/ir.js';
import { forEachVariable, type Piece, type Plan, type Region } from './region-plan.js';
import { bodiesOf, expressionsOf, operands, someExpr, statementsIn } from '../ir/walk.js';

type Declaration = Extract<Stmt, { kind: 'declare' }>;

/** The variables and arrays that a region needs. */
export interface RegionStorage {
  readonly indices: ReadonlySet<Axis>;
  /** Declarations of other regions that this region recomputes, in source order. */
  readonly anew: readonly Declaration[];
  readonly crossing: readonly Variable[];
  /** Local arrays that other regions use too. */
  readonly crossingArrays: readonly ArrayRef[];
  /** Local arrays that only this region uses. */
  readonly ownArrays: readonly ArrayRef[];
}

export interface Storage {
  readonly of: ReadonlyMap<Region, RegionStorage>;
  readonly crossing: ReadonlySet<Variable>;
  readonly crossingArrays: ReadonlySet<ArrayRef>;
  /** Whether a region can omit one of its declarations, because only other regions use the variable and they recompute it. */
  readonly isOnlyElsewhere: (region: Region, declaration: Stmt) => boolean;
}

/** Builtins that cost no more than a load from the per-thread array. */
const CHEAP: ReadonlySet<string> = new Set(['idiv', 'floordiv', 'imul', 'min', 'max', 'clamp', 'abs', 'sign']);

interface Uses {
  readonly variables: Set<Variable>;
  readonly arrays: Set<ArrayRef>;
  readonly indices: Set<Axis>;
}

export function placeVariables(body: readonly Stmt[], plan: Plan): Storage {
  return new Placement(body, plan).place();
}

class Placement {
  readonly #plan: Plan;
  /** In source order. */
  readonly #declarations = new Map<Variable, Declaration>();
  /** The statements that follow a declaration within the variable's scope. */
  readonly #scopes = new Map<Variable, readonly Stmt[]>();
  readonly #assigned = new Set<Variable>();
  /** The region whose statement list contains the declaration. */
  readonly #homes = new Map<Variable, Region>();
  readonly #uses = new Map<Region, Uses>();

  constructor(body: readonly Stmt[], plan: Plan) {
    this.#plan = plan;
    this.#note(body, []);
    for (const region of plan.regions) {
      for (const stmt of region.body) if (stmt.kind === 'declare') this.#homes.set(stmt.variable, region);
      this.#uses.set(region, usesOf(region.body));
    }
  }

  place(): Storage {
    for (const region of this.#plan.regions) {
      for (const variable of this.#uses.get(region)!.variables) this.#needForRebuilding(variable, region);
    }
    const crossing = new Set<Variable>();
    for (const [variable, home] of this.#homes) {
      const isElsewhere = this.#plan.regions.some((region) => region !== home && this.#uses.get(region)!.variables.has(variable));
      if (isElsewhere && !this.#isRebuilt(variable)) crossing.add(variable);
    }
    const crossingArrays = this.#crossingArrays();
    const of = new Map(this.#plan.regions.map((region) => [region, this.#storageOf(region, crossing, crossingArrays)]));
    const isOnlyElsewhere = (region: Region, stmt: Stmt): boolean =>
      stmt.kind === 'declare' && !this.#uses.get(region)!.variables.has(stmt.variable) && this.#isRebuilt(stmt.variable);
    return { of, crossing, crossingArrays, isOnlyElsewhere };
  }

  #note(list: readonly Stmt[], after: readonly Stmt[]): void {
    list.forEach((stmt, at) => {
      if (stmt.kind === 'declare') {
        this.#declarations.set(stmt.variable, stmt);
        this.#scopes.set(stmt.variable, [...list.slice(at + 1), ...after]);
      }
      if (stmt.kind === 'assign') this.#assigned.add(stmt.variable);
      if (stmt.kind === 'loop') {
        this.#note(stmt.init, [...stmt.body, ...stmt.update]);
        this.#note(stmt.body, []);
        this.#note(stmt.update, []);
      } else {
        for (const inner of bodiesOf(stmt)) this.#note(inner, []);
      }
    });
  }

  /** A region that recomputes a variable also needs the variables of its initialiser. */
  #needForRebuilding(variable: Variable, region: Region): void {
    const home = this.#homes.get(variable);
    if (home === undefined || home === region || !this.#isRebuilt(variable)) return;
    const uses = this.#uses.get(region)!;
    for (const expr of expressionsOf(this.#declarations.get(variable)!)) {
      addUses(expr, uses);
      forEachVariable(expr, (source) => this.#needForRebuilding(source, region));
    }
  }

  /** Whether regions recompute the variable: never reassigned, and computed from indices, arguments, constants and other such variables. */
  #isRebuilt(variable: Variable): boolean {
    const declaration = this.#declarations.get(variable);
    if (declaration === undefined || this.#assigned.has(variable) || !this.#homes.has(variable)) return false;
    const scope = this.#scopes.get(variable)!;
    return declaration.value === undefined || this.#isCheap(declaration.value, scope, new Set());
  }

  #isCheap(expr: Expr, scope: readonly Stmt[], bound: ReadonlySet<Variable>): boolean {
    switch (expr.kind) {
      case 'load':
      case 'atomic':
      case 'draw':
      case 'call':
        return false;
      case 'builtin':
        if (!CHEAP.has(expr.name)) return false;
        break;
      case 'variable': {
        const { variable } = expr;
        if (bound.has(variable)) return true;
        if (this.#plan.shared.has(variable)) return !this.#assigned.has(variable) || !assigns(scope, variable);
        return this.#isRebuilt(variable);
      }
      case 'bind':
        return this.#isCheap(expr.value, scope, bound) && this.#isCheap(expr.body, scope, new Set([...bound, expr.variable]));
      default:
    }
    return operands(expr).every((operand) => this.#isCheap(operand, scope, bound));
  }

  /** Local arrays that several regions use, or that a region in a loop uses. */
  #crossingArrays(): Set<ArrayRef> {
    const crossing = new Set<ArrayRef>();
    const seen = new Set<ArrayRef>();
    const visit = (pieces: readonly Piece[], isRepeated: boolean): void => {
      for (const piece of pieces) {
        if (piece.kind === 'region') {
          for (const array of this.#uses.get(piece)!.arrays) {
            if (array.space !== 'local') continue;
            if (isRepeated || seen.has(array)) crossing.add(array);
            seen.add(array);
          }
        } else if (piece.kind === 'if') {
          for (const arm of [piece.then, piece.otherwise]) visit(arm, isRepeated);
        } else if (piece.kind === 'loop') {
          visit(piece.init, isRepeated);
          for (const part of [piece.body, piece.update]) visit(part, true);
        } else if (piece.kind === 'block') {
          visit(piece.body, isRepeated);
        }
      }
    };
    visit(this.#plan.pieces, false);
    return crossing;
  }

  #storageOf(region: Region, crossing: ReadonlySet<Variable>, crossingArrays: ReadonlySet<ArrayRef>): RegionStorage {
    const { variables, arrays, indices } = this.#uses.get(region)!;
    const isAnew = (variable: Variable): boolean =>
      variables.has(variable) && this.#homes.get(variable) !== region && this.#homes.has(variable) && !crossing.has(variable);
    const local = [...arrays].filter((array) => array.space === 'local');
    return {
      indices,
      anew: [...this.#declarations.values()].filter(({ variable }) => isAnew(variable)),
      crossing: [...crossing].filter((variable) => variables.has(variable) || this.#homes.get(variable) === region),
      crossingArrays: local.filter((array) => crossingArrays.has(array)),
      ownArrays: local.filter((array) => !crossingArrays.has(array)),
    };
  }
}

function assigns(body: readonly Stmt[], variable: Variable): boolean {
  for (const stmt of statementsIn(body)) if (stmt.kind === 'assign' && stmt.variable === variable) return true;
  return false;
}

function usesOf(body: readonly Stmt[]): Uses {
  const uses: Uses = { variables: new Set(), arrays: new Set(), indices: new Set() };
  for (const stmt of statementsIn(body)) {
    if (stmt.kind === 'assign') uses.variables.add(stmt.variable);
    if (stmt.kind === 'store' || stmt.kind === 'seed') uses.arrays.add(stmt.array);
    for (const expr of expressionsOf(stmt)) addUses(expr, uses);
  }
  return uses;
}

function addUses(expr: Expr, uses: Uses): void {
  someExpr(expr, (part) => {
    if (part.kind === 'variable') uses.variables.add(part.variable);
    if (part.kind === 'load' || part.kind === 'atomic' || part.kind === 'draw') uses.arrays.add(part.array);
    if (part.kind === 'index') uses.indices.add(part.axis);
    return false;
  });
}
