// The class of a typed array, found by its internal slots, as `types` of node:util does for buffers. `instanceof` is false for
// arrays of another realm, such as a context of node:vm, and true for objects that only inherit from one. Nothing here throws.
import { types } from 'node:util';

type TypedArrayName =
  | 'Int8Array'
  | 'Uint8Array'
  | 'Uint8ClampedArray'
  | 'Int16Array'
  | 'Uint16Array'
  | 'Int32Array'
  | 'Uint32Array'
  | 'Float32Array'
  | 'Float64Array'
  | 'BigInt64Array'
  | 'BigUint64Array';

const nameOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)?.get as (
  this: unknown,
) => TypedArrayName | undefined;

/** 'Float32Array' and so on; undefined for every other value, including a DataView and a proxy of a typed array. */
export function typedArrayName(value: unknown): TypedArrayName | undefined {
  return nameOf.call(value);
}

/** Whether the typed array's ArrayBuffer was detached. */
export function isDetached({ buffer, length }: { readonly buffer: ArrayBufferLike; readonly length: number }): boolean {
  if (length > 0 || !types.isArrayBuffer(buffer)) return false;
  try {
    return new Uint8Array(buffer).length < 0;
  } catch {
    return true;
  }
}
