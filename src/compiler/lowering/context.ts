// State of one lowering pass over a function, shared by the modules that lower expressions and statements.
//
// A `let` initialised with an untyped literal gets its type from the first typed value assigned to it, which may follow the first use. So
// lower.ts repeats the pass until it infers nothing new; `resolved` holds the types inferred so far.
import type { CompileCode } from '../../core/base/compile-codes.js';
import type { AnyNode, ArrowFunctionExpression, Pattern } from 'acorn';
import { KernelTextError } from '../diagnostics/diagnostics.js';
import type { Constants } from '../language/language.js';
import { endsIn } from '../analysis/conditions.js';
import type { ArrayRef, Draw, Expr, FuncIr, ScalarType, Stmt, ThreadVector, ValueType, Variable } from '../ir/ir.js';

/** A `let` or `const` of the source. */
export interface LocalName {
  readonly kind: 'local';
  readonly variable: Variable;
  /** The declarator, which is the same object in every pass. */
  readonly node: AnyNode;
  hasValue: boolean;
}

/** A value that is evaluated once, before the expression that uses it. */
export interface Binding {
  readonly variable: Variable;
  readonly value: Expr;
}

/** A vector of numbers (vectors.ts). */
export interface VectorValue {
  readonly kind: 'vector';
  readonly type: ScalarType;
  readonly parts: readonly Expr[];
  /** Values that the parts use. */
  readonly binds: readonly Binding[];
  /** The variables that an assignment to a `let` writes. */
  readonly variables: { readonly list: readonly Variable[]; readonly node: AnyNode } | undefined;
}

/** What a name or a subexpression may refer to. Only `expr`, `local` and `vector` exist at run time. */
export type Value =
  | { readonly kind: 'expr'; readonly expr: Expr }
  | LocalName
  /** An array, or a row of one when some indices are given. */
  | { readonly kind: 'array'; readonly array: ArrayRef; readonly indices: readonly Expr[] }
  | { readonly kind: 'method'; readonly array: ArrayRef; readonly indices: readonly Expr[]; readonly name: 'at' | 'set' }
  | { readonly kind: 'shape'; readonly array: ArrayRef; readonly from: number }
  | VectorValue
  | { readonly kind: 'thread'; readonly vector: ThreadVector | 'globalIdx' }
  /** A random number generator, and its draw methods. */
  | { readonly kind: 'generator'; readonly array: ArrayRef }
  | { readonly kind: 'draw'; readonly array: ArrayRef; readonly draw: Draw }
  /** A row of the builtin table. */
  | { readonly kind: 'builtin'; readonly name: string }
  | { readonly kind: 'func'; readonly func: FuncIr }
  | { readonly kind: 'arrow'; readonly node: ArrowFunctionExpression; readonly scope: Scope }
  | { readonly kind: 'args' | 'env' | 'math' };

export class Scope {
  readonly parent: Scope | undefined;
  readonly #names = new Map<string, Value>();

  constructor(parent: Scope | undefined) {
    this.parent = parent;
  }

  lookup(name: string): Value | undefined {
    return this.#names.get(name) ?? this.parent?.lookup(name);
  }

  define(name: string, value: Value): void {
    this.#names.set(name, value);
  }
}

/** The inferred type of a `let` from earlier passes. */
export interface Resolution {
  readonly type: ValueType;
  /** The assignment that determined the type. */
  readonly by: AnyNode;
}

/** Names outside the function that its source may refer to. */
export interface Surroundings {
  /** Maps each key of the first parameter to its value. Empty for a helper. */
  readonly args: ReadonlyMap<string, Value>;
  readonly constants: Constants;
  readonly functions: ReadonlyMap<string, FuncIr>;
}

/** Remaining size limits of one kernel: each line with inlined local functions can double the number of expressions. */
export interface Budget {
  /** Remaining expressions of this pass, with local functions inlined. */
  ofPass: number;
  /** Remaining expressions of all passes. */
  ofAll: number;
}

