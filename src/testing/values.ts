// Values in a launch's record, as `run` of a test kernel gets them.
import { type DType, DTYPES, type HostOf, type HostValue, type Scalar } from '../core/elements/dtype.js';
import { numberOf16 } from '../core/elements/half-bits.js';
import type { ArrayParam, CudaParam } from '../core/kernels/kernel.js';
import type { OptionalArray } from '../core/kernels/params.js';
import {
  type BytesParam,
  type Dim3Param,
  type Field,
  type FixedArray,
  spaceOf,
  type StructParam,
  type VectorParam,
} from '../core/kernels/value-params.js';

/** What `run` gets for a parameter or field. */
export type TestValue<P extends CudaParam | Field> =
  P extends Scalar<infer D>
    ? HostValue<D>
    : P extends ArrayParam<infer D>
      ? HostOf<ArrayBuffer>[D]
      : P extends OptionalArray<ArrayParam<infer D>>
        ? HostOf<ArrayBuffer>[D] | null
        : P extends StructParam<infer F>
          ? { readonly [K in keyof F]: TestValue<F[K]> }
          : P extends VectorParam<infer D>
            ? readonly HostValue<D>[]
            : P extends Dim3Param
              ? readonly [x: number, y: number, z: number]
              : P extends BytesParam
                ? Uint8Array<ArrayBuffer>
                : P extends FixedArray<infer T>
                  ? readonly TestValue<T>[]
                  : never;

/** The elements behind the pointer at an offset of the parameter; null for a null pointer. */
export type Pointers = (place: number, array: ArrayParam) => ArrayBufferView | null | undefined;

/** Reads a field at offset `place` of the parameter that begins at `base`. */
export function readValue(view: DataView, base: number, place: number, type: Field, pointers: Pointers): unknown {
  const at = base + place;
  switch (type.kind) {
    case 'scalar':
      return readScalar(view, at, type.dtype);
    case 'vector':
      return Array.from({ length: type.size }, (_, i) => readScalar(view, at + i * DTYPES[type.dtype].byteSize, type.dtype));
    case 'dim3':
      return [0, 4, 8].map((axis) => view.getUint32(at + axis, true));
    case 'bytes':
      return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset + at, type.byteSize).slice();
    case 'struct':
      return Object.fromEntries(
        Object.entries(type.fields).map(([name, field]) => [
          name,
          readValue(view, base, place + (type.offsets[name] as number), field, pointers),
        ]),
      );
    case 'fixed': {
      const { element, length } = type;
      const { byteSize } = spaceOf(element);
      return Array.from({ length }, (_, i) => readValue(view, base, place + i * byteSize, element, pointers));
    }
    // A test device makes no textures.
    case 'texture':
    case 'surface':
      return undefined;
    case 'array':
      return pointers(place, type);
    default:
      return pointers(place, type.array);
  }
}

export function readScalar(view: DataView, at: number, dtype: DType): unknown {
  switch (dtype) {
    case 'bool':
      return view.getUint8(at) !== 0;
    case 'f32':
      return view.getFloat32(at, true);
    case 'f64':
      return view.getFloat64(at, true);
    case 'i64':
      return view.getBigInt64(at, true);
    case 'u64':
      return view.getBigUint64(at, true);
    case 'f16':
    case 'bf16':
      return numberOf16(dtype, view.getUint16(at, true));
    case 'i8':
      return view.getInt8(at);
    case 'u8':
      return view.getUint8(at);
    case 'i16':
      return view.getInt16(at, true);
    case 'u16':
      return view.getUint16(at, true);
    case 'i32':
      return view.getInt32(at, true);
    default:
      return view.getUint32(at, true);
  }
}
