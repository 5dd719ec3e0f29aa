// Helper functions in C++ that emitted source calls; each is included only when used.
//
// No header is included: NVRTC has none, and the CPU build provides CUDA's names itself.

import { ASSERTION_PARAMETER } from '../../core/channel/build-spec.js';
import { RANDOM_HELPERS, randomNeeds } from './prelude-random.js';

const SIGNED_MIN = '(-2147483647 - 1)';

function inline(signature: string, body: string): string {
  return `static __device__ __forceinline__ ${signature} { ${body} }`;
}

/** Bounds for float comparisons (the upper one is exclusive), and the smallest and largest value as integer literals. */
const RANGES = {
  int: ['-2147483648.0', '2147483648.0', SIGNED_MIN, '2147483647'],
  unsigned: ['0.0', '4294967296.0', '0u', '4294967295u'],
  'long long': ['-9223372036854775808.0', '9223372036854775808.0', '(-9223372036854775807ll - 1)', '9223372036854775807ll'],
  'unsigned long long': ['0.0', '18446744073709551616.0', '0ull', '18446744073709551615ull'],
} as const;

/**
 * Truncates, saturates, and converts NaN to 0. The GPU's conversion does this already; the CPU code spells it out. That code removes the
 * sign and restores it, because g++ 12 turns (float)(int)x into a rounding that gives -0 for -0.5.
 */
function toInteger(from: 'float' | 'double', to: keyof typeof RANGES, name: string): string {
  const [low, high, lowest, highest] = RANGES[to];
  const suffix = from === 'float' ? 'f' : '';
  const held = (truncated: string): string =>
    `return x != x ? 0 : x <= ${low}${suffix} ? ${lowest} : x >= ${high}${suffix} ? ${highest} : ${truncated};`;
  // The test above has handled values of at most 0, so no sign is left.
  if (low === '0.0') return inline(`${to} ${name}(${from} x)`, held(`(${to})x`));
  return `static __device__ __forceinline__ ${to} ${name}(${from} x) {
#ifdef __CUDA_ARCH__
  ${held(`(${to})x`)}
#else
  ${held(`-(${to})-x`)}
#endif
}`;
}

function extreme(which: 'min' | 'max', type: string, suffix: string): string {
  const op = which === 'min' ? '<' : '>';
  const plain = `return a ${op} b ? a : b;`;
  if (!suffix.startsWith('f')) return inline(`${type} mr_${which}_${suffix}(${type} a, ${type} b)`, plain);
  // One instruction on the GPU. CPU compilers vectorise the comparison.
  const device = `f${which}${suffix === 'f32' ? 'f' : ''}(a, b)`;
  return `static __device__ __forceinline__ ${type} mr_${which}_${suffix}(${type} a, ${type} b) {
#ifdef __CUDA_ARCH__
  return ${device};
#else
  ${plain}
#endif
}`;
}

const TYPES = { i32: 'int', u32: 'unsigned', i64: 'long long', u64: 'unsigned long long', f32: 'float', f64: 'double' } as const;

