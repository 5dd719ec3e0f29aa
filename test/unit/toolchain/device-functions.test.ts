// Device functions on the CPU device, all types of every atomic, module variables, printf. If nvcc is installed,
// it compiles the same sources, so that nothing is tested that CUDA lacks.
import { beforeAll, expect, test } from 'vitest';
import { checkWithNvcc, hasNvcc } from '../../support/nvcc.js';
import { kernelNames } from '../../../src/cuda-cpp/lower/rewrite.js';
import { specOf, type ImageLaunch } from './run-image.js';
import { imagesOfFile } from './images.js';

const ONE: ImageLaunch = { grid: [1, 1, 1], block: [1, 1, 1] };

const TINY = 2 ** -149;
/** The next number above 1 in float, and in double. */
const [F1, D1] = [1 + 2 ** -23, 1 + 2 ** -52];
const THIRD = Math.fround(1 / 3);
const third = THIRD < 1 / 3 ? [THIRD, THIRD + 2 ** -25] : [THIRD - 2 ** -25, THIRD];
const MAX_FLOAT = (2 - 2 ** -23) * 2 ** 127;

/** Expressions, with their values to six digits, or exactly. */
const NEAR: readonly (readonly [expression: string, value: number])[] = [
  ['sqrtf(2.0f)', Math.SQRT2],
  ['rsqrtf(4.0f)', 0.5],
  ['expf(1.0f)', Math.E],
  ['__expf(1.0f)', Math.E],
  ['powf(2.0f, 10.0f)', 1024],
  ['pow(3.0f, 2)', 9],
  ['pow(2, 0.5)', Math.SQRT2],
  ['fabsf(-3.0f)', 3],
  ['fminf(1.0f, NAN)', 1],
  ['fmaxf(NAN, 2.0f)', 2],
  ['floorf(-1.5f)', -2],
  ['ceil(1.2)', 2],
  ['roundf(2.5f)', 3],
  ['truncf(-1.9f)', -1],
  ['sinf(1.0f)', Math.sin(1)],
  ['cos(1.0)', Math.cos(1)],
  ['atan2f(1.0f, 1.0f)', Math.PI / 4],
  ['log2f(8.0f)', 3],
  ['log10(1000.0)', 3],
  ['cbrtf(27.0f)', 3],
  ['hypotf(3.0f, 4.0f)', 5],
  ['fmodf(7.5f, 2.0f)', 1.5],
  ['copysign(3.0, -0.0)', -3],
  ['fma(2.0f, 3.0f, 4.0f)', 10],
  ['sqrt(16.0)', 4],
  ['abs(-7)', 7],
  ['abs(-7.5f)', 7.5],
  ['min(3, 4u)', 3],
  ['max(-1, 2)', 2],
  ['min(1.5f, 2.5)', 1.5],
  ['isnan(NAN)', 1],
  ['isinf(INFINITY)', 1],
  ['__saturatef(1.5f)', 1],
  ['M_PI', Math.PI],
  ['tanhf(0.0f)', 0],
  ['erff(0.0f)', 0],
  ['erfinv(0.5)', 0.4769362762044699],
  ['erfinv(-0.999)', -2.326753765513525],
  ['erfcinv(1e-100)', 15.065574702593],
  ['erfcinvf(1.5f)', -0.4769362762044699],
  ['erf(erfinv(0.3))', 0.3],
  ['erfcx(2.0)', 0.2553956763105057],
  ['erfcx(100.0)', 0.005641613782989433],
  ['normcdf(1.0)', 0.8413447460685429],
  ['normcdfinv(0.975)', 1.959963984540054],
  ['normcdfinvf(0.025f)', -1.959963984540054],
  ['j0(1.0)', 0.7651976865579666],
  ['j1f(1.0f)', 0.4400505857449335],
  ['jn(2, 1.0)', 0.1149034849319005],
  ['y0(1.0)', 0.08825696421567697],
  ['yn(3, 2.0)', -1.12778377684043],
  ['norm4d(1.0, 2.0, 2.0, 4.0)', 5],
  ['rnorm3df(1.0f, 2.0f, 2.0f)', 1 / 3],
  ['rnorm4d(1.0, 1.0, 1.0, 1.0)', 0.5],
  ['rhypot(3.0, 4.0)', 0.2],
  ['rhypotf(3.0f, 4.0f)', 0.2],
  ['rcbrt(8.0)', 0.5],
  ['exp10(2.0)', 100],
  ['sinpi(0.5)', 1],
  ['cospif(1.0f)', -1],
  ['sinpi(1e8 + 0.25)', Math.SQRT1_2],
  ['cospi(1e8 + 1.25)', -Math.SQRT1_2],
  ['[] { double s, c; sincospi(0.75, &s, &c); return s - c; }()', Math.SQRT2],
  ['[] { float s, c; sincospif(-0.25f, &s, &c); return s - c; }()', -Math.SQRT2],
  ['norm3d(1e200, 2e200, 2e200)', 3e200],
  ['norm3df(1e30f, 2e30f, 2e30f)', 3e30],
  ['norm4df(1e-30f, 1e-30f, 1e-30f, 1e-30f)', 2e-30],
  ['[] { const double p[] = {1, 2, 4, 10}; return norm(4, p) + rnorm(4, p); }()', 11.090909090909],
  ['[] { const float p[] = {3, 4}; return normf(2, p) + rnormf(2, p); }()', 5.2],
  ['cyl_bessel_i0(1.0)', 1.2660658777520084],
  ['cyl_bessel_i0(30.0)', 781672297823.977],
  ['cyl_bessel_i1(2.0)', 1.5906368546373291],
  ['cyl_bessel_i1f(-2.0f)', -1.5906368546373291],
  ['tgamma(5.0)', 24],
  ['lgammaf(5.0f)', Math.log(24)],
  ['expm1(1e-10)', 1e-10],
  ['log1pf(1e-10f)', 1e-10],
  ['asinh(1.0)', Math.asinh(1)],
  ['acoshf(2.0f)', Math.acosh(2)],
  ['atanh(0.5)', Math.atanh(0.5)],
  ['__powf(2.0f, 0.5f)', Math.SQRT2],
  ['__fdividef(1.0f, 3.0f)', 1 / 3],
  ['__sinf(1.0f) * __cosf(1.0f) * __tanf(1.0f)', Math.sin(1) ** 2],
  ['__logf(2.0f) + __log2f(2.0f) + __log10f(2.0f)', Math.LN2 + 1 + Math.LOG10E * Math.LN2],
];
const EXACT: readonly (readonly [expression: string, value: number])[] = [
  ['__float2int_rz(-1.9f)', -1],
  ['__float2int_rn(2.5f)', 2],
  ['__float2int_rz(1e20f)', 2147483647],
  ['__float2int_rz(-1e20f)', -2147483648],
  ['__float2int_rz(NAN)', 0],
  ['__float2uint_rz(-5.0f)', 0],
  ['__float2uint_rz(5e9f)', 4294967295],
  ['__double2int_rd(-1.5)', -2],
  ['__float2int_ru(1.5f)', 2],
  ['__int2float_rn(7)', 7],
  ['__float_as_int(1.0f)', 0x3f800000],
  ['__int_as_float(0x40000000)', 2],
  ['__popc(0xff00u)', 8],
  ['__clz(1)', 31],
  ['__clz(0)', 32],
  ['__ffs(8)', 4],
  ['__ffs(0)', 0],
  ['__brev(1u)', 0x80000000],
  ['__umulhi(0x80000000u, 4u)', 2],
  ['__mul24(3, -5)', -15],
  ['__byte_perm(0x33221100u, 0x77665544u, 0x0714u)', 0x00771144],
  ['__funnelshift_l(0x80000000u, 1u, 1u)', 3],
  ['(threadIdx.x + 5) * 2654435761u', (5 * 2654435761) % 2 ** 32],
  ['(int)(threadIdx.x - 1)', -1],
  ['[] { const long long t = clock64(); __nanosleep(1000000); return clock64() - t > 100000; }()', 1],
  ['sinpi(3.0) + cospi(2.5) + sinpif(-7.0f) + cospif(0.5f)', 0],
  ['cospi(1e15) - sinpi(0.5)', 0],
  ['[] { int q; const double r = remquo(29.0, 4.0, &q); return 10 * r + (q & 7); }()', 17],
  ['[] { int q; const float r = remquof(-7.0f, 4.0f, &q); return r + (q & 7); }()', 7],
  ['__fma_rd(1.0, 1.0, -1e-30)', 1 - 2 ** -53],
  ['__fma_ru(1.0 + 0x1p-52, 1.0 + 0x1p-52, 0.0)', 1 + 2 ** -51 + 2 ** -52],
  ['__fma_rz(1.0 + 0x1p-52, 1.0 + 0x1p-52, 0.0)', 1 + 2 ** -51],
  ['__fma_ru(0x1p-52, 0x1p-52, 1.0) - __fma_rz(0x1p-52, 0x1p-52, 1.0)', 2 ** -52],
  ['ilogb(10.0)', 3],
  ['scalbln(1.5, 4l)', 24],
  ['llrint(2.5)', 2],
  ['llroundf(2.5f)', 3],
  ['nan("") != nan("")', 1],
  ['__fadd_rd(1.0f, 1e-20f)', 1],
  ['__fadd_ru(1.0f, 1e-20f)', F1],
  ['__fadd_rz(-1.0f, 1e-20f)', -1 + 2 ** -24],
  ['__fadd_ru(1.0f, 1.0f)', 2],
  ['__fsub_rd(1.0f, 1e-20f)', 1 - 2 ** -24],
  ['__fadd_rz(3.4028234e38f, 3.4028234e38f)', MAX_FLOAT],
  ['__fadd_ru(3.4028234e38f, 3.4028234e38f)', Infinity],
  ['__fadd_rd(INFINITY, 1.0f)', Infinity],
  ['__fmul_rd(0.1f, 10.0f)', 1],
  ['__fmul_ru(0.1f, 10.0f)', F1],
  ['__fdiv_rd(1.0f, 3.0f)', third[0]!],
  ['__fdiv_ru(1.0f, 3.0f)', third[1]!],
  ['__fdiv_ru(1.0f, -3.0f)', -third[0]!],
  ['__frcp_rz(3.0f)', third[0]!],
  ['__fdiv_rz(1.0f, 0.0f)', Infinity],
  ['__fsqrt_rd(2.0f) < __fsqrt_ru(2.0f)', 1],
  ['__fsqrt_ru(4.0f)', 2],
  ['__fmaf_rd(1.0f, 1.0f, -1e-30f)', 1 - 2 ** -24],
  ['__fmaf_ru(1.0f, 1.0f, 1e-30f)', F1],
  ['__fmaf_rz(1.0f, 1.0f, 1e-30f)', 1],
  ['__dadd_ru(1.0, 1e-30)', D1],
  ['__ddiv_rd(1.0, 3.0) < __ddiv_ru(1.0, 3.0)', 1],
  ['__drcp_rn(4.0)', 0.25],
  ['__int2float_rd(16777217)', 16777216],
  ['__int2float_ru(16777217)', 16777218],
  ['__int2float_rz(-16777217)', -16777216],
  ['__ull2float_ru(18446744073709551615ull)', 2 ** 64],
  ['__ull2float_rd(18446744073709551615ull)', 2 ** 64 - 2 ** 40],
  ['__ll2double_ru(9007199254740993ll)', 9007199254740994],
  ['__double2float_ru(1e-60)', TINY],
  ['__double2float_rd(1e300)', MAX_FLOAT],
  ['__double2float_rz(-1e300)', -MAX_FLOAT],
  ['__rhadd(3, 4)', 4],
  ['__urhadd(4294967295u, 4294967294u)', 4294967295],
  ['__funnelshift_lc(5u, 6u, 32u)', 5],
  ['__funnelshift_rc(5u, 6u, 40u)', 6],
  ['__dp4a(0x01fe03fc, 0x05060708, 9)', 9 + 5 - 12 + 21 - 32],
  ['__dp4a(0xff000001u, 0x02000003u, 1u)', 1 + 510 + 3],
  ['__dp2a_lo((int)0xffff0003, 0x00000204, 10)', 10 + 12 - 2],
  ['__dp2a_hi(0x00020003u, 0x05060000u, 1u)', 1 + 18 + 10],
  ['__vadd4(0xff010280u, 0x02030480u)', 0x01040600],
  ['__vaddss2(0x7fff8000u, 0x0001ffffu)', 0x7fff8000],
  ['__vaddus4(0xff010280u, 0x02030480u)', 0xff0406ff],
  ['__vsub2(0x00010002u, 0x00020001u)', 0xffff0001],
  ['__vsubss4(0x80000000u, 0x01000000u)', 0x80000000],
  ['__vsubus4(0x10203040u, 0x20102050u)', 0x00101000],
  ['__vabs4(0x80ff017fu)', 0x8001017f],
  ['__vabsss4(0x80ff017fu)', 0x7f01017f],
  ['__vneg2(0x80000001u)', 0x8000ffff],
  ['__vnegss2(0x80000001u)', 0x7fffffff],
  ['__vavgs4(0xff80fd7fu, 0xfe80fe7eu)', 0xfe80fd7f],
  ['__vavgu4(0x01020304u, 0x02020305u)', 0x02020305],
  ['__vhaddu2(0x00010003u, 0x00020002u)', 0x00010002],
  ['__vabsdiffs4(0x807f0001u, 0x7f80ffffu)', 0xffff0102],
  ['__vabsdiffu4(0x807f0001u, 0x7f80ffffu)', 0x0101fffe],
  ['__vsads4(0x807f0001u, 0x7f80ffffu)', 255 + 255 + 1 + 2],
  ['__vsadu2(0x0001ffffu, 0x00030000u)', 2 + 65535],
  ['__vmaxs4(0x80ff017fu, 0x00000000u) - __vmins4(0x7f000100u, 0x00000000u)', 0x0000017f],
  ['__vmaxu4(0x80ff017fu, 0x7f00027eu)', 0x80ff027f],
  ['__vminu2(0x80ff017fu, 0x7f00027eu)', 0x7f00017f],
  ['__vcmpgts4(0x80ff017fu, 0x00000000u) ^ __vcmpgtu4(0x80ff017fu, 0x00000000u)', 0xffff0000],
  ['__vcmpeq2(0x80ff017fu, 0x80ff0000u)', 0xffff0000],
  ['__vseteq4(0x80ff017fu, 0x80ff0000u) + __vsetltu4(1u, 2u) + __vsetges2(0x80000000u, 0u)', 0x01010002],
  ['__viaddmax_s32(2147483647, 1, -5)', -5],
  ['__viaddmax_s32_relu(-3, 1, -5)', 0],
  ['__viaddmax_u32(4294967295u, 3u, 1u)', 2],
  ['__viaddmax_s16x2(0x7fff0005u, 0x00010003u, 0xfffe0009u)', 0xfffe0009],
  ['__viaddmin_u16x2(0xffff0005u, 0x00030003u, 0x00010009u)', 0x00010008],
  ['__viaddmin_s16x2_relu(0xffff0005u, 0xffff0003u, 0x00010009u)', 8],
  ['__vimax3_s16x2(0x8000ffffu, 0xffff0001u, 0xfffe0000u)', 0xffff0001],
  ['__vimin3_u32(5u, 4294967295u, 7u) + __vimax3_s32_relu(-5, -4, -3)', 5],
  ['__vimin3_s16x2_relu(0x8000ffffu, 0x00010001u, 0x00020003u)', 0],
  ['__vimax_s32_relu(-2, -3) + __vimin_s16x2_relu(0x00050007u, 0x00060003u)', 0x00050003],
  ['[] { bool a, b; const unsigned v = __vibmax_s16x2(0x8000ffffu, 0xffff0001u, &a, &b); return v + a + b; }()', 0xffff0001],
  ['[] { bool a, b; const unsigned v = __vibmin_u16x2(0x80000001u, 0xffff0001u, &a, &b); return v + a + b; }()', 0x80000003],
  ['[] { bool a; const int v = __vibmin_s32(-5, -5, &a); return v + a; }()', -4],
  ['__fns(0b101100u, 0u, 2)', 3],
  ['__fns(0b101100u, 4u, -1)', 3],
  ['__fns(0b101100u, 3u, 0)', 3],
  ['__fns(0b1u, 1u, 1)', 4294967295],
  ['llmin(-5ll, 3ll) + (long long)ullmax(5ull, 3ull)', 0],
  ['(float)clock() != 0.0f || clock64() != 0', 1],
];

