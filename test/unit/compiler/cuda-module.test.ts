// cudaModule: the checks of its source, kernels and variables, and the build that it describes.
import { describe, expect, test } from 'vitest';
import { withoutManaged } from '../../../src/cuda-cpp/select/dialect.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { ArgumentError, CompileError } from '../../../src/core/base/errors.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { input, output } from '../../../src/core/kernels/kernel.js';
import { MODULE, type ModuleSource } from '../../../src/core/kernels/module.js';

const SOURCE = `
__constant__ float weights[3];
__device__ const int fixed = 1;
namespace n { __device__ unsigned counts[2]; }
extern "C" __global__ void one(const float* x, float* y) { y[0] = x[0] * weights[0]; }
extern "C" __global__ void two(int n) { atomicAdd(&n::counts[0], n); assert(n > 0); }
__global__ void inner(int n) {}
`;

const textOf = (source: string): ModuleSource => cudaModule(source)[MODULE];

function refusal(run: () => unknown): ArgumentError {
  try {
    run();
  } catch (error) {
    if (error instanceof ArgumentError) return error;
    throw error;
  }
  throw new Error('It is accepted.');
}

test('a variable without a predictable symbol is rejected for every device', () => {
  const text = textOf(`
static __device__ int own;
namespace a { static __device__ int inner; namespace { __constant__ int nameless[2]; } __device__ int outer; }
extern "C" __global__ void k(int* out) { out[0] = own + a::inner + a::nameless[0] + a::outer; }`);
  expect(text.variableNames).toEqual(['own', 'a::outer']);
  expect(text.variable('own', 'i32', [1]).name).toBe('own');
  for (const name of ['a::inner', 'a::nameless']) {
    expect(refusal(() => text.variable(name, 'i32', [name === 'a::inner' ? 1 : 2])).message).toContain('is static in a namespace');
  }
});

test('a module lists its kernels and variables', () => {
  const module = cudaModule(SOURCE);
  expect(module.source).toBe(SOURCE);
  expect(JSON.parse(JSON.stringify(module))).toEqual({ kernels: ['one', 'two', 'inner'], globals: ['weights', 'n::counts'] });
  expect(module[MODULE].build.name).toBe('one, two, inner');
});

test('its kernels are built from its source as a module', () => {
  const module = cudaModule(SOURCE, { options: ['-DN=3'] });
  const one = module.kernel('one', { x: input(f32), y: output(f32) });
  expect(one).toMatchObject({ name: 'one', source: SOURCE, abi: 'plain', module: module[MODULE] });
  const shared = { source: SOURCE, isModule: true, isAsserting: true, options: ['-DN=3'], isBounded: false };
  expect(one.build).toMatchObject({ ...shared, entry: 'one', name: 'one' });
  expect(module[MODULE].build).toMatchObject({ ...shared, entry: '', name: 'one, two, inner' });
  expect(refusal(() => module.kernel('one', { x: input(f32), y: i32 })).argument).toBe('params.y');
  expect(module.kernel('inner', { n: i32 }).build).toMatchObject({ entry: 'inner', path: 'inner' });
  expect(() => module.kernel('three', { n: i32 })).toThrow(CompileError);
});

describe('variables', () => {
  test('are compared with the source', () => {
    const text = textOf(SOURCE);
    expect(text.variable('weights', 'f32', [3])).toEqual({ name: 'weights', isConstant: true });
    expect(text.variable('weights', 'f32', [1, 3])).toEqual({ name: 'weights', isConstant: true });
    expect(text.variable('n::counts', 'u32', [2])).toEqual({ name: 'n::counts', isConstant: false });
    expect(refusal(() => text.variable('weights', 'f32', [2]))).toMatchObject({ argument: 'shape', value: [2], limit: 12 });
    expect(refusal(() => text.variable('weights', 'i32', [3]))).toMatchObject({ argument: 'dtype', value: 'i32', limit: 'f32' });
    expect(refusal(() => text.variable('fixed', 'i32', [1])).message).toContain('const');
    expect(refusal(() => text.variable('counts', 'u32', [2]))).toMatchObject({ argument: 'name', value: 'counts' });
    expect(refusal(() => text.variable('one', 'u32', [2])).limit).toEqual(['weights', 'n::counts']);
    expect(refusal(() => text.variable(7 as never, 'u32', [2])).argument).toBe('name');
  });

  test('that a macro may declare are left to the image, others are not', () => {
    const text = textOf('#define V(name) __device__ int name;\nV(made)\n__device__ int plain; extern __device__ int elsewhere;');
    expect(text.variable('made', 'i32', [1])).toEqual({ name: 'made', isConstant: false });
    expect(text.variable('elsewhere', 'i32', [1])).toEqual({ name: 'elsewhere', isConstant: false });
    for (const name of ['missing', 'ma.e', 'n::', ''])
      expect(refusal(() => text.variable(name, 'i32', [1])).message).toContain('The source has plain.');
    expect(refusal(() => textOf('int x;').variable('x', 'i32', [1])).message).toContain(
      'The source has no variable that global() can return.',
    );
  });

  test('that the preprocessor selects are left to the image', () => {
    const text = textOf('#ifdef WIDE\n__device__ double x[2];\n#else\n__device__ float x[2];\n#endif');
    expect(text.variable('x', 'f64', [2])).toEqual({ name: 'x', isConstant: false });
    expect(text.variable('x', 'f32', [2])).toEqual({ name: 'x', isConstant: false });
  });
});

test('managed variables become those of the device, in comments and strings nothing changes', () => {
  const source = '/* __managed__ */ __managed__ int a; __device__ __managed__ float b[2]; // __managed__\n#define M __managed__\nM int c;';
  expect(withoutManaged(source)).toBe(
    '/* __managed__ */ __device__  int a; __device__ __device__  float b[2]; // __managed__\n#define M __device__ \nM int c;',
  );
  expect(textOf(source).variable('b', 'f32', [2])).toEqual({ name: 'b', isConstant: false });
});

test('sources that are not strings, and bad options', () => {
  expect(refusal(() => cudaModule(3 as never)).argument).toBe('source');
  expect(refusal(() => cudaModule('', { options: 'fast' as never })).argument).toBe('options');
  expect(refusal(() => cudaModule('', null as never)).argument).toBe('opts');
});