function build(): Record<string, string> {
  const table: Record<string, string> = {
    mr_abs_i32: inline('int mr_abs_i32(int x)', 'return x < 0 ? (int)(0u - (unsigned)x) : x;'),
    // The difference is exact, or rounds to 1. JavaScript keeps the sign of what becomes zero.
    mr_round_f32: inline(
      'float mr_round_f32(float x)',
      'const float down = floorf(x); return copysignf(x - down >= 0.5f ? down + 1.0f : down, x);',
    ),
    mr_round_f64: inline(
      'double mr_round_f64(double x)',
      'const double down = floor(x); return copysign(x - down >= 0.5 ? down + 1.0 : down, x);',
    ),
    // JavaScript's conversion to 32 bits: modulo 2^32. A float of at least 2^63 has no lower bits.
    mr_wrap_f32: inline('int mr_wrap_f32(float x)', 'return fabsf(x) < 9223372036854775808.0f ? (int)(long long)x : 0;'),
    mr_wrap_f64: inline(
      'int mr_wrap_f64(double x)',
      'const double rest = fabs(x) < 9223372036854775808.0 ? x : fmod(x, 4294967296.0); return rest == rest ? (int)(long long)rest : 0;',
    ),
    mr_mix_f32: inline('float mr_mix_f32(float a, float b, float t)', 'return a + (b - a) * t;'),
    mr_mix_f64: inline('double mr_mix_f64(double a, double b, double t)', 'return a + (b - a) * t;'),
    // Integer division on x86 traps for a zero divisor and for INT_MIN / -1.
    mr_div_i32: inline('int mr_div_i32(int a, int b)', 'return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned)a) : a / b;'),
    mr_div_u32: inline('unsigned mr_div_u32(unsigned a, unsigned b)', 'return b == 0u ? 0u : a / b;'),
    mr_rem_i32: inline('int mr_rem_i32(int a, int b)', 'return b == 0 || b == -1 ? 0 : a % b;'),
    mr_rem_u32: inline('unsigned mr_rem_u32(unsigned a, unsigned b)', 'return b == 0u ? 0u : a % b;'),
    mr_floordiv_i32: inline(
      'int mr_floordiv_i32(int a, int b)',
      'if (b == 0) return 0; if (b == -1) return (int)(0u - (unsigned)a); const int q = a / b; return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;',
    ),
    mr_f32_to_i32: toInteger('float', 'int', 'mr_f32_to_i32'),
    mr_f32_to_u32: toInteger('float', 'unsigned', 'mr_f32_to_u32'),
    mr_f64_to_i32: toInteger('double', 'int', 'mr_f64_to_i32'),
    mr_f64_to_u32: toInteger('double', 'unsigned', 'mr_f64_to_u32'),
    mr_f32_to_i64: toInteger('float', 'long long', 'mr_f32_to_i64'),
    mr_f32_to_u64: toInteger('float', 'unsigned long long', 'mr_f32_to_u64'),
    mr_f64_to_i64: toInteger('double', 'long long', 'mr_f64_to_i64'),
    mr_f64_to_u64: toInteger('double', 'unsigned long long', 'mr_f64_to_u64'),
    mr_div_i64: inline(
      'long long mr_div_i64(long long a, long long b)',
      'return b == 0 ? 0 : b == -1 ? (long long)(0ull - (unsigned long long)a) : a / b;',
    ),
    mr_div_u64: inline('unsigned long long mr_div_u64(unsigned long long a, unsigned long long b)', 'return b == 0u ? 0u : a / b;'),
    mr_rem_i64: inline('long long mr_rem_i64(long long a, long long b)', 'return b == 0 || b == -1 ? 0 : a % b;'),
    mr_rem_u64: inline('unsigned long long mr_rem_u64(unsigned long long a, unsigned long long b)', 'return b == 0u ? 0u : a % b;'),
    // f16 exists in memory only. Rounds to nearest even like cuda_fp16.h, which NVRTC does not provide.
    mr_from_f16: `#ifdef __CUDA_ARCH__
#define MR_FROM_F16(x, bits) asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits))
#else
#define MR_FROM_F16(x, bits) x = (float)__builtin_bit_cast(_Float16, bits)
#endif
static __device__ __forceinline__ float mr_from_f16(unsigned short bits) { float x; MR_FROM_F16(x, bits); return x; }`,
    mr_to_f16: `#ifdef __CUDA_ARCH__
#define MR_TO_F16(bits, x) asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x))
#else
#define MR_TO_F16(bits, x) bits = __builtin_bit_cast(unsigned short, (_Float16)x)
#endif
static __device__ __forceinline__ unsigned short mr_to_f16(float x) { unsigned short bits; MR_TO_F16(bits, x); return bits; }`,
    // In integers, because GPUs before compute capability 8.0 have no instruction for it.
    mr_from_bf16: inline('float mr_from_bf16(unsigned short bits)', 'return __uint_as_float((unsigned)bits << 16);'),
    mr_to_bf16: inline(
      'unsigned short mr_to_bf16(float x)',
      'unsigned b = __float_as_uint(x); return x != x ? 0x7fff : (unsigned short)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);',
    ),
    mr_clz: `static __device__ __forceinline__ int mr_clz(unsigned x) {
#ifdef __CUDA_ARCH__
  return __clz((int)x);
#else
  return x == 0u ? 32 : __builtin_clz(x);
#endif
}`,
    mr_infinity: `static __device__ __forceinline__ float mr_infinity() {
#ifdef __CUDA_ARCH__
  return __int_as_float(0x7f800000);
#else
  return __builtin_inff();
#endif
}`,
    mr_nan: `static __device__ __forceinline__ float mr_nan() {
#ifdef __CUDA_ARCH__
  return __int_as_float(0x7fc00000);
#else
  return __builtin_nanf("");
#endif
}`,
  };
  for (const [suffix, type] of Object.entries(TYPES)) {
    table[`mr_min_${suffix}`] = extreme('min', type, suffix);
    table[`mr_max_${suffix}`] = extreme('max', type, suffix);
    table[`mr_clamp_${suffix}`] = inline(
      `${type} mr_clamp_${suffix}(${type} v, ${type} lo, ${type} hi)`,
      `return mr_min_${suffix}(mr_max_${suffix}(v, lo), hi);`,
    );
    table[`mr_sign_${suffix}`] = inline(
      `${type} mr_sign_${suffix}(${type} x)`,
      suffix.startsWith('u') ? 'return x > 0u ? 1u : 0u;' : `return x > (${type})0 ? (${type})1 : x < (${type})0 ? (${type})-1 : x;`,
    );
  }
  return table;
}