export interface Context {
  readonly text: string;
  readonly around: Surroundings;
  /** Keyed by declarator. */
  readonly resolved: Map<AnyNode, Resolution>;
  /** Every `let` with an initial value, and every `let` known so far to be assigned again. */
  readonly lets: Set<AnyNode>;
  /** Those without an initial value that may have no value here. */
  empty: Set<LocalName>;
  readonly assigned: Set<AnyNode>;
  /** `let`s that are never assigned again. They lower like `const`, since tools convert one to the other. */
  readonly constants: Set<AnyNode>;
  /** The first integer type that an untyped local was combined with, also where it was inlined: its type if nothing else decides. */
  readonly met: Map<AnyNode, 'i32' | 'u32'>;
  /** The declarator of each variable that is untyped in this pass. */
  readonly untyped: Map<Variable, AnyNode>;
  /** Whether this pass inferred something, so that another pass is needed. */
  hasLearnt: boolean;
  scope: Scope;
  /** The scope of the body itself, where shared memory is declared. */
  bodyScope: Scope;
  /** A helper made by `func` has no memory and no barriers. */
  readonly isHelper: boolean;
  /** Shared and local memory declared so far. */
  readonly arrays: ArrayRef[];
  /** The statement list that receives new statements. */
  out: Stmt[];
  /** The number of launch indices used. */
  indexRank: 0 | 1 | 2 | 3;
  readonly calledFuncs: Set<FuncIr>;
  /** The number of atomics and random draws lowered so far. */
  effects: number;
  /** A tool shortened the parameters' names, so free names may not be the original ones. */
  isMinified: boolean;
  /** Whether some local has a name that minifiers would not choose; then the source is not minified. */
  readonly hasLongNames: boolean;
  readonly expanding: Set<ArrowFunctionExpression>;
  readonly budget: Budget;
}

export function fail(code: CompileCode, at: { readonly start: number; readonly end: number }, message: string, hint?: string): never {
  throw new KernelTextError(code, at, message, hint);
}

/** The source of a node, for messages. */
export function textOf(ctx: Context, node: AnyNode): string {
  const text = ctx.text.slice(node.start, node.end).replace(/\s+/g, ' ');
  return text.length > 40 ? `${text.slice(0, 37)}...` : text;
}

/** Lowers into a new statement list and a new scope. */
export function nested(ctx: Context, run: () => void): Stmt[] {
  const { out, scope } = ctx;
  const inner: Stmt[] = [];
  ctx.out = inner;
  ctx.scope = new Scope(scope);
  try {
    run();
  } finally {
    ctx.out = out;
    ctx.scope = scope;
  }
  return inner;
}

/** Lowers alternatives: a `let` has a value behind them if each alternative assigned it or ends in a jump. */
export function alternatives(ctx: Context, runs: readonly (() => Stmt[])[]): Stmt[][] {
  const before = ctx.empty;
  const after = new Set<LocalName>();
  const lists = runs.map((run) => {
    ctx.empty = new Set(before);
    const list = run();
    const isLeft = endsIn(list);
    for (const local of before) {
      if (!isLeft && ctx.empty.has(local)) after.add(local);
      local.hasValue = false;
    }
    return list;
  });
  for (const local of before) local.hasValue = !after.has(local);
  ctx.empty = after;
  return lists;
}

/** Lowers what may run not at all, or not to its end. */
export function perhaps<T>(ctx: Context, run: () => T): T {
  const { empty } = ctx;
  ctx.empty = new Set(empty);
  const result = run();
  for (const local of empty) local.hasValue = false;
  ctx.empty = empty;
  return result;
}

/** Stores a value in a constant local, so that it is evaluated once and keeps its value. */
export function pinned(ctx: Context, name: string, value: Expr, at: number): Expr {
  const variable: Variable = { name, type: value.type, isConst: true };
  ctx.out.push({ kind: 'declare', at, variable, value });
  return { kind: 'variable', type: value.type, variable };
}

/** The identifier that a pattern binds. */
export function identifierOf(pattern: Pattern, what: string): string {
  if (pattern.type === 'Identifier') return pattern.name;
  const reason = pattern.type === 'AssignmentPattern' ? 'has a default value' : 'is not a plain name';
  return fail('K004', pattern, `${what} ${reason}.`, 'Write the name alone: the values come from the launch.');
}
