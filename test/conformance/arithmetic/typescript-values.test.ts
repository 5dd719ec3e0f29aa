// Chapter 4, values in TypeScript kernels: vectors, bits, random numbers, 64-bit integers and f16, against the same computation
// in JavaScript.
import { describe, expect } from 'vitest';
import { f16, f32, i32, i64, inout, input, kernel, output, u32, u64 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { philox } from '../../support/oracle/philox.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const springs = kernel(
  'springs',
  { pos: inout(f32, 2), anchor: input(f32, 2), cell: output(i32, 2) },
  ({ pos, anchor, cell }, { i, vec3f, vec3i, add, sub, scale, cross, dot, length, normalize, clamp }) => {
    let p = vec3f(pos[i]!);
    const a = vec3f(anchor[0]!);
    const along = sub(a, p);
    const spin = cross(along, vec3f(0, 0, 1));
    for (let step = 0; step < 4; step++) p = length(sub(a, p)) > 1 ? add(p, scale(normalize(sub(a, p)), 0.25)) : add(p, scale(spin, 0.5));
    p = clamp(p, -8, dot(a, a));
    pos.set(i, p);
    cell.set(i, vec3i(p));
  },
  { fmad: false },
);

const bitwise = kernel(
  'bits',
  { x: input(f32), out: output(u32, 2) },
  ({ x, out }, { i, popcount, floatBits, bitsFloat, fma, u32: whole }) => {
    const word = floatBits(x[i]!);
    out[i]![0] = word;
    out[i]![1] = whole(popcount(word));
    out[i]![2] = floatBits(bitsFloat(word ^ 1));
    out[i]![3] = floatBits(fma(x[i]!, x[i]!, -1));
  },
);

const draws = kernel(
  'draws',
  { words: output(u32, 2), flat: output(f32, 2), bell: output(f32, 2), seed: u32 },
  ({ words, flat, bell, seed }, { i, rng }) => {
    const a = rng(seed, i);
    const b = rng(seed, i);
    const c = rng(seed, i);
    for (let n = 0; n < flat.shape[1]; n++) {
      words[i]![n] = a.u32();
      flat[i]![n] = b.uniform();
      bell[i]![n] = c.normal();
    }
  },
);

