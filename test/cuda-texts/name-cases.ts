// Kernels by the names that their sources give them: without extern "C", in namespaces, and templates by their arguments.
import { f32, f64, i32, inout, input, output, u32, u64, u8 } from 'millrace';
import { doubles, floats, ints, type TextCase } from './text-case.js';

const N = 100;
const small = floats(N, (i) => (i % 11) - 4.5);
const numbers = ints(N, (i) => ((i * 7919) % 97) - 48);
const ONE = { grid: 1, block: 128 };
const TWO = { grid: 2, block: 64 };
const count = { n: i32 };

function sumsOf(x: Float64Array | Int32Array, block: number): number[] {
  return Array.from({ length: Math.ceil(x.length / block) }, (_, at) =>
    Array.from(x.subarray(at * block, (at + 1) * block)).reduce((a, b) => a + b, 0),
  );
}

const wide = doubles(N, (i) => i / 4);

export const NAME_CASES: readonly TextCase[] = [
  {
    file: 'plain-name',
    kernel: 'saxpy',
    params: { ...count, a: f32, x: input(f32), y: inout(f32) },
    launch: TWO,
    given: { n: N, a: 3, x: small, y: floats(N, (i) => i) },
    results: { y: floats(N, (i) => 3 * small[i]! + i) },
  },
  {
    file: 'namespaces',
    kernel: 'physics::step',
    params: { p: inout(f32), dt: f32, ...count },
    launch: TWO,
    given: { p: floats(2 * N, (i) => i), dt: 0.25, n: N },
    results: { p: floats(2 * N, (i) => (i % 2 === 0 ? i + (i + 1) / 8 : i / 2)) },
  },
  {
    file: 'namespaces',
    kernel: 'image::step',
    params: { pixels: inout(u8), ...count },
    launch: TWO,
    given: { pixels: Uint8Array.from({ length: N }, (_, i) => i), n: N },
    results: { pixels: Uint8Array.from({ length: N }, (_, i) => 255 - i) },
  },
  ...(['doubled', 'tripled'] as const).map((kernel, at) => ({
    file: 'static-kernels',
    kernel,
    params: { y: inout(i32), ...count },
    launch: ONE,
    given: { y: numbers, n: N },
    results: { y: numbers.map((v) => v * (at + 2)) },
  })),
  {
    file: 'declared-before',
    kernel: 'squared',
    params: { in: input(f32), out: output(f32), ...count },
    launch: { grid: 1, block: 32 },
    given: { in: small, out: new Float32Array(N), n: N },
    results: { out: small.map((v) => v * v) },
  },
  {
    file: 'overloads',
    kernel: 'both',
    params: { f: input(f32), k: input(i32), y: output(f32), ...count },
    launch: ONE,
    given: { f: small, k: numbers, y: new Float32Array(N), n: N },
    results: { y: floats(N, (i) => 2 * (small[i]! + numbers[i]!)) },
  },
  {
    file: 'made-by-macro',
    kernel: 'zero',
    params: { y: output(i32), ...count },
    launch: ONE,
    given: { y: numbers, n: N },
    results: { y: new Int32Array(N) },
  },
  {
    file: 'shared-by-macro',
    kernel: 'summed',
    params: { x: input(f32), y: output(f32), ...count },
    launch: { grid: 2, block: 64, sharedBytes: 256 },
    given: { x: small, y: new Float32Array(2), n: N },
    results: { y: Float32Array.from(sumsOf(Float64Array.from(small), 64), (sum) => sum + 3) },
  },
  {
    file: 'shared-by-macro',
    kernel: 'mirrored',
    params: { x: input(i32), y: output(i32) },
    launch: { grid: 1, block: 64 },
    given: { x: numbers, y: new Int32Array(64) },
    results: { y: ints(64, (i) => numbers[63 - i]! + numbers[i < 32 ? 0 : 32]!) },
  },
  {
    file: 'shared-by-macro',
    kernel: 'doubled',
    params: { x: input(i32), y: output(i32) },
    launch: { grid: 1, block: 64, sharedBytes: 256 },
    given: { x: numbers, y: new Int32Array(64) },
    results: { y: ints(64, (i) => 2 * numbers[i]!) },
  },
];

/** What only NVRTC and the CPU device build by name: templates, and kernels that a macro defines. */
export const TEMPLATE_CASES: readonly TextCase[] = [
  {
    file: 'made-by-macro',
    kernel: 'cube',
    params: { x: input(f32), y: output(f32), ...count },
    launch: TWO,
    given: { x: small, y: new Float32Array(N), n: N },
    results: { y: small.map((v) => v ** 3) },
  },
  {
    file: 'made-by-macro',
    kernel: 'half_of',
    params: { x: input(i32), y: output(i32), ...count },
    launch: TWO,
    given: { x: numbers, y: new Int32Array(N), n: N },
    results: { y: numbers.map((v) => Math.trunc(v / 2)) },
  },
  {
    file: 'reduce-template',
    kernel: 'reduce<int, 64>',
    params: { in: input(i32), out: output(i32), ...count },
    launch: TWO,
    given: { in: numbers, out: new Int32Array(2), n: N },
    results: { out: Int32Array.from(sumsOf(numbers, 64)) },
  },
  {
    file: 'reduce-template',
    kernel: 'reduce<double, 2 * 16>',
    params: { in: input(f64), out: output(f64), ...count },
    launch: { grid: 4, block: 32 },
    given: { in: wide, out: new Float64Array(4), n: N },
    results: { out: Float64Array.from(sumsOf(wide, 32)) },
  },
  {
    file: 'map-template',
    kernel: 'lib::map<op::Square, int>',
    params: { x: input(i32), y: output(i32), n: u64 },
    launch: TWO,
    given: { x: numbers, y: new Int32Array(N), n: N },
    results: { y: numbers.map((v) => v * v) },
  },
  {
    file: 'map-template',
    kernel: 'map<op::Negate>',
    params: { x: input(f32), y: output(f32), n: u64 },
    launch: TWO,
    given: { x: small, y: new Float32Array(N), n: N },
    results: { y: small.map((v) => -v) },
  },
  {
    file: 'vector-template',
    kernel: 'pack<int, true>',
    params: { x: input(i32), y: output(i32), n: u32 },
    launch: ONE,
    given: { x: numbers, y: new Int32Array(N), n: N / 4 },
    results: { y: ints(N, (i) => numbers[i + 3 - 2 * (i % 4)]!) },
  },
  {
    file: 'warp-template',
    kernel: 'lanes<8>',
    params: { x: input(f32), y: output(f32) },
    launch: { grid: 1, block: 96 },
    given: { x: small.slice(0, 96), y: new Float32Array(12) },
    results: { y: floats(12, (at) => small.subarray(8 * at, 8 * at + 8).reduce((a, b) => a + b, 0)) },
  },
];
