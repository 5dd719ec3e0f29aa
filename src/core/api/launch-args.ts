// The type of a launch's arguments, made of the kernel's parameters.
import type { Scalar, ScalarInput } from '../elements/dtype.js';
import type { Access, ArrayParam, Param, Params } from '../kernels/kernel.js';
import type { ArraySlot, ScalarSlot } from '../graphs/slots.js';
import type { DeviceArray } from './array.js';

/** The accesses with which a slot is declared that a kernel may use in this way: one declared by `inout` for any. */
export type SlotAccess<A extends Access> = A extends 'inout' ? 'inout' : A | 'inout';

/** What a launch takes for a parameter: a value for a scalar, a DeviceArray of the dtype for an array; in a capture, also a slot that was declared for this use. */
export type ArgOf<P extends Param> =
  P extends Scalar<infer D>
    ? ScalarInput<D> | ScalarSlot<D>
    : P extends ArrayParam<infer D, infer A, infer _N>
      ? DeviceArray<D> | ArraySlot<D, SlotAccess<A>>
      : never;
/** One value per parameter, by name. A missing or surplus one is an ArgumentError of the launch. */
export type LaunchArgs<P extends Params> = { readonly [K in keyof P]: ArgOf<P[K]> };