const wide = kernel(
  'wide',
  { a: inout(i64, 2), seed: input(u64), hash: output(u64), total: inout(u64), shift: i64 },
  ({ a, seed, hash, total, shift }, { i, i64: big, u64: word, f64: double, atomicAdd, atomicMax }) => {
    let z = seed[i]! + 0x9e37_79b9_7f4a_7c15n;
    z = (z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n;
    z = (z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn;
    z = z ^ (z >> 31n);
    hash[i] = z;
    const x = a[i]![0]!;
    const y = a[i]![1]!;
    a[i]![2] = x / y;
    a[i]![3] = x % y;
    a[i]![4] = (x >> shift) + (x << 3n) - big(double(x) * 0.5);
    a[i]![5] = x < y ? -(x / 2n) : ~y;
    atomicAdd(total, 0, word(i));
    atomicMax(total, 1, z);
  },
);

const halves = kernel(
  'halves',
  { h: input(f16), x: input(f32), wide: output(f32), rounded: output(f16) },
  ({ h, x, wide: w, rounded }, { i }) => {
    w[i] = h[i]!;
    rounded[i] = x[i]!;
  },
);

/** Every atomic of every thread on one word each, of the block and of the launch. */
const atomics = kernel('atomics', { words: inout(u32, 2), tickets: output(u32), deep: inout(i64) }, ({ words, tickets, deep }, t) => {
  const { i, threadIdx, u32: word } = t;
  const own = t.shared(u32, 16);
  if (threadIdx.x < 16) own[threadIdx.x] = words[0]![threadIdx.x]!;
  t.syncthreads();
  const value = word(i);
  tickets[i] = t.atomicAdd(words[1]!, 0, 1);
  t.atomicAdd(own, 0, value);
  t.atomicSub(own, 1, value);
  t.atomicMin(own, 2, value + 5);
  t.atomicMax(own, 3, value);
  t.atomicAnd(own, 4, ~(word(1) << (i & 31)));
  t.atomicOr(own, 5, word(1) << (i & 31));
  t.atomicXor(own, 6, value);
  t.atomicExch(own, 7, 77);
  for (;;) {
    const old = own[8]!;
    if (t.atomicCAS(own, 8, old, old + 2) === old) break;
  }
  t.atomicMin(deep, 0, t.i64(i) * -0x1_0000_0000n);
  t.atomicMax(deep, 1, t.i64(i) << 33n);
  t.syncthreads();
  if (threadIdx.x < 16) words[0]![threadIdx.x] = own[threadIdx.x]!;
});

/** A generator and a vector that live from one barrier to the next. */
const dice = kernel(
  'dice',
  { out: output(u32, 2), pos: inout(f32, 2) },
  ({ out, pos }, { i, rng, shared, syncthreads, threadIdx, blockDim, vec3f, add, scale }) => {
    const r = rng(9, i);
    const tile = shared('u32', 64);
    let v = vec3f(pos[i]!);
    for (let n = 0; n < out.shape[1]; n++) {
      tile[threadIdx.x] = r.u32();
      syncthreads();
      out[i]![n] = tile[(threadIdx.x + 1) % blockDim.x]!;
      v = add(v, scale(vec3f(tile[0]! & 7, 1, 2), 0.5));
      syncthreads();
    }
    pos.set(i, v);
  },
);

defineChapter((target) => {
  describe('4 kernels: values of TypeScript functions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S412', 'vector operations work component by component', async () => {
      const { device } = chapter;
      const count = 100;
      const start = Float32Array.from({ length: 3 * count }, (_, n) => ((n * 37) % 101) / 10 - 5);
      start.set([1, 2, 3], 3 * 7);
      const anchor = Float32Array.of(1, 2, 3);
      using pos = device.from(start, { shape: [count, 3] });
      using at = device.from(anchor, { shape: [1, 3] });
      using cell = device.zeros([count, 3], 'i32');
      device.stream.launch(springs, count, { pos, anchor: at, cell });
      const expected = Array.from({ length: count }, (_, n) => n).flatMap((n) => spring(start.subarray(3 * n, 3 * n + 3), anchor));
      expect([...(await pos.read())]).toEqual(expected);
      expect(await cell.read()).toEqual(Int32Array.from(expected));
    });

    rule('S412', 'bits and fused products are exact', async () => {
      const { device } = chapter;
      const values = Float32Array.from({ length: 64 }, (_, n) => Math.fround(1 + n / 3) * (n % 2 === 0 ? 1 : -1));
      using x = device.from(values);
      using out = device.zeros([64, 4], 'u32');
      device.stream.launch(bitwise, 64, { x, out });
      const words = new Uint32Array(values.buffer);
      const expected = [...values].flatMap((v, n) => {
        const ones = words[n]!.toString(2).replaceAll('0', '').length;
        // The square of a single is exact in double precision; so is the difference here.
        return [words[n]!, ones, (words[n]! ^ 1) >>> 0, new Uint32Array(Float32Array.of(v * v - 1).buffer)[0]!];
      });
      expect([...(await out.read())]).toEqual(expected);
    });

    rule('S415', 'random numbers are those of Philox 4x32-10, bit by bit', async () => {
      const { device } = chapter;
      const [sequences, count, seed] = [300, 33, 0xdead_beef];
      using words = device.zeros([sequences, count], 'u32');
      using flat = device.zeros([sequences, count]);
      using bell = device.zeros([sequences, count]);
      device.stream.launch(draws, sequences, { words, flat, bell, seed });
      const expected = Array.from({ length: sequences }, (_, sequence) => philoxWords(seed, sequence, 2 * count));
      expect(await words.read()).toEqual(Uint32Array.from(expected.flatMap((row) => row.slice(0, count))));
      const fractions = expected.flatMap((row) => row.slice(0, count).map((word) => (word >>> 8) / 2 ** 24));
      expect(await flat.read()).toEqual(Float32Array.from(fractions));
      const normals = await bell.read();
      for (const [row, drawn] of expected.entries()) {
        for (let n = 0; n < count; n++) {
          const radius = Math.sqrt(-2 * Math.log(((drawn[2 * n]! >>> 8) + 1) / 2 ** 24));
          const angle = (2 * Math.PI * (drawn[2 * n + 1]! >>> 8)) / 2 ** 24;
          expect(normals[row * count + n]).toBeCloseTo(radius * Math.cos(angle), 5);
        }
      }
      // For these the bits are the same on every device, not only the values.
      expect(hashOf(new Uint32Array(normals.buffer))).toBe(1_988_746_454);
    });

    rule('S412', '64-bit integers give the results of bigint', async () => {
      const { device } = chapter;
      const edge = 2n ** 63n;
      const pairs = [
        [7n, 2n],
        [-7n, 2n],
        [7n, -2n],
        [-7n, -2n],
        [-edge, -1n],
        [5n, 0n],
        [edge - 1n, 3n],
        [-edge, edge - 1n],
        [0n, 9n],
      ] as const;
      using a = device.from(BigInt64Array.from(pairs.flatMap(([x, y]) => [x, y, 0n, 0n, 0n, 0n])), { shape: [pairs.length, 6] });
      const seeds = BigUint64Array.from(pairs, (_, n) => BigInt(n) * 0xffff_ffff_ffffn);
      using seed = device.from(seeds);
      using hash = device.zeros(pairs.length, 'u64');
      using total = device.zeros(2, 'u64');
      device.stream.launch(wide, pairs.length, { a, seed, hash, total, shift: 5n });
      const signed = (value: bigint): bigint => BigInt.asIntN(64, value);
      const rows = pairs.flatMap(([x, y]) => {
        const quotient = y === 0n ? 0n : signed(x / y);
        const half = BigInt(Math.trunc(Number(x) * 0.5));
        return [x, y, quotient, y === 0n ? 0n : x % y, signed((x >> 5n) + (x << 3n) - half), x < y ? -(x / 2n) : ~y];
      });
      expect(await a.read()).toEqual(BigInt64Array.from(rows));
      const hashes = BigUint64Array.from(seeds, splitMix);
      expect(await hash.read()).toEqual(hashes);
      expect(await total.read()).toEqual(
        BigUint64Array.of(
          36n,
          hashes.reduce((most, one) => (one > most ? one : most)),
        ),
      );
    });

    rule('S412', 'every atomic works on shared memory and on array arguments', async () => {
      const { device } = chapter;
      const [threads, start] = [100, 1_000_000];
      const first = Uint32Array.from({ length: 32 }, (_, n) => (n < 16 ? ([start, start, start, 0, 2 ** 32 - 1, 0, 0, 0, 0][n] ?? n) : 0));
      using words = device.from(first, { shape: [2, 16] });
      using tickets = device.zeros(threads, 'u32');
      using deep = device.zeros(2, 'i64');
      device.stream.launch(atomics, { grid: 1, block: threads }, { words, tickets, deep });
      const sum = (threads * (threads - 1)) / 2;
      const xor = Array.from({ length: threads }, (_, n) => n).reduce((a, b) => a ^ b);
      const own = [start + sum, start - sum, 5, threads - 1, 0, 2 ** 32 - 1, xor, 77, 2 * threads];
      expect([...(await words.read())]).toEqual([...own, ...first.slice(9, 16), threads, ...Array.from({ length: 15 }, () => 0)]);
      // Each thread got a different old value.
      expect((await tickets.read()).toSorted()).toEqual(Uint32Array.from({ length: threads }, (_, n) => n));
      expect(await deep.read()).toEqual(BigInt64Array.of(-99n << 32n, 99n << 33n));
    });

    rule('S415', 'generators and vectors keep their values across barriers', async () => {
      const { device } = chapter;
      const [threads, block, rounds] = [128, 64, 6];
      using out = device.zeros([threads, rounds], 'u32');
      using pos = device.zeros([threads, 3]);
      device.stream.launch(dice, { grid: threads / block, block }, { out, pos });
      const drawn = Array.from({ length: threads }, (_, n) => philoxWords(9, n, rounds));
      const neighbours = drawn.flatMap((_row, n) => drawn[(n & block) + ((n + 1) % block)]!);
      expect(await out.read()).toEqual(Uint32Array.from(neighbours));
      const places = drawn.flatMap((_row, n) => [drawn[n & block]!.reduce((at, word) => at + (word & 7) / 2, 0), rounds / 2, rounds]);
      expect(await pos.read()).toEqual(Float32Array.from(places));
    });

    rule('S412', 'f16 loads exactly, and rounds to the nearest even when stored', async () => {
      const { device } = chapter;
      const cases = [
        [0x0000, 0],
        [0x3c00, 1],
        [0xc000, -2],
        [0x7bff, 65504],
        [0x0001, 2 ** -24],
        [0x0400, 2 ** -14],
        [0x7c00, Number.POSITIVE_INFINITY],
        [0xbc01, -1 - 2 ** -10],
      ] as const;
      const rounding = [1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519, 65520, 2 ** -25, 1.5 * 2 ** -24, -0, -1e10];
      using h = device.from(
        Uint16Array.from(cases, ([bits]) => bits),
        { dtype: 'f16' },
      );
      using x = device.from(Float32Array.from(rounding));
      using exact = device.zeros(8);
      using rounded = device.zeros(8, 'f16');
      device.stream.launch(halves, 8, { h, x, wide: exact, rounded });
      expect([...(await exact.read())]).toEqual(cases.map(([, value]) => value));
      expect([...(await rounded.read())]).toEqual([0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0002, 0x8000, 0xfc00]);
    });
  });
});