/** Types that an atomic supports, and its operations: [old, operand, result]. */
const ATOMICS: readonly (readonly [call: string, types: readonly string[], before: string, after: string])[] = [
  ['atomicAdd(p, (T)5)', ['int', 'unsigned', 'unsigned long long', 'float', 'double'], '7', '12'],
  ['atomicSub(p, (T)5)', ['int', 'unsigned'], '7', '2'],
  ['atomicExch(p, (T)5)', ['int', 'unsigned', 'unsigned long long', 'float'], '7', '5'],
  ['atomicMin(p, (T)5)', ['int', 'unsigned', 'long long', 'unsigned long long'], '7', '5'],
  ['atomicMax(p, (T)9)', ['int', 'unsigned', 'long long', 'unsigned long long'], '7', '9'],
  ['atomicMin(p, (T)-5)', ['int', 'long long'], '-2', '-5'],
  ['atomicMax(p, (T)-1)', ['unsigned', 'unsigned long long'], '7', '(T)-1'],
  ['atomicInc(p, (T)7)', ['unsigned'], '7', '0'],
  ['atomicDec(p, (T)7)', ['unsigned'], '0', '7'],
  ['atomicCAS(p, (T)7, (T)1)', ['int', 'unsigned', 'unsigned long long', 'unsigned short'], '7', '1'],
  ['atomicCAS(p, (T)8, (T)1)', ['int', 'unsigned', 'unsigned long long', 'unsigned short'], '7', '7'],
  ['atomicAnd(p, (T)12)', ['int', 'unsigned', 'unsigned long long'], '10', '8'],
  ['atomicOr(p, (T)12)', ['int', 'unsigned', 'unsigned long long'], '10', '14'],
  ['atomicXor(p, (T)12)', ['int', 'unsigned', 'unsigned long long'], '10', '6'],
];
const atomicCases = ATOMICS.flatMap(([call, types, before, after]) =>
  types.flatMap((type) => {
    // CUDA has the 16-bit form in the scope of the device alone.
    const scopes = type === 'unsigned short' ? [''] : ['', '_block', '_system'];
    return scopes.map((scope) => ({ call: call.replace('(', `${scope}(`), type, before, after }));
  }),
);

