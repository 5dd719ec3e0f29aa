// State of one pass of lowering over a function, shared by the modules that lower expressions and statements.
//
// A `let` that starts as a bare number gets its type from the first typed value assigned to it, which may stand below
// the first use. So a function is lowered again until nothing new is learnt (see lower.ts); `resolved` is what is known.
import type { AnyNode, ArrowFunctionExpression, Pattern } from 'acorn';
import { KernelTextError } from '../diagnostics/diagnostics.js';
import type { Constants } from '../language/language.js';
import type { ArrayRef, Draw, Expr, FuncIr, ScalarType, Stmt, ThreadVector, ValueType, Variable } from '../ir/ir.js';

/** A `let` or `const` in the text. */
export interface LocalName {
  readonly kind: 'local';
  readonly variable: Variable;
  /** The declarator, which stays the same from pass to pass. */
  readonly node: AnyNode;
  hasValue: boolean;
}

/** A value computed once, before what it stands in. */
export interface Binding {
  readonly variable: Variable;
  readonly value: Expr;
}

/** A vector of numbers (vectors.ts). */
export interface VectorValue {
  readonly kind: 'vector';
  readonly type: ScalarType;
  readonly parts: readonly Expr[];
  /** What the parts stand on. */
  readonly binds: readonly Binding[];
  /** Of a `let`: what an assignment writes. */
  readonly variables: { readonly list: readonly Variable[]; readonly node: AnyNode } | undefined;
}

/** What a name or a part of an expression may stand for. Only `expr`, `local` and `vector` are values at run time. */
export type Value =
  | { readonly kind: 'expr'; readonly expr: Expr }
  | LocalName
  /** An array, or a row of one when some indices are given. */
  | { readonly kind: 'array'; readonly array: ArrayRef; readonly indices: readonly Expr[] }
  | { readonly kind: 'method'; readonly array: ArrayRef; readonly indices: readonly Expr[]; readonly name: 'at' | 'set' }
  | { readonly kind: 'shape'; readonly array: ArrayRef; readonly from: number }
  | VectorValue
  | { readonly kind: 'thread'; readonly vector: ThreadVector | 'globalIdx' }
  /** Of random numbers, and what it draws. */
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

/** What is known of a `let` after earlier passes. */
export interface Resolution {
  readonly type: ValueType;
  /** The assignment that decided. */
  readonly by: AnyNode;
}

/** What a function's text may refer to. */
export interface Surroundings {
  /** Key of the first parameter to what it is. Empty for a helper. */
  readonly args: ReadonlyMap<string, Value>;
  readonly constants: Constants;
  readonly functions: ReadonlyMap<string, FuncIr>;
}

/** What is left of the work that one kernel may make: local functions can double it with every line. */
export interface Budget {
  /** Expressions of this pass, local functions written out. */
  ofPass: number;
  /** Of all passes. */
  ofAll: number;
}

export interface Context {
  readonly text: string;
  readonly around: Surroundings;
  /** By declarator. */
  readonly resolved: Map<AnyNode, Resolution>;
  /** Every `let` with a value, and every one that is assigned another, as far as is known. */
  readonly lets: Set<AnyNode>;
  readonly assigned: Set<AnyNode>;
  /** Those that never are assigned: each is what a `const` is, and tools write one for the other. */
  readonly constants: Set<AnyNode>;
  /** The whole numbers that untyped locals met first, beside them or where they were put: what they become when nothing else decides. */
  readonly met: Map<AnyNode, 'i32' | 'u32'>;
  /** Declarator of each variable still untyped in this pass. */
  readonly untyped: Map<Variable, AnyNode>;
  /** Something was learnt in this pass, so that another is needed. */
  hasLearnt: boolean;
  scope: Scope;
  /** The scope of the body itself, where shared memory is declared. */
  bodyScope: Scope;
  /** A helper made by `func`: no memory, no barriers. */
  readonly isHelper: boolean;
  /** Shared and local memory declared so far. */
  readonly arrays: ArrayRef[];
  /** Where statements go. */
  out: Stmt[];
  /** Launch indices used. */
  indexRank: 0 | 1 | 2 | 3;
  readonly calledFuncs: Set<FuncIr>;
  /** Atomics and random numbers lowered so far. */
  effects: number;
  /** Names of parameters were shortened: free names cannot be trusted. */
  isMinified: boolean;
  /** No: a local has a name that minifiers do not give. */
  readonly hasLongNames: boolean;
  readonly expanding: Set<ArrowFunctionExpression>;
  readonly budget: Budget;
}

export function fail(code: string, at: { readonly start: number; readonly end: number }, message: string, hint?: string): never {
  throw new KernelTextError(code, at, message, hint);
}

/** The text of a node, for messages. */
export function textOf(ctx: Context, node: AnyNode): string {
  const text = ctx.text.slice(node.start, node.end).replace(/\s+/g, ' ');
  return text.length > 40 ? `${text.slice(0, 37)}...` : text;
}

/** Lowers into a list of its own, in a scope of its own. */
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

/** A constant local that holds a value which must not be computed twice, or change. */
export function pinned(ctx: Context, name: string, value: Expr, at: number): Expr {
  const variable: Variable = { name, type: value.type, isConst: true };
  ctx.out.push({ kind: 'declare', at, variable, value });
  return { kind: 'variable', type: value.type, variable };
}

/** The name a pattern binds. */
export function identifierOf(pattern: Pattern, what: string): string {
  if (pattern.type === 'Identifier') return pattern.name;
  const reason = pattern.type === 'AssignmentPattern' ? 'has a default value' : 'is not a plain name';
  return fail('K004', pattern, `${what} ${reason}.`, 'Write the name alone: the values come from the launch.');
}
