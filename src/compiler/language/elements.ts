// TypeScript types of arrays and vectors inside a kernel's body. The vectors' names are also those of parameters of CUDA C++ kernels.
import { type DType, f32, f64, i32, u32 } from '../../core/elements/dtype.js';
import type { Rank } from '../../core/kernels/kernel.js';
import { vec, type VectorParam } from '../../core/kernels/value-params.js';

type Lower = { 1: never; 2: 1; 3: 2; 4: 3 };
type Numbers = {
  1: readonly [number];
  2: readonly [number, number];
  3: readonly [number, number, number];
  4: readonly [number, number, number, number];
};
export type ElementIn<D extends DType> = D extends 'bool' ? boolean : D extends 'i64' | 'u64' ? bigint : number;

/** Distinguishes arrays and vectors by element type, since atomics accept only some types. The property does not exist at run time. */
declare const ELEMENT: unique symbol;

interface KernelArrayBase<D extends DType, N extends Rank> {
  readonly [ELEMENT]?: D;
  /** The number of elements of a one-dimensional array; with more dimensions use `shape`. */
  readonly length: number;
  readonly shape: Numbers[N];
}

type Axes = { 2: 'x' | 'y'; 3: 'x' | 'y' | 'z'; 4: 'x' | 'y' | 'z' | 'w' };
export type VectorElement = 'f32' | 'f64' | 'i32' | 'u32';
/** A vector of two to four numbers in a body. It is an immutable value. */
export type Vector<D extends VectorElement = VectorElement, N extends 2 | 3 | 4 = 2 | 3 | 4> = D extends VectorElement
  ? N extends 2 | 3 | 4
    ? { readonly [K in Axes[N]]: number } & { readonly [ELEMENT]?: readonly [D, N] }
    : never
  : never;
/** A vector of two f32 in a body: CUDA's `float2`, `wp.vec2f`. */
export type vec2f = Vector<'f32', 2>;
/** Two f32 by value, a parameter of a CUDA C++ kernel: CUDA's `float2`. A launch gives a list or `{ x, y }`. */
export const vec2f: VectorParam<'f32', 2> = vec(f32, 2);
/** A vector of three f32 in a body: CUDA's `float3`, `wp.vec3f`. */
export type vec3f = Vector<'f32', 3>;
/** Three f32 by value, a parameter of a CUDA C++ kernel: CUDA's `float3`. A launch gives a list or `{ x, y, z }`. */
export const vec3f: VectorParam<'f32', 3> = vec(f32, 3);
/** A vector of four f32 in a body: CUDA's `float4`, `wp.vec4f`. */
export type vec4f = Vector<'f32', 4>;
/** Four f32 by value, a parameter of a CUDA C++ kernel: CUDA's `float4`. A launch gives a list or `{ x, y, z, w }`. */
export const vec4f: VectorParam<'f32', 4> = vec(f32, 4);
/** A vector of two f64 in a body: CUDA's `double2`, `wp.vec2d`. */
export type vec2d = Vector<'f64', 2>;
/** Two f64 by value, a parameter of a CUDA C++ kernel: CUDA's `double2`. A launch gives a list or `{ x, y }`. */
export const vec2d: VectorParam<'f64', 2> = vec(f64, 2);
/** A vector of three f64 in a body: CUDA's `double3`, `wp.vec3d`. */
export type vec3d = Vector<'f64', 3>;
/** Three f64 by value, a parameter of a CUDA C++ kernel: CUDA's `double3`. A launch gives a list or `{ x, y, z }`. */
export const vec3d: VectorParam<'f64', 3> = vec(f64, 3);
/** A vector of four f64 in a body: CUDA's `double4`, `wp.vec4d`. */
export type vec4d = Vector<'f64', 4>;
/** Four f64 by value, a parameter of a CUDA C++ kernel: CUDA's `double4`. A launch gives a list or `{ x, y, z, w }`. */
export const vec4d: VectorParam<'f64', 4> = vec(f64, 4);
/** A vector of two i32 in a body: CUDA's `int2`, `wp.vec2i`. */
export type vec2i = Vector<'i32', 2>;
/** Two i32 by value, a parameter of a CUDA C++ kernel: CUDA's `int2`. A launch gives a list or `{ x, y }`. */
export const vec2i: VectorParam<'i32', 2> = vec(i32, 2);
/** A vector of three i32 in a body: CUDA's `int3`, `wp.vec3i`. */
export type vec3i = Vector<'i32', 3>;
/** Three i32 by value, a parameter of a CUDA C++ kernel: CUDA's `int3`. A launch gives a list or `{ x, y, z }`. */
export const vec3i: VectorParam<'i32', 3> = vec(i32, 3);
/** A vector of four i32 in a body: CUDA's `int4`, `wp.vec4i`. */
export type vec4i = Vector<'i32', 4>;
/** Four i32 by value, a parameter of a CUDA C++ kernel: CUDA's `int4`. A launch gives a list or `{ x, y, z, w }`. */
export const vec4i: VectorParam<'i32', 4> = vec(i32, 4);
/** A vector of two u32 in a body: CUDA's `uint2`, `wp.vec2ui`. */
export type vec2u = Vector<'u32', 2>;
/** Two u32 by value, a parameter of a CUDA C++ kernel: CUDA's `uint2`. A launch gives a list or `{ x, y }`. */
export const vec2u: VectorParam<'u32', 2> = vec(u32, 2);
/** A vector of three u32 in a body: CUDA's `uint3`, `wp.vec3ui`. */
export type vec3u = Vector<'u32', 3>;
/** Three u32 by value, a parameter of a CUDA C++ kernel: CUDA's `uint3`. A launch gives a list or `{ x, y, z }`. */
export const vec3u: VectorParam<'u32', 3> = vec(u32, 3);
/** A vector of four u32 in a body: CUDA's `uint4`, `wp.vec4ui`. */
export type vec4u = Vector<'u32', 4>;
/** Four u32 by value, a parameter of a CUDA C++ kernel: CUDA's `uint4`. A launch gives a list or `{ x, y, z, w }`. */
export const vec4u: VectorParam<'u32', 4> = vec(u32, 4);

