// What a kernel's body sees, as TypeScript types: its arguments, and the thread that runs it. The body never runs as
// JavaScript; these types only let the user's own compiler check it.
import type { DType, DTypeLike, Scalar } from '../core/elements/dtype.js';
import type { ArrayParam, Kernel, Params, Rank } from '../core/kernels/kernel.js';

type Lower = { 1: never; 2: 1; 3: 2; 4: 3 };
type ElementIn<D extends DType> = D extends 'bool' ? boolean : D extends 'i64' | 'u64' ? bigint : number;

/** Tells arrays apart whose elements TypeScript cannot: atomics work on some types only. Never there at run time. */
declare const ELEMENT: unique symbol;

interface KernelArrayBase<D extends DType> {
  readonly [ELEMENT]?: D;
  /** Elements of an array of one dimension. Of more dimensions, `shape` says what is meant. */
  readonly length: number;
  readonly shape: readonly number[];
}

/** An `input` array inside a body. */
export type ReadArray<D extends DType, N extends Rank = 1> = KernelArrayBase<D> &
  (N extends 1
    ? { readonly [i: number]: ElementIn<D>; at(i: number): ElementIn<D> }
    : { readonly [i: number]: ReadArray<D, Lower[N]>; at(...index: number[]): ElementIn<D> });

/** An `output` or `inout` array inside a body. */
export type WriteArray<D extends DType, N extends Rank = 1> = KernelArrayBase<D> &
  (N extends 1
    ? { [i: number]: ElementIn<D>; at(i: number): ElementIn<D>; set(i: number, v: ElementIn<D>): void }
    : {
        readonly [i: number]: WriteArray<D, Lower[N]>;
        at(...index: number[]): ElementIn<D>;
        set(...indexThenValue: [...number[], ElementIn<D>]): void;
      });

/** The first parameter of a body. */
export type BodyArgs<P extends Params> = {
  readonly [K in keyof P]: P[K] extends Scalar<infer D>
    ? ElementIn<D>
    : P[K] extends ArrayParam<infer D, 'in', infer N>
      ? ReadArray<D, N>
      : P[K] extends ArrayParam<infer D, infer _A, infer N>
        ? WriteArray<D, N>
        : never;
};

export interface Index3 {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}
/** An array of one dimension that a body writes: a parameter, a row of one, or shared memory. */
type AtomicOf<D extends DType> = WriteArray<D, 1>;
type Whole = 'i32' | 'u32';

/** An element type that is also a cast, which truncates and saturates; NaN gives 0. */
export interface Cast<D extends DType> extends Scalar<D> {
  (v: number | boolean): number;
}
/** Declares an array of one to three dimensions, of a size that is known when the kernel is made. Its contents are unspecified until written. */
export interface Declare {
  <D extends DType>(type: DTypeLike<D>, size: number): WriteArray<D>;
  <D extends DType>(type: DTypeLike<D>, size: readonly [number, number]): WriteArray<D, 2>;
  <D extends DType>(type: DTypeLike<D>, size: readonly [number, number, number]): WriteArray<D, 3>;
}

/**
 * The second parameter of a body. `i`, `j`, `k` follow the order of `threads` (array order, the last is the fastest);
 * the CUDA names are CUDA's.
 */
export interface Thread {
  readonly i: number;
  readonly j: number;
  readonly k: number;
  readonly threadIdx: Index3;
  readonly blockIdx: Index3;
  readonly blockDim: Index3;
  readonly gridDim: Index3;

  readonly i32: Cast<'i32'>;
  readonly u32: Cast<'u32'>;
  readonly f32: Cast<'f32'>;
  readonly f64: Cast<'f64'>;
  readonly bool: Scalar<'bool'>;
  readonly i8: Scalar<'i8'>;
  readonly u8: Scalar<'u8'>;
  readonly i16: Scalar<'i16'>;
  readonly u16: Scalar<'u16'>;

