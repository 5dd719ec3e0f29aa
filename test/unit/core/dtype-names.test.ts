// The names that other libraries have for the element types, and which one each stands for.
import { expect, test } from 'vitest';
import { show } from '../../../src/core/base/show.js';
import { didYouMeanDType, passTheType } from '../../../src/core/elements/dtype-names.js';

const MEANT: readonly (readonly [means: string, names: readonly unknown[]])[] = [
  ["'bool'", ['?', '|b1', 'bool_', 'np.bool_', 'boolean', Boolean, 'torch.bool', 'Bool']],
  ["'i8'", ['int8', 'np.int8', 'char', '|i1', 'i1', 'int8_t', Int8Array, new Int8Array(1), 's8']],
  ["'u8'", ['uint8', 'unsigned char', 'uchar', 'ubyte', 'uint8_t', '|u1', Uint8Array, Uint8ClampedArray]],
  ["'i16'", ['int16', 'short', '<i2', 'i2', 'torch.short']],
  ["'u16'", ['uint16', 'ushort', 'unsigned short', '<u2', 'Uint16Array']],
  ["'i32'", ['int32', '<i4', 'i4', 'wp.int32', 'I32', Int32Array]],
  ["'u32'", ['uint32', 'unsigned', '<u4', 'U32', 'uint32_t']],
  ["'i64'", ['int64', 'long', 'long long', '<i8', '=i8', BigInt64Array, BigInt, 'torch.long']],
  ["'u64'", ['uint64', 'size_t', 'ulong', '<u8', BigUint64Array, 'unsigned long long']],
  ["'f16'", ['float16', 'half', '__half', 'fp16', '<f2', 'f2', 'Float16Array', 'torch.half']],
  ["'bf16'", ['bfloat16', 'torch.bfloat16', '__nv_bfloat16', 'BF16']],
  ["'f32'", ['float32', 'single', 'fp32', '<f4', 'f4', 'np.float32', ' float32 ', 'F32', Float32Array, new Float32Array(2)]],
  ["'f64'", ['float64', 'double', 'fp64', '<f8', 'f8', Float64Array, 'torch.double']],
  ["'f32' or 'f64'", ['float', Number, 'torch.float']],
  ["'i32' or 'i64'", ['int', 'int_']],
  ["'u8' or 'i8'", ['byte']],
];

test('names of C, CUDA, NumPy, PyTorch and JavaScript stand for one type, or for those about which the libraries differ', () => {
  for (const [means, names] of MEANT) {
    for (const name of names) expect(didYouMeanDType(name), String(name)).toBe(` (did you mean ${means}?)`);
  }
  for (const none of [
    '',
    ' ',
    'quark',
    'float128',
    'complex64',
    'f33',
    '>f4',
    'constructor',
    'x'.repeat(1e6),
    5,
    null,
    {},
    Symbol('f'),
    String,
  ]) {
    expect(didYouMeanDType(none), show(none)).toBe('');
  }
  expect([passTheType('f32'), passTheType('float'), passTheType('x')]).toEqual([
    ': pass f32, which millrace exports, without quotes',
    ': pass f32 or f64, which millrace exports, without quotes',
    '',
  ]);
});