const VECTORS = ['char', 'uchar', 'short', 'ushort', 'int', 'uint', 'long', 'ulong', 'longlong', 'ulonglong', 'float', 'double'];
const vectorLines = VECTORS.flatMap((name) => [
  `{ ${name}1 v = make_${name}1(1); sum += v.x; }`,
  `{ ${name}2 v = make_${name}2(1, 2); sum += v.x + v.y; static_assert(alignof(${name}2) == 2 * sizeof(v.x), "pair"); }`,
  `{ ${name}3 v = make_${name}3(1, 2, 3); sum += v.x + v.y + v.z; static_assert(sizeof(v) == 3 * sizeof(v.x), "triple"); }`,
  `{ ${name}4 v = make_${name}4(1, 2, 3, 4), w = v; w.w += v.x; sum += w.x + w.y + w.z + w.w; }`,
]);

const SOURCE = `#include <cstdint>
#include <cstdio>
extern "C" __global__ void near_values(double* out) {
${NEAR.map(([expression], i) => `  out[${i}] = ${expression};`).join('\n')}
}
extern "C" __global__ void exact_values(double* out) {
${EXACT.map(([expression], i) => `  out[${i}] = ${expression};`).join('\n')}
}
extern "C" __global__ void atomics(int* wrong) {
${atomicCases
  .map(
    ({ call, type, before, after }, i) => `  {
    typedef ${type} T;
    __shared__ T word;
    T* p = &word;
    *p = ${before};
    const T old = ${call};
    wrong[${i}] = !(old == (T)${before} && word == (T)${after});
  }`,
  )
  .join('\n')}
}
extern "C" __global__ void vectors(double* out) {
  double sum = 0;
  static_assert(sizeof(float3) == 12 && alignof(float4) == 16 && alignof(uchar4) == 4 && sizeof(double2) == 16, "layout");
${vectorLines.map((one) => `  ${one}`).join('\n')}
  const dim3 shape(4, 5);
  out[0] = sum + shape.x * 10000 + shape.z;
}
struct Counters { int calls; float sum; };
__device__ Counters counters = {100, 0.5f};
__device__ int plain;
static __device__ volatile unsigned last[4];
__constant__ float table[2][2] = {{1.0f, 2.0f}, {3.0f, 4.0f}};
__constant__ const int primes[] = {2, 3, 5, 7};
extern "C" __global__ void variables(double* out) {
  atomicAdd(&counters.calls, 1);
  atomicAdd(&counters.sum, table[threadIdx.x / 2][threadIdx.x % 2] * primes[threadIdx.x]);
  plain += 1;
  last[threadIdx.x] = threadIdx.x + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    out[0] = counters.calls;
    out[1] = counters.sum;
    out[2] = plain > 0;
    out[3] = last[0] + last[1] * 10 + last[2] * 100 + last[3] * 1000;
  }
}
extern "C" __global__ void prints(int n) {
  printf("%d %i %u %x %X %o %c %s %%|", -n, n, 7u, 255, 255, 8, 'q', "text");
  printf("%5d|%-5d|%05d|%+d|%#x|%.3s|", n, n, n, n, 255, "abcdef");
  printf("%f %.2f %e %g %G %a|%8.3f|", 1.5f, 2.25, 12345.678, 0.0001, 1e20, 1.0, 3.14159f);
  printf("%ld %lu %lld %llu %llx|%hd %hhd|%zu\\n", -1l, 2ul, -3ll, 18446744073709551615ull, 255ull, (short)-4, (signed char)-5, sizeof(int));
  printf("%u %u %d\\n", blockIdx.x, threadIdx.x, (int)printf("inner\\n"));
}
extern "C" __global__ void lines(int n) {
  printf("block %u thread %u %s\\n", blockIdx.x, threadIdx.x, "................................................................");
}
`;

