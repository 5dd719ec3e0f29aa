// Sources that include headers, and sources that use what nvcc has without an include.
import { f32, f64, i32, i64, inout, input, output, u16, u32, u64, u8 } from 'millrace';
import { doubles, floats, ints, type TextCase } from './text-case.js';

const N = 100;
const small = floats(N, (i) => (i % 11) - 4.5);
const numbers = ints(N, (i) => ((i * 7919) % 97) - 48);
const unusual = doubles(N, (i) => (i === 3 ? Number.NaN : i === 4 ? Infinity : i === 5 ? -Infinity : i * 1.75 - 20));
const LEAST = -(2n ** 63n);

function parts(v: number): readonly [number, number] {
  return [Math.trunc(v), v - Math.trunc(v)];
}

function escapes(re: number, im: number): number {
  let [x, y, n] = [0, 0, 0];
  while (n < 50 && Math.hypot(x, y) <= 2) {
    [x, y] = [Math.fround(Math.fround(x * x - y * y) + re), Math.fround(Math.fround(x * y + y * x) + im)];
    n++;
  }
  return n;
}

/** (i + 1j) / (2 - 1j) - conj(i - 1j) */
const quotients = doubles(16, (at) => {
  const i = at >> 1;
  return at % 2 === 0 ? (2 * i - 1) / 5 - i : (i + 2) / 5 - 1;
});

function bestUpTo(i: number): number {
  let at = 0;
  for (let k = 1; k <= i; k++) if (numbers[k]! > numbers[at]!) at = k;
  return Math.abs(numbers[at]!) + 1000 * at;
}

function ofFour(i: number): number {
  const four = [...numbers.subarray(4 * i, 4 * i + 4)].toSorted((a, b) => a - b);
  const sum = four.reduce((a, b) => a + b, 0);
  const above = four.filter((v) => v <= 5).length;
  return sum * 1000 + above * 100 + four[0]! + Math.min(Math.max(four[3]!, 2), 8) * 10 + (four[3]! > four[0]! ? 0 : 7);
}

const BODIES = 20;
const bodies = floats(4 * BODIES, (at) => (at % 4 === 3 ? 1 + (at >> 2) : ((at * 13) % 7) / 2));
function pullOf(i: number): number {
  let sum = 0;
  for (let k = 0; k < BODIES; k++) {
    const d2 = [0, 1, 2].reduce((d, axis) => d + (bodies[4 * k + axis]! - bodies[4 * i + axis]!) ** 2, 0.25);
    if (d2 < 4) sum += bodies[4 * k + 3]!;
  }
  return sum;
}

const WEIGHTS = [1, 2, 3, 4, 3, 2, 1];
const ONE = { grid: 1, block: 128 };
const TWO = { grid: 2, block: 64 };
const count = { n: i32 };

