// The class and the bytes of a typed array, found by its internal slots, as `types` of node:util does for buffers. `instanceof` is false for
// arrays of another realm, such as a context of node:vm, and true for objects that only inherit from one. Getters of a subclass, which may
// tell something else or change what the call uses, are not called.
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

const CLASSES: Readonly<Record<TypedArrayName, new (buffer: ArrayBufferLike, byteOffset?: number, length?: number) => ArrayBufferView>> = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
};

function slotOf<T>(name: PropertyKey): (this: unknown) => T {
  return Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), name)?.get as (this: unknown) => T;
}

const nameOf = slotOf<TypedArrayName | undefined>(Symbol.toStringTag);
const bufferOf = slotOf<ArrayBufferLike>('buffer');
const byteOffsetOf = slotOf<number>('byteOffset');
const lengthOf = slotOf<number>('length');

/** 'Float32Array' and so on; undefined for every other value, including a DataView and a proxy of a typed array. */
export function typedArrayName(value: unknown): TypedArrayName | undefined {
  return nameOf.call(value);
}

/** The elements of a typed array as one without getters of a user. Of a detached array: no elements. */
export function plainView<A extends ArrayBufferView>(array: A): A {
  const Class = CLASSES[nameOf.call(array) as TypedArrayName];
  const view = isDetached(array)
    ? new Class(new ArrayBuffer(0))
    : new Class(bufferOf.call(array), byteOffsetOf.call(array), lengthOf.call(array));
  return view as A;
}

/** Whether the typed array's ArrayBuffer was detached. */
export function isDetached(array: ArrayBufferView): boolean {
  const buffer = bufferOf.call(array);
  if (lengthOf.call(array) > 0 || !types.isArrayBuffer(buffer)) return false;
  try {
    return new Uint8Array(buffer).length < 0;
  } catch {
    return true;
  }
}