const HELPERS: Readonly<Record<string, string>> = { ...build(), ...RANDOM_HELPERS };

/** Other helpers that a helper calls. */
function needs(name: string): readonly string[] {
  const clamp = /^mr_clamp_(\w+)$/.exec(name);
  return clamp ? [`mr_min_${clamp[1]}`, `mr_max_${clamp[1]}`] : randomNeeds(name);
}

/**
 * Reports an out-of-bounds access or a failed assertion. The first thread to claim the launch's slot describes the fault there; the word
 * tells the host, once the description is visible. The slot's layout is FaultSlot of the protocol.
 */
export const FAULT_PRELUDE: readonly string[] = `struct MrFaultSlot {
  unsigned state, parameter, dimension, limit;
  long long index;
  unsigned block_x, block_y, block_z, thread_x, thread_y, thread_z;
  unsigned long long reserved0, reserved1;
};
#ifdef __CUDACC__
#define MR_COLD __noinline__
#else
#define MR_COLD __attribute__((noinline, cold))
#endif
static __device__ MR_COLD void mr_report(MrFaultSlot* slot, unsigned* word, unsigned parameter, unsigned dimension,
                                         long long index, int limit, unsigned bx, unsigned by, unsigned bz,
                                         unsigned tx, unsigned ty, unsigned tz) {
  if (atomicCAS(&slot->state, 0u, 1u) == 0u) {
    slot->parameter = parameter;
    slot->dimension = dimension;
    slot->limit = (unsigned)limit;
    slot->index = index;
    slot->block_x = bx; slot->block_y = by; slot->block_z = bz;
    slot->thread_x = tx; slot->thread_y = ty; slot->thread_z = tz;
    __threadfence_system();
    *(volatile unsigned*)&slot->state = 2u;
    __threadfence_system();
    *(volatile unsigned*)word = 1u;
  }
}
#define MR_FAULT(parameter, dimension, index, limit) \\
  mr_report(mr_fault, mr_fault_word, parameter, dimension, (long long)(index), limit, blockIdx.x, blockIdx.y, \\
            blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z)
#define MR_FAILED(assertion) MR_FAULT(${ASSERTION_PARAMETER}u, 0u, assertion, 0)`.split('\n');

/** Reads the launch's dynamic shared memory size in bytes. The directive hides the PTX assembly from CPU compilers. */
export const DYNAMIC_BYTES_PRELUDE: readonly string[] = `#ifdef MILLRACE_CPU_DEVICE
#define MR_DYNAMIC_BYTES(bytes) bytes = mr_dynamic_shared_bytes
#else
#define MR_DYNAMIC_BYTES(bytes) asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes))
#endif
static __device__ __forceinline__ unsigned mr_dynamic_bytes() { unsigned bytes; MR_DYNAMIC_BYTES(bytes); return bytes; }`.split('\n');

/** The source of the helpers used, each after the helpers that it calls. */
export function helperLines(used: ReadonlySet<string>): string[] {
  const names = new Set<string>();
  for (const name of used) {
    for (const dependency of needs(name)) names.add(dependency);
    names.add(name);
  }
  return [...names].flatMap((name) => {
    const text = HELPERS[name];
    if (text === undefined) throw new Error(`No helper named ${name}.`);
    return text.split('\n');
  });
}
