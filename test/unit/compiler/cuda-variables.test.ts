// Variables outside functions that tokens of CUDA C++ source declare.
import { describe, expect, test } from 'vitest';
import { withoutComments } from '../../../src/cuda-cpp/read/tokens.js';
import { type SourceVariable, variablesOf as variablesOfText } from '../../../src/cuda-cpp/read/variables.js';

const variablesOf = (source: string): SourceVariable[] => variablesOfText(withoutComments(source));
const brief = (source: string): string[] =>
  variablesOf(source).map(({ name, text, dtype, byteLength }) => `${name}: ${text} ${dtype ?? '?'} ${byteLength ?? '?'}`);

describe('types and sizes', () => {
  test.each([
    ['__device__ int x;', ['x: int x i32 4']],
    ['__device__ int a = 5, b[3] = {1, 2, 3}, *c;', ['a: int a i32 4', 'b: int b[3] i32 12', 'c: int* c ? 8']],
    ['static __device__ __align__(16) unsigned long long x[2][4 * 3];', ['x: unsigned long long x[2][4 * 3] u64 192']],
    ['__device__ std::uint8_t bytes[0x10u];', ['bytes: std::uint8_t bytes[0x10u] u8 16']],
    ["__constant__ double table[1'000];", ["table: double table[1'000] f64 8000"]],
    ['int __device__ x;', ['x: int x i32 4']],
    ['__device__ bool flag{true};', ['flag: bool flag bool 1']],
    ['__device__ float **rows[4];', ['rows: float** rows[4] ? 32']],
    ['__device__ volatile int x;', ['x: int x i32 4']],
  ])('%s', (source, expected) => {
    expect(brief(source)).toEqual(expected);
  });

  test('what only a compiler knows stays undefined', () => {
    expect(
      brief(`
#define N 9
__constant__ float weights[N];
__device__ float4 wide[2];
__device__ struct Point { int x, y; __device__ int sum() { return x + y; } } point;
__device__ Point other = {1, 2}, more[2]{};
__device__ Matrix<float, 3> matrix;
__constant__ float values[] = {1.0f, 2.0f};`),
    ).toEqual([
      'weights: float weights[N] f32 ?',
      'wide: float4 wide[2] ? ?',
      'point: Point point ? ?',
      'other: Point other ? ?',
      'more: Point more[2] ? ?',
      'matrix: Matrix<...> matrix ? ?',
      'values: float values[] f32 ?',
    ]);
  });

  test('the memory space, and whether it is writable', () => {
    const found = variablesOf(`
__device__ int a; __constant__ int b; __device__ __constant__ int c;
__device__ const int f = 1; __device__ int const g = 1; constexpr __device__ int h = 1;
__device__ const float* i; __device__ float* const j = nullptr; __constant__ const float k[1] = {1};
extern __device__ int l; extern __device__ int m = 1;`);
    const spaces = found.map(({ space }) => space[0]).join('');
    expect(spaces).toBe('dccdddddcdd');
    expect(found.filter(({ isConst }) => isConst).map(({ name }) => name)).toEqual(['f', 'g', 'h', 'j', 'k']);
    expect(found.filter(({ isExtern }) => isExtern).map(({ name }) => name)).toEqual(['l']);
  });
});

describe('which declarations are variables', () => {
  test('names include namespaces; functions and classes contribute none', () => {
    const found = variablesOf(`
namespace a { namespace b { __device__ float deep[3]; int f(int x) { return x; } } __device__ int near; }
namespace a::c { __device__ int nested; }
inline namespace v1 { __device__ int versioned; }
namespace { __device__ int hidden; }
extern "C" { __device__ int plain; }
struct Box { static __device__ int inside; __device__ int get() { static __device__ int calls; return calls; } };
__device__ float helper(float x) { __shared__ int s[2]; static __device__ int calls; return x; }
__device__ float declared(float x);
__device__ float (*pointer)(float);
template <class T> __device__ T generic;
typedef __device__ int Odd;
__shared__ float shared[3];
int host;
extern "C" __global__ void k(int* out) { __shared__ int s[3]; out[0] = s[0]; }
__device__ int last;`);
    expect(found.map(({ name }) => name)).toEqual(['a::b::deep', 'a::near', 'a::c::nested', 'v1::versioned', 'hidden', 'plain', 'last']);
    expect(found.filter(({ isHidden }) => isHidden).map(({ name }) => name)).toEqual(['hidden']);
  });

  test('functions that overload assignments and calls end before the next declaration', () => {
    const body = '(float2 &a, float2 b) { a.x += b.x; }';
    const operators = ['operator+=', 'operator =', 'operator==', 'operator<=', 'operator()', 'operator float', 'operator new[]'];
    for (const name of operators)
      expect(brief(`__device__ void ${name}${body}\n__constant__ float sums[4];`)).toEqual(['sums: float sums[4] f32 16']);
  });

  test('a macro call before a declaration is not part of it', () => {
    expect(brief('CONSTANT(table, 3)\n__device__ int x[2], y;\nOTHER(a) __device__ float z{1};')).toEqual([
      'x: int x[2] i32 8',
      'y: int y i32 4',
      'z: float z f32 4',
    ]);
  });

  test('comments, strings and directives neither hide nor add declarations', () => {
    const found = variablesOf(`
// __device__ int commented;
/* __device__ int block; */
#define DECLARE __device__ int made; \\
  __device__ int continued;
__device__ const char* text = "__device__ int quoted; }";
# 7 "kernel.cu"
__device__ char brace = '}';
__device__ int seen;`);
    expect(found.map(({ name }) => name)).toEqual(['text', 'brace', 'seen']);
  });

  test('unterminated declarations, and surplus closing brackets', () => {
    for (const source of [
      '__device__ int',
      '__device__ int x',
      '__device__ int x[',
      '__device__ {',
      '} } __device__ int x;',
      '(((',
      '<<<',
      '',
    ])
      expect(() => variablesOf(source), source).not.toThrow();
    expect(brief('} } __device__ int x;')).toEqual(['x: int x i32 4']);
  });

  test('a megabyte of arbitrary input is scanned in linear time', { timeout: 20_000 }, () => {
    for (const piece of [
      'a{}',
      '__device__ x',
      '(',
      '[',
      '{',
      '<',
      '__device__ a<',
      'struct {}',
      'x x x ',
      'namespace a {',
      '__device__ int a,',
    ])
      variablesOf(piece.repeat(1_000_000 / piece.length));
  });
});
