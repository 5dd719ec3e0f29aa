// Typed intermediate representation of a kernel, independent of CUDA.
//
// Invariants after lowering: no expression has an untyped type; both sides of an arithmetic operation or comparison have the same type; an
// array access has one index per dimension, each i32 or u32; only `atomic` and `draw` expressions have side effects.
import type { DType } from '../../core/elements/dtype.js';

/** Type of a value in a register. Narrower storage types load as i32. */
export type ScalarType = 'bool' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64';
/** Type of a literal before its use decides one: an integer, a decimal, or a bigint. */
export type UntypedType = 'int literal' | 'float literal' | 'bigint literal';
export type ValueType = ScalarType | UntypedType;

export interface Variable {
  readonly name: string;
  readonly type: ValueType;
  /** Whether it is never assigned after its declaration. */
  readonly isConst: boolean;
}

/** Where an array lives: in a launch argument, in the block's shared memory or in the thread's local memory. */
export type ArraySpace = 'parameter' | 'shared' | 'dynamic shared' | 'local';

/** CUDA's limit for static shared memory; larger sizes need dynamic shared memory. */
export const MAX_SHARED_BYTES: number = 48 * 1024;

export interface ArrayRef {
  readonly name: string;
  readonly space: ArraySpace;
  /** The array's number in a fault report: first the parameters in order, then the declared arrays in order. */
  readonly number: number;
  readonly dtype: DType;
  readonly rank: number;
  /** Extents of shared and local memory, in array order; empty when only the launch knows them. */
  readonly extents: readonly number[];
  readonly isReadOnly: boolean;
}

export type Axis = 0 | 1 | 2;
export type ThreadVector = 'threadIdx' | 'blockIdx' | 'blockDim' | 'gridDim';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '<<' | '>>';
export type ComparisonOp = '<' | '<=' | '>' | '>=' | '==' | '!=';
export type AtomicOp = 'add' | 'sub' | 'min' | 'max' | 'and' | 'or' | 'xor' | 'exchange' | 'cas';
/** What a draw returns: an f32 in [0, 1), an f32 with mean 0 and standard deviation 1, or 32 random bits. */
export type Draw = 'uniform' | 'normal' | 'u32';
/** The threads that a barrier synchronises. */
export type BarrierScope = 'warp' | 'block' | 'grid';

export type Expr =
  | { readonly kind: 'const'; readonly type: ValueType; readonly value: number }
  /** A 64-bit constant. */
  | { readonly kind: 'wide'; readonly type: 'i64' | 'u64' | 'bigint literal'; readonly value: bigint }
  | { readonly kind: 'variable'; readonly type: ValueType; readonly variable: Variable }
  | { readonly kind: 'scalar'; readonly type: ScalarType; readonly dtype: DType; readonly name: string }
  /** One dimension of an array's shape. */
  | { readonly kind: 'extent'; readonly type: 'i32'; readonly array: ArrayRef; readonly dimension: number }
  /** A launch index in array order: 0 is `i`. */
  | { readonly kind: 'index'; readonly type: 'i32'; readonly axis: Axis }
  | { readonly kind: 'thread'; readonly type: 'i32'; readonly vector: ThreadVector; readonly axis: Axis }
  | { readonly kind: 'load'; readonly type: ScalarType; readonly array: ArrayRef; readonly indices: readonly Expr[] }
  | { readonly kind: 'negate' | 'invert' | 'not'; readonly type: ValueType; readonly operand: Expr }
  | { readonly kind: 'arithmetic'; readonly type: ValueType; readonly op: ArithmeticOp; readonly left: Expr; readonly right: Expr }
  | { readonly kind: 'compare'; readonly type: 'bool'; readonly op: ComparisonOp; readonly left: Expr; readonly right: Expr }
  /** Short-circuit. */
  | { readonly kind: 'logical'; readonly type: 'bool'; readonly op: '&&' | '||'; readonly left: Expr; readonly right: Expr }
  /** Evaluates only the chosen arm. */
  | { readonly kind: 'select'; readonly type: ValueType; readonly test: Expr; readonly then: Expr; readonly otherwise: Expr }
  | { readonly kind: 'cast'; readonly type: ScalarType; readonly operand: Expr }
  /** A row of the builtin table; `name` has no type suffix. */
  | { readonly kind: 'builtin'; readonly type: ValueType; readonly name: string; readonly args: readonly Expr[] }
  /** A helper made by `func`. */
  | { readonly kind: 'call'; readonly type: ScalarType; readonly func: FuncIr; readonly args: readonly Expr[] }
  /** An inlined local arrow function: `variable` has the value `value` inside `body`. */
  | { readonly kind: 'bind'; readonly type: ValueType; readonly variable: Variable; readonly value: Expr; readonly body: Expr }
  | {
      readonly kind: 'atomic';
      readonly type: ScalarType;
      readonly op: AtomicOp;
      readonly array: ArrayRef;
      readonly indices: readonly Expr[];
      readonly args: readonly Expr[];
    }
  /** Draws the next number of a generator, whose state is local memory. */
  | { readonly kind: 'draw'; readonly type: 'f32' | 'u32'; readonly draw: Draw; readonly array: ArrayRef };