const images = imagesOfFile();
let image: string;

beforeAll(async () => {
  image = await images.built(specOf(SOURCE, 'near_values'), kernelNames(SOURCE));
}, 60_000);

test.skipIf(!hasNvcc)('nvcc compiles the same source (skipped where there is no nvcc)', { timeout: 60_000 }, () =>
  checkWithNvcc([SOURCE], ['-arch=sm_90', '-w']),
);

test('functions, to six digits', () => {
  const out = new Float64Array(NEAR.length);
  images.run(image, 'near_values', ONE, [out]);
  for (const [i, [expression, value]] of NEAR.entries()) {
    expect(Math.abs(out[i]! - value), `${expression} is ${out[i]}, not ${value}`).toBeLessThanOrEqual(1e-6 * Math.abs(value));
  }
});

test('rounding in a given direction, conversions and integers, exactly', () => {
  const out = new Float64Array(EXACT.length);
  images.run(image, 'exact_values', ONE, [out]);
  for (const [i, [expression, value]] of EXACT.entries()) expect(out[i], expression).toBe(value);
});

test('every atomic on every type that CUDA has it for, in every scope', () => {
  const wrong = new Int32Array(atomicCases.length).fill(2);
  images.run(image, 'atomics', ONE, [wrong]);
  expect(atomicCases.filter((_unused, i) => wrong[i] !== 0)).toEqual([]);
});

