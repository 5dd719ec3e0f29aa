// Where the variables of a kernel with barriers live, besides those that the block has one of: in the one region that
// uses them; written anew in each region, where that costs a few instructions and no memory, which compilers need to see
// through an index and vectorise; or in an array with one for each thread, from one region to the next.
import type { ArrayRef, Axis, Expr, Stmt, Variable } from '../ir/ir.js';
import { forEachVariable, type Piece, type Plan, type Region } from './regions.js';
import { bodiesOf, expressionsOf, operands, someExpr, statementsIn } from '../ir/walk.js';

type Declaration = Extract<Stmt, { kind: 'declare' }>;

/** What a region finds when it begins. */
export interface RegionStorage {
  readonly indices: ReadonlySet<Axis>;
  /** Declarations of other regions, in order. */
  readonly anew: readonly Declaration[];
  readonly crossing: readonly Variable[];
  /** Local memory that other regions use too. */
  readonly crossingArrays: readonly ArrayRef[];
  /** Local memory of its own. */
  readonly ownArrays: readonly ArrayRef[];
}

export interface Storage {
  readonly of: ReadonlyMap<Region, RegionStorage>;
  readonly crossing: ReadonlySet<Variable>;
  readonly crossingArrays: ReadonlySet<ArrayRef>;
  /** Those that are written anew wherever they are needed, which is not where they are declared. */
  readonly isOnlyElsewhere: (region: Region, declaration: Stmt) => boolean;
}

/** Builtins that cost no more than the load that would replace them. */
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
  /** In the order of the text. */
  readonly #declarations = new Map<Variable, Declaration>();
  /** What follows a declaration for as long as the variable is in scope. */
  readonly #scopes = new Map<Variable, readonly Stmt[]>();
  readonly #assigned = new Set<Variable>();
  /** The region whose list a declaration stands in. */
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

  /** Whoever writes a variable anew needs what it comes from. */
  #needForRebuilding(variable: Variable, region: Region): void {
    const home = this.#homes.get(variable);
    if (home === undefined || home === region || !this.#isRebuilt(variable)) return;
    const uses = this.#uses.get(region)!;
    for (const expr of expressionsOf(this.#declarations.get(variable)!)) {
      addUses(expr, uses);
      forEachVariable(expr, (source) => this.#needForRebuilding(source, region));
    }
  }

  /** Never assigned again, and made of indices, arguments, numbers and others like it. */
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

  /** Those of several regions, and those of one that the block comes back to. */
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
