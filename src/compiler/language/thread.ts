// TypeScript type of the thread that runs a kernel's body: its indices, its memory, and the functions of the language.
import type { DType, DTypeLike, Scalar } from '../../core/elements/dtype.js';
import type { ByComponent, ElementIn, Vector, VectorElement, VectorOf, WriteArray } from './elements.js';

/** A generator of random numbers. Each call gives the next of 2^32 numbers; `normal` consumes two. */
export interface Rng {
  /** A number from 0 (included) to 1 (excluded) with 24 random bits: `wp.randf`. */
  uniform(): number;
  /** A number of the normal distribution with mean 0 and standard deviation 1: `curand_normal`, `wp.randn`. */
  normal(): number;
  /** The next 32 random bits, as u32: `curand`, `wp.randu`. */
  u32(): number;
}

/** Three numbers by CUDA's axes: `dim3`, `uint3`. */
export interface Index3 {
  /** The fastest axis. */
  readonly x: number;
  /** The middle axis. */
  readonly y: number;
  /** The slowest axis. */
  readonly z: number;
}
/** A one-dimensional array that a body writes: a parameter, a row of one, or shared memory. */
type AtomicOf<D extends DType> = WriteArray<D, 1>;
type Whole = 'i32' | 'u32' | 'u64';

/** An element type that is also a cast. From floating point it truncates and saturates, and NaN gives 0; integers wrap. */
export interface Cast<D extends DType> extends Scalar<D> {
  (v: number | boolean | bigint): ElementIn<D>;
}
/**
 * Declares an array of one to three dimensions, whose size is known when the kernel is made. Its contents are unspecified until written.
 */
export interface Declare {
  <D extends DType>(type: DTypeLike<D>, size: number): WriteArray<D>;
  <D extends DType>(type: DTypeLike<D>, size: readonly [number, number]): WriteArray<D, 2>;
  <D extends DType>(type: DTypeLike<D>, size: readonly [number, number, number]): WriteArray<D, 3>;
}

/**
 * The second parameter of a body: the thread that runs it. `i`, `j`, `k` follow the order of `threads` (array order, the last is the
 * fastest); the members with CUDA's names have CUDA's meaning.
 */
export interface Thread {
  /** The thread's index in the first dimension of the launch: `i, j, k = wp.tid()`. */
  readonly i: number;
  /** The index in the second dimension. A kernel that uses it is launched over at least two. */
  readonly j: number;
  /** The index in the third dimension. A kernel that uses it is launched over three. */
  readonly k: number;
  /** The thread's place in its block: CUDA's `threadIdx`. */
  readonly threadIdx: Index3;
  /** The block's place in the grid: CUDA's `blockIdx`. */
  readonly blockIdx: Index3;
  /** Threads of a block along each axis: CUDA's `blockDim`. */
  readonly blockDim: Index3;
  /** Blocks of the grid along each axis: CUDA's `gridDim`. */
  readonly gridDim: Index3;
  /** `blockIdx * blockDim + threadIdx` along CUDA's axes: `x` is the last of `i`, `j`, `k`. */
  readonly globalIdx: Index3;

  /** Type and cast, 4 bytes: CUDA's `int`. */
  readonly i32: Cast<'i32'>;
  /** Type and cast, 4 bytes: CUDA's `unsigned int`. */
  readonly u32: Cast<'u32'>;
  /** Type and cast, 8 bytes, a bigint: CUDA's `long long`. */
  readonly i64: Cast<'i64'>;
  /** Type and cast, 8 bytes, a bigint: CUDA's `unsigned long long`. */
  readonly u64: Cast<'u64'>;
  /** Type and cast, 4 bytes: CUDA's `float`. */
  readonly f32: Cast<'f32'>;
  /** Type and cast, 8 bytes: CUDA's `double`. */
  readonly f64: Cast<'f64'>;
  /** 1 byte, for `shared` and `local`: CUDA's `bool`. */
  readonly bool: Scalar<'bool'>;
  /** 1 byte, for `shared` and `local`: CUDA's `signed char`. */
  readonly i8: Scalar<'i8'>;
  /** 1 byte, for `shared` and `local`: CUDA's `unsigned char`. */
  readonly u8: Scalar<'u8'>;
  /** 2 bytes, for `shared` and `local`: CUDA's `short`. */
  readonly i16: Scalar<'i16'>;
  /** 2 bytes, for `shared` and `local`: CUDA's `unsigned short`. */
  readonly u16: Scalar<'u16'>;
  /** 2 bytes, for memory only; computed with as f32: CUDA's `__half`. */
  readonly f16: Scalar<'f16'>;
  /** 2 bytes, for memory only; computed with as f32: CUDA's `__nv_bfloat16`. */
  readonly bf16: Scalar<'bf16'>;