test('every vector type', () => {
  const out = new Float64Array(1);
  images.run(image, 'vectors', ONE, [out]);
  expect(out[0]).toBe(VECTORS.length * (1 + 3 + 6 + 11) + 40_001);
});

test('variables of the module, initialised and not', () => {
  const out = new Float64Array(4);
  images.run(image, 'variables', { ...ONE, block: [4, 1, 1] }, [out]);
  expect([...out]).toEqual([104, 0.5 + 2 + 6 + 15 + 28, 1, 4321]);
});

test('printf with every conversion, in whole lines', () => {
  const printed = images.run(image, 'prints', ONE, [{ value: Int32Array.of(42) }]);
  expect(printed).toBe(
    '-42 42 7 ff FF 10 q text %|   42|42   |00042|+42|0xff|abc|1.500000 2.25 1.234568e+04 0.0001 1E+20 0x1p+0|   3.142|' +
      '-1 2 -3 18446744073709551615 ff|-4 -5|4\ninner\n0 0 6\n',
  );
  const lines = images.run(image, 'lines', { grid: [50, 1, 1], block: [20, 1, 1], threads: 2 }, [{ value: Int32Array.of(0) }]).split('\n');
  expect(lines).toHaveLength(1001);
  expect(lines.slice(0, -1).filter((text) => !/^block \d+ thread \d+ \.{64}$/.test(text))).toEqual([]);
});
