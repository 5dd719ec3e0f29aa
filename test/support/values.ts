// Contents for arrays of every element type.
import type { DType, HostOf } from 'millrace';

export const DTYPES: readonly DType[] = ['bool', 'i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64', 'f16', 'bf16', 'f32', 'f64'];

/** 0, 1, 2 ... as the element type holds them. */
export function counted<D extends DType>(dtype: D, length: number): HostOf<ArrayBuffer>[D] {
  const numbers = Array.from({ length }, (_, n) => n);
  const made = {
    bool: () => Uint8Array.from(numbers, (n) => n % 2),
    i8: () => Int8Array.from(numbers, (n) => n - 30),
    u8: () => Uint8Array.from(numbers),
    i16: () => Int16Array.from(numbers, (n) => n * -301),
    u16: () => Uint16Array.from(numbers, (n) => n * 1001),
    i32: () => Int32Array.from(numbers),
    u32: () => Uint32Array.from(numbers, (n) => n + 4e9),
    i64: () => BigInt64Array.from(numbers, (n) => BigInt(n) - 2n ** 61n),
    u64: () => BigUint64Array.from(numbers, (n) => BigInt(n) + 2n ** 63n),
    f16: () => Uint16Array.from(numbers, (n) => 0x3c00 + n),
    bf16: () => Uint16Array.from(numbers, (n) => 0x3f80 + n),
    f32: () => Float32Array.from(numbers, (n) => n / 8),
    f64: () => Float64Array.from(numbers, (n) => n / 7),
  } as const;
  return made[dtype]() as never;
}

/** A value that `counted` does not hold, as written and as read. */
export function valueOf(dtype: DType): readonly [written: number | bigint | boolean, read: number | bigint] {
  if (dtype === 'bool') return [true, 1];
  if (dtype === 'f16' || dtype === 'bf16') return [-2, 0xc000];
  if (dtype === 'i64' || dtype === 'u64') return [77n, 77n];
  return [101, 101];
}

/** As many zeros. */
export function zerosOf<D extends DType>(dtype: D, length: number): HostOf<ArrayBuffer>[D] {
  const array = counted(dtype, length);
  new Uint8Array(array.buffer).fill(0);
  return array;
}
