// Type checks of kernels by the TypeScript compiler. Nothing here runs.
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { func } from '../../../src/compiler/definitions/func.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { f16, f32, f64, i32, i64, u64, u8 } from '../../../src/core/elements/dtype.js';
import { type In, type InOut, inout, input, type Kernel, type Out, output } from '../../../src/core/kernels/kernel.js';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const yes = <T extends true>(): T | undefined => undefined;

const square = func([f32], f32, (v) => v * v);
const k = kernel(
  'k',
  { x: input(f32, 2), y: output(u8), n: i32, on: inout(f32) },
  ({ x, y, n, on }, { i, sq, TILE, FAST }) => {
    const v: number = sq(x[i]![TILE]!) + n;
    const fast: boolean = FAST;
    y[i] = v;
    on[i] = fast ? v : 0;
  },
  { functions: { sq: square }, constants: { TILE: 4, FAST: true } },
);
yes<Equal<typeof k.params.x.rank, 2>>();
yes<Equal<typeof k.params.x.access, 'in'>>();
yes<Equal<typeof k.params.on.dtype, 'f32'>>();
k.specialize({ TILE: 8, FAST: false });

/** The annotation that isolatedDeclarations requires for an exported kernel. */
export const wave: Kernel<{ readonly was: In<'f32', 2>; readonly next: Out<'f32', 2>; readonly energy: InOut<'f32'> }> = kernel(
  'wave',
  { was: input(f32, 2), next: output(f32, 2), energy: inout(f32) },
  ({ was, next, energy }, { i, j, atomicAdd }) => {
    next.set(i, j, was.at(i, j));
    atomicAdd(energy, 0, 1);
  },
);
export const plain: Kernel<{ readonly n: typeof i32; readonly x: In<'f64'> }> = cudaKernel('plain', { n: i32, x: input(f64) }, '');

