// Kernels whose threads part in every way: what lanes have masks for.
import { f32, func, i32, inout, input, kernel, u32, u8 } from 'millrace';
import type { Kernel } from 'millrace';

const steps = func([i32, i32], i32, (from, most) => {
  let n = from;
  for (let k = 0; k < most; k++) {
    if (n === 1) return k;
    if (n % 7 === 5) continue;
    n = (n & 1) === 0 ? n >> 1 : 3 * n + 1;
  }
  return -n;
});

/** All have the parameters of `flow`, so that one test runs them all. */
const PARAMS = { x: input(i32), y: inout(i32), z: inout(f32), b: inout(u8), c: inout(u32), n: i32 };

type Bounds = 'checked' | 'unchecked';

/** Loops that lanes leave at different times, by their test, a break, a continue, a return; and loops in loops. */
const flow = (bounds: Bounds): Kernel =>
  kernel(
    'flow',
    PARAMS,
    ({ x, y, z, n }, { i, idiv }) => {
      const seed = x[i]! & 1023;
      if (seed === 77) return;
      let sum = 0;
      let product = 1;
      for (let k = 0; k < (seed & 15); k++) {
        if (((seed + k) & 3) === 2) continue;
        let inner = k;
        while (true) {
          inner += 2;
          if (inner > seed >> 4) break;
          if (inner === 21) {
            sum += 1000;
            continue;
          }
          if (inner > 50 && seed === 999) {
            y[i] = -inner;
            return;
          }
          sum += inner;
        }
        if (sum > 4000) break;
        product = (product * 3 + inner) & 0xffff;
      }
      do {
        sum -= idiv(sum, 3) + 1;
        if ((sum & 63) === 9) break;
      } while (sum > n);
      for (let k = 0; k < 4; k++) {
        if (k === n) continue;
        if (k === n + 2 && seed > 500) return;
        product += (seed % (k - 1)) + idiv(seed, k - 1) + (seed << k) - (-seed >> k);
      }
      y[i] = sum + product;
      z[i] = seed > 100 ? z[i]! / 3 : seed > 50 && x[seed % x.length]! > 0 ? Math.sqrt(Math.abs(z[i]!)) : Math.floor(z[i]! * 2.5) + sum;
    },
    { bounds, fmad: false },
  );

/** Elements of neighbours side by side, wrapped around, strided, anywhere, all in one place; bytes; memory of a thread's own. */
const memory = (bounds: Bounds): Kernel =>
  kernel(
    'memory',
    PARAMS,
    ({ x, y, z, b, c, n }, { i, threadIdx, blockIdx, local, atomicAdd, atomicMax, u32: whole, clamp, max }) => {
      const own = local(i32, 4);
      const bytes = local(u8, [2, 3]);
      for (let k = 0; k < 4; k++) own[k] = x[(i + k) % x.length]! + k;
      for (let k = 0; k < 6; k++) bytes[k & 1]![k % 3] = k;
      bytes[i & 1]![i % 3] = i;
      bytes[1]![1] = x[i]!;
      own[x[i]! & 3] = n;
      const far = x[(i * 3 + 1) % x.length]! & 31;
      if ((far & 1) === 0) y[i] = own[far & 3]! + bytes[far & 1]![1]!;
      else if (far > 20) z[i] = x[clamp(i - 1, 0, x.length - 1)]! > 500 ? 2 : 3;
      b[i] = b[i]! + far + (i < 5 ? 1 : x[max(i - 5, 0)]! & 1) * 3;
      if (threadIdx.x % 3 !== 1) atomicAdd(c, far & 7, whole(i));
      const before = atomicMax(c, 8 + (blockIdx.x & 7), whole(far));
      if (before > 40) y[i] = 0;
      const inside = i < n && x[i]! > 0;
      if (inside) y[i] = y[i]! + x[0]! - x[n]!;
    },
    { bounds, fmad: false },
  );