/** The result of `springs` for one point, in single precision. */
function spring(point: Float32Array, a: Float32Array): number[] {
  const single = Math.fround;
  const minus = (v: readonly number[]): number[] => v.map((part, at) => single(a[at]! - part));
  const dot = (v: readonly number[], w: readonly number[]): number =>
    v.map((part, at) => single(part * w[at]!)).reduce((s, part) => single(s + part));
  let p = [...point];
  const [x, y] = minus(p) as [number, number];
  const spin = [y, -x, 0];
  for (let step = 0; step < 4; step++) {
    const away = minus(p);
    const length = single(Math.sqrt(dot(away, away)));
    const factor = single(1 / length);
    const by = length > 1 ? away.map((part) => single(single(part * factor) * 0.25)) : spin.map((part) => single(part * 0.5));
    p = p.map((part, at) => single(part + by[at]!));
  }
  const most = dot([...a], [...a]);
  return p.map((part) => Math.min(Math.max(part, -8), most));
}

/** The first words of a sequence. */
function philoxWords(seed: number, sequence: number, count: number): number[] {
  const next = philox(seed, sequence);
  return Array.from({ length: count }, next);
}

function splitMix(seed: bigint): bigint {
  const word = (value: bigint): bigint => BigInt.asUintN(64, value);
  let z = word(seed + 0x9e37_79b9_7f4a_7c15n);
  z = word((z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n);
  z = word((z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn);
  return z ^ (z >> 31n);
}

/** FNV-1a, a word at a time. */
function hashOf(words: Uint32Array): number {
  return words.reduce((hash, word) => Math.imul(hash ^ word, 0x0100_0193) >>> 0, 0x811c_9dc5);
}