/** An `input` array inside a body. */
export type ReadArray<D extends DType, N extends Rank = 1> = KernelArrayBase<D, N> &
  (N extends 1
    ? { readonly [i: number]: ElementIn<D>; at(i: number): ElementIn<D> }
    : { readonly [i: number]: ReadArray<D, Lower[N]>; at(...index: number[]): ElementIn<D> });

/** An `output` or `inout` array inside a body. */
export type WriteArray<D extends DType, N extends Rank = 1> = KernelArrayBase<D, N> &
  (N extends 1
    ? {
        [i: number]: ElementIn<D>;
        at(i: number): ElementIn<D>;
        set(i: number, v: ElementIn<D>): void;
        /** The first elements of a row become the components. */
        set(v: Vector): void;
      }
    : {
        readonly [i: number]: WriteArray<D, Lower[N]>;
        at(...index: number[]): ElementIn<D>;
        set(...indexThenValue: [...number[], ElementIn<D>]): void;
        /** A vector goes to the last dimension, which is not among the indices. */
        set(...indexThenVector: [...number[], Vector]): void;
      });

/**
 * Makes a vector: from its components, from one number for all, from a row of an array, or from a vector of another type, which it casts.
 */
export interface VectorOf<D extends VectorElement, N extends 2 | 3 | 4> {
  (...components: Numbers[N]): Vector<D, N>;
  (all: number): Vector<D, N>;
  (from: ReadArray<Exclude<DType, 'bool' | 'i64' | 'u64'>> | Vector<VectorElement, N>): Vector<D, N>;
}
/** Takes numbers, or vectors component by component. */
export interface ByComponent {
  (first: number, second: number, ...more: number[]): number;
  (first: bigint, second: bigint, ...more: bigint[]): bigint;
  <V extends Vector>(first: V, second: NoInfer<V> | number, ...more: (NoInfer<V> | number)[]): V;
}