/** Casts and functions, of floats that fit and of those that do not. */
const numbers = (bounds: Bounds): Kernel =>
  kernel(
    'numbers',
    PARAMS,
    (
      { x, y, z, n },
      { i, i32: int, u32: whole, f32: single, clamp, mix, min, max, fma, popcount, floatBits, bitsFloat, idiv, f64: double, steps: f },
    ) => {
      const v = z[i]! * single(x[i]!);
      const wide = v * 4e9 - single(n);
      let bits = whole(int(wide)) ^ whole(wide) ^ floatBits(v);
      bits = (bits >>> whole(x[i]! & 40)) + (bits << 33) + whole(popcount(bits)) + whole(Math.clz32(bits));
      const clamped =
        clamp(v, -2, 3) +
        mix(v, single(n), 0.25) +
        min(v, 1, single(n)) +
        max(v, -1) +
        Math.round(v) +
        Math.ceil(v) +
        Math.trunc(v) +
        Math.sign(v);
      z[i] =
        fma(clamped, 0.5, bitsFloat((bits & 0x7fffff) | 0x3f800000)) + (v % 3) + Math.sin(clamped) + 1 / Math.sqrt(clamped * clamped + 1);
      y[i] =
        (x[i]! % (x[i]! & 7)) +
        idiv(x[i]!, (x[i]! >> 5) % 9) +
        Math.floor(x[i]! / 7) +
        Math.imul(x[i]!, 77777) +
        int(bits) +
        f(x[i]! & 255, 40) +
        f(n, 7);
      if (double(v) > 0.5 && Math.abs(v) < 100) y[i] = y[i]! ^ Math.abs(x[i]!) ^ int(double(v) * 1e-3);
    },
    { bounds, fmad: false, functions: { steps } },
  );

/** Values of 64 bits, in half as many lanes. */
const wide = (bounds: Bounds): Kernel =>
  kernel(
    'wide',
    PARAMS,
    ({ x, y, z, c, n }, { i, i64: long, u64: ulong, f64: double, i32: int, f32: single, u32: whole }) => {
      let a = long(x[i]!) * 1000003n;
      let d = double(z[i]!);
      for (let k = 0; k < (x[i]! & 7); k++) {
        a = a ^ (a >> 7n) ^ long(d);
        d = d > 1e6 ? Math.sqrt(d) : d * 1.5 + double(a & 0xffn);
        if (a % 13n === 0n) break;
      }
      const u = ulong(a) / 3n;
      y[i] = int(a & 0xffffn) + int(u >> 40n) + n;
      z[i] = single(d) + (u > ulong(c[0]!) ? 1 : 2) + single(whole(x[i]!));
    },
    { bounds, fmad: false },
  );

/** Barriers: what is kept from one region to the next, who has left, and what only the first threads do. */
const barriers = (bounds: Bounds): Kernel =>
  kernel(
    'barriers',
    PARAMS,
    ({ x, y, z, b, n }, { i, threadIdx, blockDim, shared, local, syncthreads }) => {
      const s = shared(i32, 1024);
      const kept = local(i32, 3);
      const t = threadIdx.x + blockDim.x * threadIdx.y;
      let mine = x[i]!;
      let isOdd = (mine & 1) === 1;
      kept[1] = mine >> 1;
      s[t] = mine;
      syncthreads();
      if (mine === 1023) return;
      mine += s[threadIdx.x > 0 ? t - 1 : t]!;
      for (let half = 8; half > 0; half >>= 1) {
        syncthreads();
        if (threadIdx.x < half) s[t] = s[t]! + (isOdd ? kept[1]! : mine) + half;
        syncthreads();
        isOdd = !isOdd || mine > 900;
        if (threadIdx.x === 0) s[t] = s[t]! ^ n;
      }
      syncthreads();
      y[i] = s[t]! + mine + kept[1]!;
      if (isOdd) z[i] = 1;
      else b[i] = mine;
    },
    { bounds, fmad: false },
  );

