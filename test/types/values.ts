// What the types of parameters by value promise. Checked by the compiler alone, as surface.ts is. Never run.
import {
  arrayOf,
  bytes,
  cudaKernel,
  cudaModule,
  type CudaParams,
  type Device,
  type DeviceArray,
  dim3,
  f32,
  f64,
  i32,
  i64,
  inout,
  input,
  type Kernel,
  kernel,
  type LaunchArgs,
  optional,
  type output,
  type Params,
  type ScalarSlot,
  struct,
  type StructParam,
  type Scalar,
  u8,
  vec,
  vec2i,
  vec3f,
  type VectorParam,
} from 'millrace';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<T extends true>(): T;

declare const device: Device;
declare const text: string;
const { stream } = device;
const x = device.zeros(4);
const bits = device.zeros(4, 'u8');

const Inner = struct({ a: u8, b: i64 });
holds<Same<typeof Inner, StructParam<{ readonly a: Scalar<'u8'>; readonly b: Scalar<'i64'> }>>>();
holds<Same<typeof vec3f, VectorParam<'f32', 3>>>();
const Whole = struct({ x: input(f32), y: optional(inout(u8)), n: i32, o: vec3f, m: arrayOf(f64, 4), in: Inner, rest: bytes(3) });
holds<Same<typeof Whole.offsets.o, number>>();
const step = cudaKernel('step', { p: Whole, v: vec2i, d: dim3, b: bytes(8), bias: optional(input(f32)), c: vec(u8, 4) }, text);
const p = { x, y: null, n: 1, o: [1, 2, 3], m: [1, 2, 3, 4], in: { a: 1, b: 2n }, rest: new Uint8Array(3) } as const;
const good = { p, v: [1, 2], d: 3, b: new Uint8Array(8), bias: null, c: { x: 1, y: 2, z: 3, w: 4 } } as const;
stream.launch(step, 1, good);
stream.launch(step, 1, {
  ...good,
  p: { ...p, y: bits, o: { x: 1, y: 2, z: 3 }, m: new Float64Array(4) },
  v: new Int32Array(2),
  d: [1, 2],
  bias: x,
});
stream.launch(step, 1, { ...good, d: { y: 4 } });
// @ts-expect-error a field is missing
stream.launch(step, 1, { ...good, p: { x, n: 1, o: p.o, m: p.m, in: p.in, rest: p.rest } });
// @ts-expect-error the struct has no such field
stream.launch(step, 1, { ...good, p: { ...p, z: 1 } });
// @ts-expect-error x may not be null
stream.launch(step, 1, { ...good, p: { ...p, x: null } });
// @ts-expect-error an array of another type
stream.launch(step, 1, { ...good, p: { ...p, x: bits } });
// @ts-expect-error two components for three
stream.launch(step, 1, { ...good, p: { ...p, o: [1, 2] } });
// @ts-expect-error a component is missing
stream.launch(step, 1, { ...good, v: { x: 1 } });
// @ts-expect-error bytes are a Uint8Array
stream.launch(step, 1, { ...good, b: [1, 2, 3, 4, 5, 6, 7, 8] });
// @ts-expect-error undefined is no null pointer
stream.launch(step, 1, { ...good, bias: undefined });
type Args = LaunchArgs<{ readonly p: typeof Inner; readonly x: ReturnType<typeof optional<ReturnType<typeof output<'f32'>>>> }>;
holds<Same<Args['p'], { readonly a: number; readonly b: bigint | number }>>();
const maybe: Args['x'] = null;
void maybe;

// A scalar in a struct is fixed at a capture; an array may be a slot.
stream.capture({ to: inout(f32), n: i32 }, (s, { to, n }) => {
  const one = cudaKernel('one', { p: struct({ to: inout(f32), n: i32 }), n: i32 }, text);
  s.launch(one, 1, { p: { to, n: 1 }, n });
  // @ts-expect-error a slot in a struct
  s.launch(one, 1, { p: { to, n }, n });
  holds<Same<typeof n, ScalarSlot<'i32'>>>();
});
// @ts-expect-error a graph has no structs among its parameters
stream.capture({ p: Inner }, () => undefined);

// @ts-expect-error TypeScript kernels take scalars and arrays
kernel('typed', { p: Inner }, () => undefined);
// @ts-expect-error and no arrays that may be null
kernel('typed', { x: optional(inout(f32)) }, () => undefined);
// @ts-expect-error an array by value is for structs
cudaKernel('k', { m: arrayOf(f32, 4) }, text);
// @ts-expect-error no type
struct({ a: 'f32' });

const narrow: Kernel<{ readonly p: typeof Inner }> = cudaModule(text).kernel('k', { p: Inner });
const wide: Kernel = narrow;
const plain: Params = { n: i32, x: input(f32) };
const any: CudaParams = plain;
void [wide, any];
declare const taken: DeviceArray<'f32'>;
void taken;
