// What kind of typed array a value is, by its internal slots, as `types` of node:util has it for buffers: `instanceof` says no to those of another realm, as a
// context of node:vm has it, and yes to objects that only inherit from one. Nothing here throws.
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

/** 'Float32Array' and so on; undefined for what is no typed array, a DataView and a proxy of one included. */
export function typedArrayName(value: unknown): TypedArrayName | undefined {
  return nameOf.call(value);
}

/** Was the memory of a typed array taken away? */
export function isDetached({ buffer, length }: { readonly buffer: ArrayBufferLike; readonly length: number }): boolean {
  if (length > 0 || !types.isArrayBuffer(buffer)) return false;
  try {
    return new Uint8Array(buffer).length < 0;
  } catch {
    return true;
  }
}
