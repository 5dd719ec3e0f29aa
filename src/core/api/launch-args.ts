// The type of a launch's arguments, made of the kernel's parameters.
import type { DType, HostOf, Scalar, ScalarInput } from '../elements/dtype.js';
import type { Access, ArrayParam, CudaParam, CudaParams, Dim3 } from '../kernels/kernel.js';
import type { OptionalArray, SurfaceParam, TextureParam } from '../kernels/params.js';
import type { BytesParam, Dim3Param, Field, FixedArray, StructParam, VectorParam, VectorSize } from '../kernels/value-params.js';
import type { ArraySlot, ScalarSlot } from '../graphs/slots.js';
import type { DeviceArray } from './array.js';
import type { PinnedArray } from './pinned.js';
import type { Surface, Texture } from './texture.js';

/** How a slot must be declared so that a kernel may access it by `A`: with the same access, or by `inout`. */
export type SlotAccess<A extends Access> = A extends 'inout' ? 'inout' : A | 'inout';

type Four<T> = { 1: readonly [T]; 2: readonly [T, T]; 3: readonly [T, T, T]; 4: readonly [T, T, T, T] };
type Axes = { 1: 'x'; 2: 'x' | 'y'; 3: 'x' | 'y' | 'z'; 4: 'x' | 'y' | 'z' | 'w' };
/** What a launch takes for a vector: a list or a typed array of its components (for f16 and bf16 the raw bits), or an object `{ x, y, z }`. */
export type VectorInput<D extends DType, N extends VectorSize> =
  | Four<ScalarInput<D>>[N]
  | HostOf[D]
  | { readonly [K in Axes[N]]: ScalarInput<D> };

/** What a launch takes for a field of a struct. For `arrayOf`, it takes a list or a typed array; for f16 and bf16 the typed array has the raw bits. */
export type FieldInput<F extends Field> =
  F extends Scalar<infer D>
    ? ScalarInput<D>
    : F extends FixedArray<infer T>
      ? ArrayLike<FieldInput<T>> | (T extends Scalar<infer D> ? HostOf[D] : never)
      : F extends CudaParam
        ? ArgOf<F>
        : never;

/**
 * What a launch takes for a parameter: a value for a scalar, a DeviceArray or PinnedArray of the dtype for an array, null too for an optional
 * one, an object for a struct, a list or an object for a vector, a Uint8Array for bytes. A DeviceArray of another device needs
 * `peers.grant`. The kernel accesses such an array, and a pinned one, where it is. In a capture, a scalar or an array may also be a slot that
 * was declared for this use.
 */
export type ArgOf<P extends CudaParam> =
  P extends Scalar<infer D>
    ? ScalarInput<D> | ScalarSlot<D>
    : P extends ArrayParam<infer D, infer A, infer _N>
      ? DeviceArray<D> | PinnedArray<D> | ArraySlot<D, SlotAccess<A>>
      : P extends OptionalArray<infer A>
        ? ArgOf<A> | null
        : P extends StructParam<infer F>
          ? { readonly [K in keyof F]: FieldInput<F[K]> }
          : P extends VectorParam<infer D, infer N>
            ? VectorInput<D, N>
            : P extends Dim3Param
              ? Dim3 | { readonly x?: number; readonly y?: number; readonly z?: number }
              : P extends BytesParam
                ? Uint8Array | Uint8ClampedArray
                : P extends TextureParam
                  ? Texture
                  : P extends SurfaceParam
                    ? Surface
                    : never;
/** One value per parameter, by name. The launch throws an ArgumentError for a missing or a surplus value. */
export type LaunchArgs<P extends CudaParams> = { readonly [K in keyof P]: ArgOf<P[K]> };