  /** Declares memory of the block: `__shared__`. */
  readonly shared: Declare;
  /** The block's memory of the size that the launch sets by `sharedBytes`: `extern __shared__`. All views of it begin at its start. */
  sharedDynamic<D extends DType>(type: DTypeLike<D>): WriteArray<D>;
  /** Declares memory of the thread: a local array in CUDA C++. */
  readonly local: Declare;

  /** Waits for all threads of the block that have not returned: `__syncthreads`. Control flow must be uniform across the block here. */
  syncthreads(): void;
  /** Waits for the threads of the warp: `__syncwarp`. */
  syncwarp(): void;
  /**
   * Waits for all threads of the grid that have not returned: `cooperative_groups::this_grid().sync()`. The launch must set
   * `cooperative`, and control flow must be uniform across the grid.
   */
  gridSync(): void;
  /** Other threads see this thread's earlier writes before its later ones: `__threadfence`. */
  threadfence(): void;

  /** Adds the value: CUDA's `atomicAdd`. Returns the old one, as all atomics do. */
  atomicAdd<D extends Whole | 'f32' | 'f64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Subtracts the value: CUDA's `atomicSub`. Returns the old one. */
  atomicSub<D extends 'i32' | 'u32'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the smaller of the old value and this one: CUDA's `atomicMin`. Returns the old one. */
  atomicMin<D extends Whole | 'i64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the larger of the old value and this one: CUDA's `atomicMax`. Returns the old one. */
  atomicMax<D extends Whole | 'i64'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores `old & value`: CUDA's `atomicAnd`. Returns the old value. */
  atomicAnd<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores `old | value`: CUDA's `atomicOr`. Returns the old value. */
  atomicOr<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores `old ^ value`: CUDA's `atomicXor`. Returns the old value. */
  atomicXor<D extends Whole>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the value unconditionally: CUDA's `atomicExch`. Returns the old one. */
  atomicExch<D extends Whole | 'f32'>(array: AtomicOf<D>, index: number, value: ElementIn<D>): ElementIn<D>;
  /** Stores the value if the old one equals `compare`: CUDA's `atomicCAS`. Returns the old one. */
  atomicCAS<D extends Whole>(array: AtomicOf<D>, index: number, compare: ElementIn<D>, value: ElementIn<D>): ElementIn<D>;

  /** Integer division that truncates: C's `/`. Division by zero gives 0. */
  idiv(a: number, b: number): number;
  /** The smallest of two or more: CUDA's `min`, `fminf`. */
  readonly min: ByComponent;
  /** The largest of two or more: CUDA's `max`, `fmaxf`. */
  readonly max: ByComponent;
  /** `min(max(v, lo), hi)`: `wp.clamp`. Of vectors component by component. */
  clamp(v: number, lo: number, hi: number): number;
  clamp(v: bigint, lo: bigint, hi: bigint): bigint;
  clamp<V extends Vector>(v: V, lo: NoInfer<V> | number, hi: NoInfer<V> | number): V;
  /** Linear interpolation, `a + (b - a) * t`: `wp.lerp`. Of vectors component by component. */
  mix(a: number, b: number, t: number): number;
  mix<V extends Vector<'f32' | 'f64'>>(a: V, b: NoInfer<V>, t: NoInfer<V> | number): V;
  /** `1 / sqrt(v)`: CUDA's `rsqrtf`, slightly less exact on a GPU. */
  rsqrt(v: number): number;
  /** `a * b + c` with a single rounding: CUDA's `fmaf`. */
  fma(a: number, b: number, c: number): number;
  /** The number of bits that are 1, of i32 or u32: `__popc`. */
  popcount(v: number): number;
  /** The bits of an f32 as u32: `__float_as_uint`. */
  floatBits(v: number): number;
  /** The f32 of these bits: `__uint_as_float`. */
  bitsFloat(v: number): number;