/** `at` is the offset in the function's source. */
export type Stmt = { readonly at: number } & (
  | { readonly kind: 'declare'; readonly variable: Variable; readonly value: Expr | undefined }
  | { readonly kind: 'assign'; readonly variable: Variable; readonly value: Expr }
  | { readonly kind: 'store'; readonly array: ArrayRef; readonly indices: readonly Expr[]; readonly value: Expr }
  | { readonly kind: 'effect'; readonly expr: Expr }
  /** Initialises a generator. */
  | { readonly kind: 'seed'; readonly array: ArrayRef; readonly seed: Expr; readonly sequence: Expr }
  | { readonly kind: 'fence' }
  | { readonly kind: 'barrier'; readonly scope: BarrierScope }
  /** Prints one line: strings and values in order. The strings contain the separators. */
  | { readonly kind: 'print'; readonly parts: readonly (string | Expr)[] }
  /** `text` is the condition's source. */
  | { readonly kind: 'assert'; readonly test: Expr; readonly text: string }
  | { readonly kind: 'if'; readonly test: Expr; readonly then: readonly Stmt[]; readonly otherwise: readonly Stmt[] }
  | {
      readonly kind: 'loop';
      /** `after` is a do-while loop. */
      readonly tested: 'before' | 'after';
      readonly init: readonly Stmt[];
      readonly test: Expr | undefined;
      readonly update: readonly Stmt[];
      readonly body: readonly Stmt[];
    }
  | { readonly kind: 'block'; readonly body: readonly Stmt[] }
  | { readonly kind: 'break' | 'continue' }
  | { readonly kind: 'return'; readonly value: Expr | undefined }
);

export interface FuncIr {
  readonly name: string;
  readonly params: readonly Variable[];
  readonly result: ScalarType;
  readonly body: readonly Stmt[];
}

export interface KernelIr {
  readonly name: string;
  readonly body: readonly Stmt[];
  /** Shared and local memory that the kernel declares, in order. */
  readonly arrays: readonly ArrayRef[];
  /** Helpers that the kernel calls, callees first. */
  readonly funcs: readonly FuncIr[];
  /** The number of launch indices used: 0 to 3. */
  readonly indexRank: 0 | 1 | 2 | 3;
}

/** Whether there is a loop. A kernel without one always terminates. */
export function hasLoop(body: readonly Stmt[]): boolean {
  return body.some((stmt) => {
    if (stmt.kind === 'loop') return true;
    if (stmt.kind === 'if') return hasLoop(stmt.then) || hasLoop(stmt.otherwise);
    return stmt.kind === 'block' && hasLoop(stmt.body);
  });
}

/** Whether an expression can be duplicated without changing its value or repeating a side effect. */
export function isStable(expr: Expr): boolean {
  switch (expr.kind) {
    case 'const':
    case 'wide':
    case 'scalar':
    case 'extent':
    case 'index':
    case 'thread':
      return true;
    case 'variable':
      return expr.variable.isConst;
    default:
      return false;
  }
}
