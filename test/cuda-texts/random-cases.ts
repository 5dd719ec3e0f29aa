// Sources that draw from cuRAND's generators.
import { f32, f64, i32, output, u32, u64 } from 'millrace';
import { bitsOfMrg, mrg32k3a, xorwow } from '../support/oracle/curand.js';
import { philox } from '../support/oracle/philox.js';
import { doubles, floats, type TextCase } from './text-case.js';

const SEED = 0x1234_5678_9abcn;
const LOW_SEED = 4321n;
const N = 64;
const WORDS = 6;
const FOUR = { grid: 4, block: 16 };

function words(start: (id: number) => () => number): Uint32Array {
  return Uint32Array.from(Array.from({ length: N }, (_unused, id) => Array.from({ length: WORDS }, start(id))).flat());
}
/** Several values of each thread, each thread's together. */
function ofThreads(count: number, valuesOf: (id: number) => readonly number[]): readonly number[] {
  return Array.from({ length: count }, (_unused, id) => valuesOf(id)).flat();
}

function unit(word: number): number {
  return Math.fround(Math.fround(word) * 2 ** -32 + 2 ** -33);
}
function unitOfTwo(low: number, high: number): number {
  return Number(BigInt(low) ^ (BigInt(high) << 21n)) * 2 ** -53 + 2 ** -54;
}
function normals(u: number, v: number): readonly [number, number] {
  const radius = Math.sqrt(-2 * Math.log(u));
  return [radius * Math.sin(2 * Math.PI * v), radius * Math.cos(2 * Math.PI * v)];
}

function uniformFloats(id: number): readonly number[] {
  const p = philox(Number(LOW_SEED), id);
  return [unit(xorwow(LOW_SEED, BigInt(id), 0n)()), ...[p(), p(), p(), p()].map(unit), mrg32k3a(LOW_SEED, BigInt(id), 0n)() / 4294967087];
}
function uniformDoubles(id: number): readonly number[] {
  const [x, p] = [xorwow(LOW_SEED, BigInt(id), 1n), philox(Number(LOW_SEED), id)];
  const [, , , , a, b, c, d, e] = Array.from({ length: 9 }, p);
  return [unitOfTwo(x(), x()), unitOfTwo(a!, b!), unitOfTwo(c!, d!), (e! + 1) * 2 ** -32];
}

/** By rows of the kernel: what each thread draws, in its order. */
function normalFloats(id: number): readonly number[] {
  const [x, p] = [xorwow(LOW_SEED, BigInt(id), 0n), philox(Number(LOW_SEED), id)];
  const pair = (next: () => number): readonly [number, number] => {
    const u = unit(next());
    return normals(u, unit(next()));
  };
  const [one, two, three] = [pair(x), pair(x), pair(x)];
  const [four, five] = [pair(p), pair(p)];
  return [...one, ...two, ...three.map((v) => 0.5 + 0.25 * v), four[0] + four[1], five[0] + five[1]];
}
function normalDoubles(id: number): readonly number[] {
  const p = philox(Number(LOW_SEED), id);
  const [, , , , a, b, c, d] = Array.from({ length: 8 }, p);
  return normals(unitOfTwo(a!, b!), unitOfTwo(c!, d!));
}
function byRows(rows: number, valuesOf: (id: number) => readonly number[]): readonly number[] {
  const columns = Array.from({ length: N }, (_unused, id) => valuesOf(id));
  return Array.from({ length: rows }, (_unused, row) => columns.map((column) => column[row]!)).flat();
}

export const RANDOM_CASES: readonly TextCase[] = [
  {
    file: 'random-words',
    kernel: 'random_words',
    params: { x: output(u32), p: output(u32), m: output(u32), seed: u64 },
    launch: { grid: 2, block: 32 },
    given: { x: new Uint32Array(N * WORDS), p: new Uint32Array(N * WORDS), m: new Uint32Array(N * WORDS), seed: Number(SEED) },
    results: {
      x: words((id) => xorwow(SEED, BigInt(1000 * id), BigInt(3 * id))),
      m: words((id) => {
        const next = mrg32k3a(SEED, BigInt(id), BigInt.asUintN(64, 5n << BigInt(id)));
        return () => bitsOfMrg(next());
      }),
    },
  },
  {
    file: 'random-words',
    kernel: 'random_words',
    params: { x: output(u32), p: output(u32), m: output(u32), seed: u64 },
    launch: FOUR,
    given: { x: new Uint32Array(N * WORDS), p: new Uint32Array(N * WORDS), m: new Uint32Array(N * WORDS), seed: 0 },
    results: {
      x: words((id) => xorwow(0n, BigInt(1000 * id), BigInt(3 * id))),
      p: words((id) => philox(0, id)),
      m: words((id) => {
        const next = mrg32k3a(0n, BigInt(id), BigInt.asUintN(64, 5n << BigInt(id)));
        return () => bitsOfMrg(next());
      }),
    },
  },
  {
    file: 'random-skips',
    kernel: 'random_skips',
    params: { wrong: output(i32), seed: u64 },
    launch: { grid: 1, block: 64 },
    given: { wrong: new Int32Array(N).fill(-1), seed: Number(SEED) },
    results: { wrong: new Int32Array(N) },
  },
  {
    file: 'random-uniforms',
    kernel: 'random_uniforms',
    params: { f: output(f32), d: output(f64), seed: u64 },
    launch: FOUR,
    given: { f: new Float32Array(6 * N), d: new Float64Array(4 * N), seed: Number(LOW_SEED) },
    results: { f: Float32Array.from(ofThreads(N, uniformFloats)), d: Float64Array.from(ofThreads(N, uniformDoubles)) },
    tolerance: 1e-7,
  },
  {
    file: 'random-normals',
    kernel: 'random_normals',
    params: { f: output(f32), d: output(f64), seed: u64 },
    launch: FOUR,
    given: { f: floats(8 * N, () => 0), d: doubles(2 * N, () => 0), seed: Number(LOW_SEED) },
    results: { f: Float32Array.from(byRows(8, normalFloats)), d: Float64Array.from(byRows(2, normalDoubles)) },
    // CUDA's fast sine has an error of 2^-21, which the radius multiplies.
    tolerance: 1e-5,
  },
];