  /**
   * A generator of random numbers, declared by `const`: cuRAND's `curand_init(seed, sequence, 0)` with Philox, Warp's `rand_init`. Every
   * sequence of a seed is different; both devices give the same bits. `seed` and `sequence` are integers, used as 32 bits.
   */
  rng(seed: number, sequence: number): Rng;

  /** Makes a vector of two f32: CUDA's `float2`, `wp.vec2f`. */
  readonly vec2f: VectorOf<'f32', 2>;
  /** Makes a vector of three f32: CUDA's `float3`, `wp.vec3f`. */
  readonly vec3f: VectorOf<'f32', 3>;
  /** Makes a vector of four f32: CUDA's `float4`, `wp.vec4f`. */
  readonly vec4f: VectorOf<'f32', 4>;
  /** Makes a vector of two f64: CUDA's `double2`, `wp.vec2d`. */
  readonly vec2d: VectorOf<'f64', 2>;
  /** Makes a vector of three f64: CUDA's `double3`, `wp.vec3d`. */
  readonly vec3d: VectorOf<'f64', 3>;
  /** Makes a vector of four f64: CUDA's `double4`, `wp.vec4d`. */
  readonly vec4d: VectorOf<'f64', 4>;
  /** Makes a vector of two i32: CUDA's `int2`, `wp.vec2i`. */
  readonly vec2i: VectorOf<'i32', 2>;
  /** Makes a vector of three i32: CUDA's `int3`, `wp.vec3i`. */
  readonly vec3i: VectorOf<'i32', 3>;
  /** Makes a vector of four i32: CUDA's `int4`, `wp.vec4i`. */
  readonly vec4i: VectorOf<'i32', 4>;
  /** Makes a vector of two u32: CUDA's `uint2`, `wp.vec2ui`. */
  readonly vec2u: VectorOf<'u32', 2>;
  /** Makes a vector of three u32: CUDA's `uint3`, `wp.vec3ui`. */
  readonly vec3u: VectorOf<'u32', 3>;
  /** Makes a vector of four u32: CUDA's `uint4`, `wp.vec4ui`. */
  readonly vec4u: VectorOf<'u32', 4>;
  /** `a + b`, component by component. */
  add<V extends Vector>(a: V, b: NoInfer<V>): V;
  /** `a - b`, component by component. */
  sub<V extends Vector>(a: V, b: NoInfer<V>): V;
  /** `a * b`, component by component: `wp.cw_mul`. */
  mul<V extends Vector>(a: V, b: NoInfer<V>): V;
  /** Multiplies every component by the factor, which is converted to their type. */
  scale<V extends Vector>(v: V, factor: number): V;
  /** The sum of the products of the components, added in their order: `wp.dot`. */
  dot<V extends Vector>(a: V, b: NoInfer<V>): number;
  /** The cross product of two vectors of three components: `wp.cross`. */
  cross<V extends Vector<VectorElement, 3>>(a: V, b: NoInfer<V>): V;
  /** The Euclidean length, in the type of the components: `wp.length`. */
  length(v: Vector<'f32' | 'f64'>): number;
  /** The vector divided by its length: `wp.normalize`. A vector of length 0 stays zero. */
  normalize<V extends Vector<'f32' | 'f64'>>(v: V): V;

  /** Writes a line to standard output with spaces between the values: `printf`. Strings are literals or templates. */
  print(...values: (number | boolean | bigint | string | Vector)[]): void;
  /** If the condition is false, the launch fails with a LaunchError that names the thread: `assert`. */
  assert(condition: boolean): void;
}
