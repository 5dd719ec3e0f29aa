// What the types of millrace/ops promise. Checked by the compiler alone, as surface.ts is. Never run.
import type { DeviceArray, DType, ScalarSlot } from 'millrace';
import {
  add,
  argmax,
  astype,
  atan2,
  clip,
  divide,
  elementwise,
  type Elementwise,
  greater,
  isNan,
  logicalNot,
  mean,
  multiply,
  type OpOptions,
  sqrt,
  sum,
  variance,
  where,
} from 'millrace/ops';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<T extends true>(): T;
type Gives<R, D extends DType> = Same<R, DeviceArray<D>>;

declare const [u8, i8, i32, u32, u64]: [DeviceArray<'u8'>, DeviceArray<'i8'>, DeviceArray<'i32'>, DeviceArray<'u32'>, DeviceArray<'u64'>];
declare const [f16, bf16, f32, f64]: [DeviceArray<'f16'>, DeviceArray<'bf16'>, DeviceArray<'f32'>, DeviceArray<'f64'>];
declare const bool: DeviceArray<'bool'>;
declare const any: DeviceArray;
declare const slot: ScalarSlot<'f32'>;

// Two arrays.
const sums = {
  same: add(f32, f32),
  mixed: add(u8, i8),
  wide: add(i32, f32),
  apart: add(u64, i8),
  halves: add(f16, bf16),
  flags: add(bool, u8),
};
holds<Gives<typeof sums.same, 'f32'>>();
holds<Gives<typeof sums.mixed, 'i16'>>();
holds<Gives<typeof sums.wide, 'f64'>>();
holds<Gives<typeof sums.apart, 'f64'>>();
holds<Gives<typeof sums.halves, 'f32'>>();
holds<Gives<typeof sums.flags, 'u8'>>();
const signs = add(u32, i32);
holds<Gives<typeof signs, 'i64'>>();

// An array and a number: of integers, a fraction gives f64.
const beside = { float: multiply(2, f16), whole: add(i32, 1), flag: add(bool, 1), yes: add(i32, true), slot: add(slot, f16) };
holds<Gives<typeof beside.float, 'f16'>>();
holds<Gives<typeof beside.whole, 'i32' | 'f64'>>();
holds<Gives<typeof beside.flag, 'i64' | 'f64'>>();
holds<Gives<typeof beside.yes, 'i32'>>();
holds<Gives<typeof beside.slot, 'f32'>>();

// Quotients, functions of real numbers, tests.
const reals = { quotient: divide(i32, i32), halves: divide(f16, f16), short: sqrt(u8), long: sqrt(u64), angle: atan2(f32, f64) };
holds<Gives<typeof reals.quotient, 'f64'>>();
holds<Gives<typeof reals.halves, 'f16'>>();
holds<Gives<typeof reals.short, 'f32'>>();
holds<Gives<typeof reals.long, 'f64'>>();
holds<Gives<typeof reals.angle, 'f64'>>();
const tests = { compared: greater(f32, 0), nan: isNan(f64), not: logicalNot(i32) };
holds<Gives<typeof tests.compared, 'bool'>>();
holds<Gives<typeof tests.nan, 'bool'>>();
holds<Gives<typeof tests.not, 'bool'>>();

// Options name the type, or give the array.
const named = {
  dtype: add(u8, u8, { dtype: 'f32' }),
  out: add(u8, u8, { out: f64 }),
  test: greater(f32, 0, { out: bool }),
  sum: sum(u8, { dtype: 'i32' }),
};
holds<Gives<typeof named.dtype, 'f32'>>();
holds<Gives<typeof named.out, 'f64'>>();
holds<Gives<typeof named.test, 'bool'>>();
holds<Gives<typeof named.sum, 'i32'>>();

// Reductions.
const folded = {
  float: sum(f16),
  signed: sum(i8, { axis: [0, -1] }),
  unsigned: sum(u8),
  flags: sum(bool),
  mean: mean(i32, { keepDims: true }),
  place: argmax(f64),
};
holds<Gives<typeof folded.float, 'f16'>>();
holds<Gives<typeof folded.signed, 'i64'>>();
holds<Gives<typeof folded.unsigned, 'u64'>>();
holds<Gives<typeof folded.flags, 'i64'>>();
holds<Gives<typeof folded.mean, 'f64'>>();
holds<Gives<typeof folded.place, 'i32'>>();

// A choice, limits, another type.
const chosen = { arrays: where(bool, u8, f32), number: where(f32, i32, 0.5), numbers: where(bool, 1, 0), flags: where(f32, true, false) };
holds<Gives<typeof chosen.arrays, 'f32'>>();
holds<Gives<typeof chosen.number, 'i32' | 'f64'>>();
holds<Gives<typeof chosen.numbers, 'i64' | 'f64'>>();
holds<Gives<typeof chosen.flags, 'bool'>>();
const limited = { one: clip(f32, 0, undefined), whole: clip(i32, 0, 10), array: clip(u8, undefined, i8) };
holds<Gives<typeof limited.one, 'f32'>>();
holds<Gives<typeof limited.whole, 'i32' | 'f64'>>();
holds<Gives<typeof limited.array, 'i16'>>();
const cast = astype(f32, 'u8');
holds<Gives<typeof cast, 'u8'>>();

// An operation of one's own has an operand for each parameter.
const axpb = elementwise((a: number, x: number, b: number) => a * x + b);
holds<Same<typeof axpb, Elementwise<[a: number, x: number, b: number]>>>();
holds<Same<ReturnType<typeof axpb>, DeviceArray>>();
axpb(2, f32, slot, { out: f32, stream: f32.device.stream });
// @ts-expect-error an operand is missing
axpb(2, f32);
// @ts-expect-error no operand is a text
axpb(2, f32, 'b');
// @ts-expect-error no operand is an array
axpb(2, 3, 4);
// @ts-expect-error a slot beside numbers is no array either
axpb(2, slot, 4);
const isAbove = elementwise((a: number, b: number) => a > b);
const above = isAbove(f32, 0);
holds<Gives<typeof above, 'bool'>>();
// @ts-expect-error neither is an array
add(slot, 2);
// @ts-expect-error a function of numbers gives no text
elementwise((a: number) => String(a));

const general = add(any, f32);
holds<Gives<typeof general, 'f32' | 'f64'>>();
// @ts-expect-error no such option
sum(f32, { axes: 0 });
// @ts-expect-error an option of other operations
add(f32, 1, { axis: 0 });
// @ts-expect-error a type by another library's name
add(f32, 1, { dtype: 'float32' });
// @ts-expect-error no array
sum([1, 2]);
// @ts-expect-error no stream
const misplaced: OpOptions = { stream: 'default' };
variance(f32, { ddof: 1 });
void [misplaced, signs, general];