  /** Memory of the block: `__shared__`. */
  readonly shared: Declare;
  /** The block's memory of the size that the launch names in `sharedBytes`: `extern __shared__`. All views of it begin at its start. */
  sharedDynamic<D extends DType>(type: DTypeLike<D>): WriteArray<D>;
  /** Memory of the thread: a local array of CUDA C++. */
  readonly local: Declare;

  /** Waits for all threads of the block that have not returned: `__syncthreads`. It stands where control flow is the same for all. */
  syncthreads(): void;
  /** Waits for the threads of the warp: `__syncwarp`. */
  syncwarp(): void;
  /** Waits for all threads of the grid: `cooperative_groups::this_grid().sync()`. */
  gridSync(): void;
  /** What this thread wrote before is seen before what it writes after: `__threadfence`. */
  threadfence(): void;

  /** Returns the old value, as all atomics do. */
  atomicAdd<D extends Whole | 'f32' | 'f64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicSub<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicMin<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicMax<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicAnd<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicOr<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicXor<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the value whatever was there. */
  atomicExch<D extends Whole | 'f32'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the value where the old one equals `compare`. */
  atomicCAS<D extends Whole>(array: AtomicOf<D>, index: number, compare: ElementIn<D>, value: ElementIn<D>): ElementIn<D>;

  /** Integer division that truncates. By zero: 0. */
  idiv(a: number, b: number): number;
  clamp(v: number, lo: number, hi: number): number;
  mix(a: number, b: number, t: number): number;

  /** Writes a line to standard output, a space between the values: `printf`. Strings are literals or templates. */
  print(...values: (number | boolean | bigint | string)[]): void;
  /** Where the condition is false the operation fails, and says which thread it was: `assert`. */
  assert(condition: boolean): void;
}

/** Values fixed when the kernel is made; `specialize` makes another kernel with others. */
export type Constants = Readonly<Record<string, number | boolean>>;
/** What a constant is to the body: its kind, not the value it happens to have. */
export type ConstantsEnv<C extends Constants> = { readonly [K in keyof C]: C[K] extends boolean ? boolean : number };

type FuncArgs<A extends readonly Scalar[]> = { -readonly [I in keyof A]: A[I] extends Scalar<infer D> ? ElementIn<D> : never };
type FuncResult<R extends Scalar> = R extends Scalar<infer D> ? ElementIn<D> : never;
export type FuncBody<A extends readonly Scalar[], R extends Scalar> = (...args: FuncArgs<A>) => FuncResult<R>;

/** A helper made by `func`. */
export interface Func<A extends readonly Scalar[] = readonly Scalar[], R extends Scalar = Scalar> {
  readonly kind: 'func';
  readonly params: A;
  readonly result: R;
}
export type Funcs = Readonly<Record<string, Func>>;
export type FuncsEnv<F extends Funcs> = {
  readonly [K in keyof F]: F[K] extends Func<infer A, infer R> ? (...args: FuncArgs<A>) => FuncResult<R> : never;
};

export interface KernelOptions<C extends Constants = Record<never, never>, F extends Funcs = Record<never, never>> {
  readonly constants?: C;
  readonly functions?: F;
  /** `checked` (default): an access outside an array is reported, and leaves memory alone. */
  readonly bounds?: 'checked' | 'unchecked';
  /** Fused multiply-add allowed (default). Without it `+ - * / sqrt` agree bit for bit between devices. */
  readonly fmad?: boolean;
  readonly maxThreadsPerBlock?: number;
}

/** The body of a kernel: read as text, never called. */
export type KernelBody<P extends Params, C extends Constants, F extends Funcs> = (
  args: BodyArgs<P>,
  t: Thread & ConstantsEnv<C> & FuncsEnv<F>,
) => void;

export interface TypedKernel<P extends Params, C extends Constants> extends Kernel<P> {
  /** The same kernel with other constants. */
  specialize(constants: Partial<ConstantsEnv<C>>): TypedKernel<P, C>;
}