kernel('b', { x: input(f32), m: input(f32, 2), y: inout(f32) }, ({ x, m, y }, { i, j, atomicAdd }) => {
  // @ts-expect-error an input is read-only
  x[i] = 1;
  // @ts-expect-error a row of an input is read-only too
  m[i]![j] = 1;
  // @ts-expect-error boolean into f32
  y[i] = true;
  // @ts-expect-error atomics need an array that can be written
  atomicAdd(x, 0, 1);
  // @ts-expect-error and one dimension
  atomicAdd(m, 0, 1);
});
kernel(
  'b',
  { x: inout(f32) },
  ({ x }, { i, sq, TILES }) => {
    x[i] = TILES;
    // @ts-expect-error the helper takes one number
    x[i] = sq(1, 2);
  },
  { functions: { sq: square }, constants: { TILES: 16 } },
);
// @ts-expect-error unknown constant
kernel('b', { x: inout(f32) }, (_p, { TILE }) => void TILE, { constants: { TILES: 16 } });
// @ts-expect-error unknown parameter
kernel('b', { x: inout(f32) }, ({ y }) => void y);
kernel('b', { n: inout(i32), x: inout(f32), m: inout(f32, 2) }, ({ n, x, m }, t) => {
  const tile = t.shared(t.f32, [8, 9]);
  const bytes = t.shared(u8, 4);
  const cube = t.local('f64', [2, 2, 2]);
  const rest: number = t.sharedDynamic(f32)[0]!;
  const flags = t.local(t.bool, 4);
  tile[1]![2] = rest + bytes.length + cube[0]![1]![1]!;
  cube.set(0, 1, 1, t.f64(rest));
  const isOn: boolean = flags[0]!;
  x[0] = t.atomicExch(tile[0]!, 1, isOn ? 1 : 0) + t.atomicSub(n, 0, 1);
  t.print('x', x[0]!, `${isOn}`, 1n);
  t.assert(isOn);
  // @ts-expect-error two dimensions
  tile[0] = 1;
  // @ts-expect-error shared memory has one to three dimensions
  t.shared(f32, [1, 2, 3, 4]);
  // @ts-expect-error an element type, not a size
  t.shared(16, 4);
  // @ts-expect-error u8 is an element type, no cast
  t.u8(3);
  // @ts-expect-error CUDA has no such atomic on f32
  t.atomicSub(x, 0, 1);
  // @ts-expect-error nor any on two dimensions
  t.atomicExch(m, 0, 1);
  // @ts-expect-error nothing to assign
  x[0] = t.syncthreads();
  // @ts-expect-error a condition
  t.assert(1);
});
kernel('b', { p: inout(f32, 2), n: inout(i32), image: input(u8, 2) }, ({ p, n, image }, t) => {
  let v = t.vec3f(p[0]!);
  const w = t.vec3f(1, 2, 3);
  v = t.add(v, t.scale(w, 2));
  v = t.normalize(t.cross(v, w));
  v = t.min(t.max(v, 0), t.clamp(w, v, 1), t.mix(v, w, 0.5));
  v = n[0]! > 0 ? v : t.vec3f(t.vec3i(image[0]!));
  const area: number = t.dot(v, w) * t.length(v) + t.min(v.x, v.y, v.z) + t.fma(1, 2, 3);
  p.set(0, v);
  p[1]!.set(w);
  t.print('v is', v, area);
  n[0] = t.popcount(t.floatBits(t.bitsFloat(7)));
  // @ts-expect-error three components and two
  v = t.vec2f(1, 2);
  // @ts-expect-error f32 and i32
  v = t.add(v, t.vec3i(1));
  // @ts-expect-error a vector is a value
  v.x = 3;
  // @ts-expect-error two components have no z
  p[0]![0] = t.vec2f(1, 2).z;
  // @ts-expect-error three components are one number or three
  t.vec3f(1, 2);
  // @ts-expect-error a cross product is of three components
  t.cross(t.vec2f(1), t.vec2f(2));
  // @ts-expect-error no length of whole numbers
  t.length(t.vec3i(1));
  // @ts-expect-error a number is no vector
  t.dot(1, 2);
  // @ts-expect-error rows are no vectors
  t.add(p[0]!, p[1]!);
  // @ts-expect-error vectors have no operators
  p[0]![0] = v + w;
});
kernel(
  'b',
  { x: inout(f32) },
  ({ x }, { scale, dot, length }) => {
    // Constants and functions hide the thread's names.
    x[0] = scale * 2 + dot(length);
  },
  { constants: { scale: 3, length: 7 }, functions: { dot: square } },
);
kernel('b', { b: inout(u64), a: inout(i64), h: inout(f16), n: inout(i32) }, ({ b, a, h, n }, t) => {
  const word: bigint = t.u64(n[0]!) + b[0]! * 3n;
  b[0] = t.atomicAdd(b, 0, word) + t.min(word, 5n);
  a[0] = t.atomicMin(a, 0, t.i64(2.5)) / 2n;
  n[0] = t.i32(word) + t.f32(word);
  h[0] = h[0]! * 2;
  const seen = t.shared(t.u64, 4);
  seen[0] = word;
  // @ts-expect-error bigint into i32
  n[0] = word;
  // @ts-expect-error a number into u64
  b[0] = 1;
  // @ts-expect-error bigint and number
  a[0] = a[0]! + 1;
  // @ts-expect-error CUDA has no such atomic on i64
  t.atomicAdd(a, 0, 1n);
  // @ts-expect-error f16 is in memory only
  t.f16(1);
});
kernel('b', { x: inout(f32) }, ({ x }, { i, rng }) => {
  const r = rng(7, i);
  x[i] = r.uniform() + r.normal() + r.u32();
  // @ts-expect-error no such distribution
  x[i] = r.poisson();
});
// @ts-expect-error parameters are types, not their names
kernel('b', { x: 'f32' }, () => {});
// @ts-expect-error specialise only what was declared
k.specialize({ TILES: 8 });
// @ts-expect-error a constant keeps its kind
k.specialize({ TILE: true });
