// The thread that runs a kernel's body, as a TypeScript type: its place, its memory, and the functions of the language.
import type { DType, DTypeLike, Scalar } from '../../core/elements/dtype.js';
import type { ByComponent, ElementIn, Vector, VectorElement, VectorOf, WriteArray } from './elements.js';

/** Each call gives the next of 2^32 numbers, `normal` the next of two. */
export interface Rng {
  /** From 0 to below 1: 24 bits. */
  uniform(): number;
  /** Of mean 0 and standard deviation 1. */
  normal(): number;
  u32(): number;
}

export interface Index3 {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}
/** An array of one dimension that a body writes: a parameter, a row of one, or shared memory. */
type AtomicOf<D extends DType> = WriteArray<D, 1>;
type Whole = 'i32' | 'u32' | 'u64';

/** An element type that is also a cast: fractions are truncated and saturate, NaN gives 0, whole numbers wrap. */
export interface Cast<D extends DType> extends Scalar<D> {
  (v: number | boolean | bigint): ElementIn<D>;
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
  /** `blockIdx * blockDim + threadIdx`, in CUDA's order: `x` is the last of `i`, `j`, `k`. */
  readonly globalIdx: Index3;

  readonly i32: Cast<'i32'>;
  readonly u32: Cast<'u32'>;
  readonly i64: Cast<'i64'>;
  readonly u64: Cast<'u64'>;
  readonly f32: Cast<'f32'>;
  readonly f64: Cast<'f64'>;
  readonly bool: Scalar<'bool'>;
  readonly i8: Scalar<'i8'>;
  readonly u8: Scalar<'u8'>;
  readonly i16: Scalar<'i16'>;
  readonly u16: Scalar<'u16'>;
  /** In memory only: f32 where it is calculated with. */
  readonly f16: Scalar<'f16'>;

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
  /**
   * Waits for all threads of the grid that have not returned: `cooperative_groups::this_grid().sync()`. The kernel is launched with
   * `cooperative`, and control flow is the same for the whole grid.
   */
  gridSync(): void;
  /** What this thread wrote before is seen before what it writes after: `__threadfence`. */
  threadfence(): void;

  /** Returns the old value, as all atomics do. */
  atomicAdd<D extends Whole | 'f32' | 'f64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicSub<D extends 'i32' | 'u32'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicMin<D extends Whole | 'i64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicMax<D extends Whole | 'i64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicAnd<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicOr<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  atomicXor<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the value whatever was there. */
  atomicExch<D extends Whole | 'f32'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the value where the old one equals `compare`. */
  atomicCAS<D extends Whole>(array: AtomicOf<D>, index: number, compare: ElementIn<D>, value: ElementIn<D>): ElementIn<D>;

  /** Integer division that truncates. By zero: 0. */
  idiv(a: number, b: number): number;
  readonly min: ByComponent;
  readonly max: ByComponent;
  clamp(v: number, lo: number, hi: number): number;
  clamp(v: bigint, lo: bigint, hi: bigint): bigint;
  clamp<V extends Vector>(v: V, lo: NoInfer<V> | number, hi: NoInfer<V> | number): V;
  /** `a + (b - a) * t` */
  mix(a: number, b: number, t: number): number;
  mix<V extends Vector<'f32' | 'f64'>>(a: V, b: NoInfer<V>, t: NoInfer<V> | number): V;
  /** `1 / sqrt(v)`, a little less exact on a GPU. */
  rsqrt(v: number): number;
  /** `a * b + c`, rounded once. */
  fma(a: number, b: number, c: number): number;
  /** Bits that are 1, of i32 or u32. */
  popcount(v: number): number;
  /** The bits of an f32 as u32, and back: `__float_as_uint`, `__uint_as_float`. */
  floatBits(v: number): number;
  bitsFloat(v: number): number;

  /**
   * A generator of random numbers, declared by `const`: cuRAND's `curand_init(seed, sequence, 0)` with Philox, Warp's
   * `rand_init`. Of one seed every sequence is another; both devices give the same bits.
   */
  rng(seed: number, sequence: number): Rng;

  readonly vec2f: VectorOf<'f32', 2>;
  readonly vec3f: VectorOf<'f32', 3>;
  readonly vec4f: VectorOf<'f32', 4>;
  readonly vec2d: VectorOf<'f64', 2>;
  readonly vec3d: VectorOf<'f64', 3>;
  readonly vec4d: VectorOf<'f64', 4>;
  readonly vec2i: VectorOf<'i32', 2>;
  readonly vec3i: VectorOf<'i32', 3>;
  readonly vec4i: VectorOf<'i32', 4>;
  readonly vec2u: VectorOf<'u32', 2>;
  readonly vec3u: VectorOf<'u32', 3>;
  readonly vec4u: VectorOf<'u32', 4>;
  /** Component by component, as `sub` and `mul`. */
  add<V extends Vector>(a: V, b: NoInfer<V>): V;
  sub<V extends Vector>(a: V, b: NoInfer<V>): V;
  mul<V extends Vector>(a: V, b: NoInfer<V>): V;
  scale<V extends Vector>(v: V, factor: number): V;
  dot<V extends Vector>(a: V, b: NoInfer<V>): number;
  cross<V extends Vector<VectorElement, 3>>(a: V, b: NoInfer<V>): V;
  length(v: Vector<'f32' | 'f64'>): number;
  /** A vector of no length stays itself. */
  normalize<V extends Vector<'f32' | 'f64'>>(v: V): V;

  /** Writes a line to standard output, a space between the values: `printf`. Strings are literals or templates. */
  print(...values: (number | boolean | bigint | string | Vector)[]): void;
  /** Where the condition is false the operation fails, and says which thread it was: `assert`. */
  assert(condition: boolean): void;
}
