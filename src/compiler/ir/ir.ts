// The typed form of a kernel between its text and any back end. It names nothing of CUDA.
//
// Invariants once lowering has finished: no expression has an untyped type; both sides of an arithmetic or comparison
// have the same type; an array access has one index for each dimension, each i32 or u32; expressions have no effect
// but those of `atomic` and `draw`.
import type { DType } from '../../core/elements/dtype.js';

/** What a value in a register may be. Narrower storage types load as i32. */
export type ScalarType = 'bool' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64';
/** A number in the text that has not met a type yet: integer-valued, or not, or with an `n`. */
export type UntypedType = 'int literal' | 'float literal' | 'bigint literal';
export type ValueType = ScalarType | UntypedType;

export interface Variable {
  readonly name: string;
  readonly type: ValueType;
  /** Never assigned after its declaration. */
  readonly isConst: boolean;
}

/** Whose an array is: the launch's, a block's or a thread's. */
export type ArraySpace = 'parameter' | 'shared' | 'dynamic shared' | 'local';

/** What CUDA gives every block without asking; more is dynamic shared memory. */
export const MAX_SHARED_BYTES: number = 48 * 1024;

export interface ArrayRef {
  readonly name: string;
  readonly space: ArraySpace;
  /** What a fault report calls it: first the parameters in order, then what the body declares, in order. */
  readonly number: number;
  readonly dtype: DType;
  readonly rank: number;
  /** Of shared and local memory, in array order; empty where only the launch knows. */
  readonly extents: readonly number[];
  readonly isReadOnly: boolean;
}

export type Axis = 0 | 1 | 2;
export type ThreadVector = 'threadIdx' | 'blockIdx' | 'blockDim' | 'gridDim';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '<<' | '>>';
export type ComparisonOp = '<' | '<=' | '>' | '>=' | '==' | '!=';
export type AtomicOp = 'add' | 'sub' | 'min' | 'max' | 'and' | 'or' | 'xor' | 'exchange' | 'cas';
/** What a generator gives: an f32 from 0 to below 1, an f32 of mean 0 and deviation 1, or 32 bits. */
export type Draw = 'uniform' | 'normal' | 'u32';
/** Whose threads meet at a barrier. */
export type BarrierScope = 'warp' | 'block' | 'grid';

export type Expr =
  | { readonly kind: 'const'; readonly type: ValueType; readonly value: number }
  /** A constant of 64 bits. */
  | { readonly kind: 'wide'; readonly type: 'i64' | 'u64' | 'bigint literal'; readonly value: bigint }
  | { readonly kind: 'variable'; readonly type: ValueType; readonly variable: Variable }
  | { readonly kind: 'scalar'; readonly type: ScalarType; readonly dtype: DType; readonly name: string }
  /** One dimension of an array's shape. */
  | { readonly kind: 'extent'; readonly type: 'i32'; readonly array: ArrayRef; readonly dimension: number }
  /** The launch index in array order: 0 is `i`. */
  | { readonly kind: 'index'; readonly type: 'i32'; readonly axis: Axis }
  | { readonly kind: 'thread'; readonly type: 'i32'; readonly vector: ThreadVector; readonly axis: Axis }
  | { readonly kind: 'load'; readonly type: ScalarType; readonly array: ArrayRef; readonly indices: readonly Expr[] }
  | { readonly kind: 'negate' | 'invert' | 'not'; readonly type: ValueType; readonly operand: Expr }
  | { readonly kind: 'arithmetic'; readonly type: ValueType; readonly op: ArithmeticOp; readonly left: Expr; readonly right: Expr }
  | { readonly kind: 'compare'; readonly type: 'bool'; readonly op: ComparisonOp; readonly left: Expr; readonly right: Expr }
  /** Short-circuit. */
  | { readonly kind: 'logical'; readonly type: 'bool'; readonly op: '&&' | '||'; readonly left: Expr; readonly right: Expr }
  /** Evaluates one arm. */
  | { readonly kind: 'select'; readonly type: ValueType; readonly test: Expr; readonly then: Expr; readonly otherwise: Expr }
  | { readonly kind: 'cast'; readonly type: ScalarType; readonly operand: Expr }
  /** A row of the builtin table; `name` is the table's, without the type. */
  | { readonly kind: 'builtin'; readonly type: ValueType; readonly name: string; readonly args: readonly Expr[] }
  /** A helper made by `func`. */
  | { readonly kind: 'call'; readonly type: ScalarType; readonly func: FuncIr; readonly args: readonly Expr[] }
  /** A local arrow, expanded: `variable` is `value` inside `body`. */
  | { readonly kind: 'bind'; readonly type: ValueType; readonly variable: Variable; readonly value: Expr; readonly body: Expr }
  | {
      readonly kind: 'atomic';
      readonly type: ScalarType;
      readonly op: AtomicOp;
      readonly array: ArrayRef;
      readonly indices: readonly Expr[];
      readonly args: readonly Expr[];
    }
  /** The next number of a generator, whose state is local memory. */
  | { readonly kind: 'draw'; readonly type: 'f32' | 'u32'; readonly draw: Draw; readonly array: ArrayRef };

/** `at` is the offset in the function's text. */
export type Stmt = { readonly at: number } & (
  | { readonly kind: 'declare'; readonly variable: Variable; readonly value: Expr | undefined }
  | { readonly kind: 'assign'; readonly variable: Variable; readonly value: Expr }
  | { readonly kind: 'store'; readonly array: ArrayRef; readonly indices: readonly Expr[]; readonly value: Expr }
  | { readonly kind: 'effect'; readonly expr: Expr }
  /** A generator begins its sequence. */
  | { readonly kind: 'seed'; readonly array: ArrayRef; readonly seed: Expr; readonly sequence: Expr }
  | { readonly kind: 'fence' }
  | { readonly kind: 'barrier'; readonly scope: BarrierScope }
  /** One line: words and values side by side. What stands between two of them is in the words. */
  | { readonly kind: 'print'; readonly parts: readonly (string | Expr)[] }
  /** `text` is the condition as it was written. */
  | { readonly kind: 'assert'; readonly test: Expr; readonly text: string }
  | { readonly kind: 'if'; readonly test: Expr; readonly then: readonly Stmt[]; readonly otherwise: readonly Stmt[] }
  | {
      readonly kind: 'loop';
      /** `after` is a do-while. */
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
  /** Shared and local memory that it declares, in order. */
  readonly arrays: readonly ArrayRef[];
  /** Helpers it calls, callees first. */
  readonly funcs: readonly FuncIr[];
  /** Launch indices used: 0 to 3. */
  readonly indexRank: 0 | 1 | 2 | 3;
}

/** Is there a loop? Without one a kernel ends by itself. */
export function hasLoop(body: readonly Stmt[]): boolean {
  return body.some((stmt) => {
    if (stmt.kind === 'loop') return true;
    if (stmt.kind === 'if') return hasLoop(stmt.then) || hasLoop(stmt.otherwise);
    return stmt.kind === 'block' && hasLoop(stmt.body);
  });
}

/** Can it be written twice without changing its value or doing anything twice? */
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