export const HEADER_CASES: readonly TextCase[] = [
  {
    file: 'c-headers',
    kernel: 'c_headers',
    params: { x: input(f32), out: output(f64), ...count },
    launch: TWO,
    given: { x: small, out: doubles(N, () => 0), n: N },
    results: { out: doubles(N, (i) => (small[i]! > 1e-7 ? Math.PI * small[i]! : 2147483647 - i - 128)) },
  },
  {
    file: 'cpp-headers',
    kernel: 'cpp_headers',
    params: { x: input(f64), out: output(i64), ...count },
    launch: TWO,
    given: { x: unusual, out: new BigInt64Array(N), n: N },
    results: {
      out: BigInt64Array.from(unusual, (v) =>
        Number.isNaN(v) ? LEAST : v === Infinity ? -LEAST - 1n : v === -Infinity ? LEAST + 1n : BigInt(Math.floor(v)),
      ),
    },
  },
  {
    file: 'host-headers',
    kernel: 'host_headers',
    params: { y: output(i32), ...count },
    launch: ONE,
    given: { y: new Int32Array(N), n: N },
    results: { y: ints(N, (i) => Math.min(Math.max(i, 3), N - 2)) },
  },
  {
    file: 'host-types',
    kernel: 'scale_spectrum',
    params: { spectrum: inout(f32), n: i64, by: f32 },
    launch: ONE,
    given: { spectrum: small, n: N / 2, by: 3 },
    results: { spectrum: small.map((v, i) => (i % 2 === 0 ? 3 * v : -3 * v)) },
  },
  {
    file: 'cuda-headers',
    kernel: 'cuda_headers',
    params: { y: output(f32), ...count },
    launch: TWO,
    given: { y: floats(4 * N, () => 0), n: N },
    results: { y: floats(4 * N, (at) => [at >> 2, (at >> 2) * Math.fround(Math.PI), -Infinity, 1][at % 4]!) },
  },
  {
    file: 'short-types',
    kernel: 'short_types',
    params: { bytes: input(u8), sums: output(u32), halves: output(u16), ...count },
    launch: TWO,
    given: { bytes: Uint8Array.from({ length: N }, (_, i) => (i * 3) % 256), sums: new Uint32Array(N), halves: new Uint16Array(N), n: N },
    results: {
      sums: Uint32Array.from({ length: N }, (_, i) => 2 * ((i * 3) % 256) + 1 + i + 1),
      halves: Uint16Array.from({ length: N }, (_, i) => 65535 - i),
    },
  },
  {
    file: 'own-types',
    kernel: 'own_types',
    params: { x: input(u8), y: output(u64), n: u32 },
    launch: ONE,
    given: { x: Uint8Array.from({ length: N }, (_, i) => i), y: new BigUint64Array(N), n: N },
    results: { y: BigUint64Array.from({ length: N }, (_, i) => BigInt(i) * 0x100000001n + BigInt((300 + i) % 256) - 1n) },
  },
  {
    file: 'std-values',
    kernel: 'std_values',
    params: { x: input(i32), y: output(i32), ...count },
    launch: TWO,
    given: { x: numbers, y: new Int32Array(N), n: N },
    results: { y: ints(N, bestUpTo) },
  },
  {
    file: 'limits-of-types',
    kernel: 'limits_of_types',
    params: { y: output(f64) },
    launch: { grid: 1, block: 1 },
    given: { y: new Float64Array(9) },
    results: { y: Float64Array.of(255, 65535, 2 ** 32 - 1, 2 ** 32 - 1, 2 ** -23, Infinity, 2 ** -126, 64, 1) },
  },
  {
    file: 'type-traits',
    kernel: 'type_traits',
    params: { x: input(i32), f: input(f32), y: output(f64), ...count },
    launch: ONE,
    given: { x: numbers, f: small, y: new Float64Array(N), n: N },
    results: { y: doubles(N, (i) => small[i]! / 2 + (numbers[i]! >> 1) + (numbers[i]! >>> 31)) },
  },
  {
    file: 'tuples-and-arrays',
    kernel: 'tuples_and_arrays',
    params: { x: input(f32), y: output(f32), ...count },
    launch: ONE,
    given: { x: small, y: new Float32Array(N), n: N },
    results: { y: floats(N, (i) => parts(small[i]!)[0] * 11 + parts(small[i]!)[1] + 111 + 3) },
  },
  {
    file: 'algorithms',
    kernel: 'algorithms',
    params: { x: input(i32), y: output(i32), ...count },
    launch: ONE,
    given: { x: numbers, y: new Int32Array(N / 4), n: N / 4 },
    results: { y: ints(N / 4, ofFour) },
  },
  {
    file: 'using-std',
    kernel: 'using_std',
    params: { x: input(f32), y: output(f32), ...count },
    launch: ONE,
    given: { x: small, y: new Float32Array(N), n: N },
    results: { y: floats(N, (i) => Math.max(Math.min(small[i]!, 2), -2) + Math.abs(small[i]!) + small[i]! ** 2) },
  },
  {
    file: 'complex-numbers',
    kernel: 'complex_numbers',
    params: { counts: output(i32), quotients: output(f64), ...count },
    launch: ONE,
    given: { counts: new Int32Array(8), quotients: new Float64Array(16), n: 8 },
    results: { counts: ints(8, (i) => escapes(i * 0.25 - 2, 0.5)), quotients },
  },
  {
    file: 'formats',
    kernel: 'formats',
    params: { y: output(u64), ...count },
    launch: { grid: 1, block: 33 },
    given: { y: new BigUint64Array(33), n: 33 },
    results: { y: BigUint64Array.from({ length: 33 }, (_, i) => (i === 32 ? 2n ** 64n - 1n : 1n << BigInt(i))) },
  },
  {
    file: 'no-assertions',
    kernel: 'no_assertions',
    params: { y: output(i32), ...count },
    launch: ONE,
    given: { y: new Int32Array(N), n: N },
    results: { y: ints(N, (i) => i) },
  },
  {
    file: 'constants',
    kernel: 'constants',
    params: { x: input(f32), y: output(f64), ...count },
    launch: TWO,
    given: { x: small, y: new Float64Array(N), n: N },
    results: { y: doubles(N, (i) => WEIGHTS.reduce((sum, w, k) => sum + w * small[(i + k - 3 + N) % N]!, 2 * Math.PI)) },
  },
  {
    file: 'sum-in-blocks',
    kernel: 'sum_in_blocks',
    params: { x: input(f32), stats: output(f32), ...count },
    launch: { grid: 1, block: 128 },
    given: { x: small, stats: new Float32Array(2), n: N },
    results: {
      stats: Float32Array.of(
        small.reduce((a, b) => a + b, 0),
        Math.max(...small),
      ),
    },
  },
  {
    file: 'warp-sums',
    kernel: 'warp_sums',
    params: { x: input(u32), y: inout(u32), ...count },
    launch: TWO,
    given: { x: Uint32Array.from({ length: N }, (_, i) => i * i), y: Uint32Array.of(5), n: N },
    results: { y: Uint32Array.of(5 + Array.from({ length: N }, (_, i) => i * i).reduce((a, b) => a + b, 0)) },
  },
  {
    file: 'structs',
    kernel: 'structs',
    params: { bodies: input(f32), pull: output(f32), ...count },
    launch: ONE,
    given: { bodies, pull: new Float32Array(BODIES), n: BODIES },
    results: { pull: floats(BODIES, pullOf) },
    options: ['-DEPS=0.25f'],
  },
  {
    file: 'index-sequences',
    kernel: 'index_sequences',
    params: { x: input(i32), y: output(i32), ...count },
    launch: ONE,
    given: { x: numbers, y: new Int32Array(N / 5), n: N / 5 },
    results: { y: ints(N / 5, (i) => [0, 1, 2, 3, 4].reduce((sum, k) => sum + numbers[5 * i + k]! * (k + 1), 0)) },
  },
];