/** Steps that change once they were used, indices that wrap between neighbours, arrows that load, atomics between an index and its use. */
const places = (bounds: Bounds): Kernel =>
  kernel(
    'places',
    PARAMS,
    ({ x, y, z, c, n }, { i, atomicAdd, i32: int }) => {
      const at = (place: number): number => x[place]!;
      const five = (_place: number): number => 5;
      let step = n - 2;
      const place = i * step;
      let from = 0;
      for (let k = i * step; k < i + 2; k++) {
        step += n;
        from += k < x.length ? x[k]! : 0;
      }
      y[i] = x[place]! + step + from;
      if ((i & 3) === 0) y[i] = y[i]! + x[i << 30]!;
      z[i] = (i > 2_000_000_000 ? at(i - 2_000_000_000) : five(i)) + (i > 2_000_000_000 && at(i - 2_000_000_000) > 3 ? 1 : 2);
      if (i === 40) y[c[12]!] = int(atomicAdd(c, 12, 1));
    },
    { bounds, fmad: false },
  );

/** Without loops, so that blocks run together: conditions that are assigned in their own branches, borders, and who returns early. */
const turned = (bounds: Bounds): Kernel =>
  kernel(
    'turned',
    PARAMS,
    ({ x, y, z, b, n }, { i, blockDim }) => {
      let isOdd = (x[i]! & 1) === 1;
      if (isOdd) {
        isOdd = x[i]! > 500;
        y[i] = blockDim.x + (isOdd ? 1 : 2);
      } else {
        isOdd = x[i]! < 300;
        y[i] = 3;
      }
      if (i === 0 || i === y.length - 1 || (isOdd && x[i]! % 5 === n)) return;
      z[i] = z[i]! * 0.5 + x[i - 1]! - (isOdd || x[i]! > 900 ? x[i]! : n);
      b[i] = x[i]! > n ? x[i]! : b[i]! + 1;
    },
    { bounds, fmad: false },
  );

/** Every function of float_functions.h, also beyond the limit of sin, cos and tan. Products are fused, as by default. */
const functions = (bounds: Bounds): Kernel =>
  kernel(
    'functions',
    PARAMS,
    ({ x, y, z, n }, { i, floatBits }) => {
      const v = z[i]! * (x[i]! % 7 === n ? 1e7 : 4);
      const s = Math.abs(v);
      const e =
        floatBits(Math.exp(v)) ^ floatBits(Math.expm1(v)) ^ floatBits(Math.log(s)) ^ floatBits(Math.log2(s)) ^ floatBits(Math.log10(s));
      const t =
        floatBits(Math.log1p(s)) ^
        floatBits(Math.sin(v)) ^
        floatBits(Math.cos(v)) ^
        floatBits(Math.tan(v)) ^
        floatBits(Math.asin(z[i]! / 2));
      const h = floatBits(Math.acos(z[i]! / 2)) ^ floatBits(Math.atan(v)) ^ floatBits(Math.atan2(v, z[i]! - 0.5)) ^ floatBits(Math.sinh(v));
      const a = floatBits(Math.cosh(v)) ^ floatBits(Math.tanh(v)) ^ floatBits(Math.asinh(v)) ^ floatBits(Math.acosh(s + 1));
      y[i] = (e ^ t ^ h ^ a ^ floatBits(Math.atanh(z[i]! / 2)) ^ floatBits(Math.cbrt(v)) ^ floatBits(Math.pow(s, z[i]!))) | 0;
      z[i] = Math.exp(v) * 2 + Math.sin(v) - Math.hypot(v, z[i]!) * Math.log(s + 1);
    },
    { bounds },
  );

export const LANE_KERNELS: Readonly<Record<string, (bounds: Bounds) => Kernel>> = {
  flow,
  memory,
  numbers,
  wide,
  barriers,
  places,
  turned,
  functions,
};
