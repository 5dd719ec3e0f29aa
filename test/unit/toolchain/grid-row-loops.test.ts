// Kernels as loops over rows of threads, with random guards, compared element by element with the same kernels run thread by thread. Also
// which kernels become such loops, and of which kind.
import { beforeAll, expect, test } from 'vitest';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { rowEdits } from '../../../src/cuda-cpp/lower/grid-row-loops.js';
import { randomFrom } from '../../support/random-text.js';
import { i32, type ImageLaunch, specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const FIRST_SEED = 100;
const KERNELS = 20;
const SHAPES: readonly Pick<ImageLaunch, 'grid' | 'block'>[] = [
  { grid: [3, 2, 1], block: [16, 3, 1] },
  { grid: [7, 1, 2], block: [1, 2, 2] },
  { grid: [1, 3, 1], block: [61, 1, 1] },
];
const SIZES: readonly (readonly [n: number, m: number])[] = [
  [0, 5],
  [17, 100],
  [47, -3],
  [1000, 16],
];

/** A kernel with random guards. Each thread writes at most one element. */
function randomKernel(seed: number): string {
  const random = randomFrom(seed);
  const pick = <T>(of: readonly T[]): T => of[random(of.length)]!;
  const isOfBlock = seed % 3 === 0;
  const type = pick(['int', 'const int', 'unsigned', 'const unsigned int', 'size_t', 'auto', 'uint64_t', 'long']);
  const place = isOfBlock
    ? 'threadIdx.x'
    : pick(['blockIdx.x * blockDim.x + threadIdx.x', 'threadIdx.x + blockDim.x * blockIdx.x', 'blockDim.x*blockIdx.x+threadIdx.x']);
  const value = (): string => pick(['n', 'm', 'n - 1', 'n / 2', 'm * 2', '-1', '7u', '(unsigned)n', 'last', '0', '1', String(random(60))]);
  const atom = (): string => {
    const moved = `i ${pick(['-', '+'])} ${random(4)}`;
    const left = pick(['i', 'i', 'i', 'i', moved, 'j', 'n']);
    const sides = random(3) === 0 ? [value(), left] : [left, value()];
    return sides.join(` ${pick(['<', '>', '<=', '>=', '==', '!='])} `);
  };
  const condition = (depth: number): string => {
    if (depth === 0 || random(3) === 0) return random(5) === 0 ? `!(${atom()})` : atom();
    return `(${condition(depth - 1)} ${pick(['&&', '||'])} ${condition(depth - 1)})`;
  };
  const guards = Array.from({ length: random(4) }, (_, at) => {
    const body = pick(['return;', `{ y[at] = ${at}; return; }`, random(5) === 0 ? '{ n += 3; y[at] = n + i; return; }' : '{ return; }']);
    return `if (${condition(2)}) ${body}${random(3) === 0 ? ` const int w${at} = j * ${at} + m;` : ''}`;
  });
  const rest = pick([
    'y[at] = x[at & 63] + i;',
    `if (${condition(1)}) y[at] = i + 1000; else y[at] = x[(at + 1) & 63];`,
    `int s = 0;
  for (int k = 0; k < 3; k++) {
    if (x[(at + k) & 63] > 50) { y[at] = s; return; }
    s += x[(at + k) & 63] * (int)i;
  }
  ${random(3) === 0 ? 'for (m = 0; m < 2; m++) n += m;' : ''}
  y[at] = s + n + m;`,
  ]);
  return `extern "C" __global__ void k${seed}(const int* x, int* y, int n, int m) {
  ${type} i = ${place};
  const int j = (blockIdx.z * blockDim.z + threadIdx.z) * (gridDim.y * blockDim.y) + blockIdx.y * blockDim.y + threadIdx.y, last = n - 2;
  const int at = j * (int)(gridDim.x * blockDim.x) + ${isOfBlock ? '(int)(blockIdx.x * blockDim.x + threadIdx.x)' : '(int)i'};
  ${guards.join('\n  ')}
  ${rest}
}
`;
}

const names = Array.from({ length: KERNELS }, (_, at) => `k${FIRST_SEED + at}`);
const source = names.map((_name, at) => randomKernel(FIRST_SEED + at)).join('');
const images = imagesOfFile();
/** In both forms. */
let built: readonly string[];
beforeAll(async () => {
  built = await Promise.all((['rows', 'threads'] as const).map((form) => images.built(specOf(source, names[0]!), names, form)));
}, 60_000);

/** The form of kernel k: rows of the grid, rows of a block, or neither. */
function kindOf(text: string): string | undefined {
  return /mr_rows_of_(\w+)/.exec(rowEdits(text, tokenize(text).tokens, ['k']).edits[0]?.text ?? '')?.[1];
}

test.each(names)(
  '%s gives the same as rows and as threads',
  (name) => {
    const x = Int32Array.from({ length: 64 }, (_, i) => ((i * 7919) % 101) - 40);
    const launches = SHAPES.flatMap((shape) => {
      const count = [...shape.grid, ...shape.block].reduce((product, extent) => product * extent);
      return SIZES.map(([n, m]) => ({ shape, n, m, results: built.map(() => new Int32Array(count).fill(-7)) }));
    });
    images.runAll(
      launches.flatMap(({ shape, n, m, results }) =>
        built.map((image, form) => [image, name, shape, [x, results[form]!, i32(n), i32(m)]] as const),
      ),
    );
    for (const {
      shape,
      n,
      m,
      results: [rows, threads],
    } of launches)
      expect(rows, `${n}, ${m} in ${shape.grid.join(' x ')} blocks of ${shape.block.join(' x ')}`).toEqual(threads);
  },
  60_000,
);

test('most random kernels become loops over rows, of both kinds, and many are split by loop fission', () => {
  const { edits } = rowEdits(source, tokenize(source).tokens, names);
  const texts = edits.map(({ text }) => text);
  expect(texts.length).toBeGreaterThan(KERNELS / 2);
  expect(texts.some((text) => text.includes('mr_rows_of_block'))).toBe(true);
  expect(texts.filter((text) => text.includes('mr_same_until')).length).toBeGreaterThan(KERNELS / 4);
});

const PLACE = 'const int i = blockIdx.x * blockDim.x + threadIdx.x;';
test.each([
  ['a place on the grid', `${PLACE} y[i] = n;`, 'grid'],
  ['a place written in the subscript', 'y[blockIdx.x * blockDim.x + threadIdx.x] = n;', 'grid'],
  ['a guard', `${PLACE} if (i >= n) return; y[i] = n;`, 'grid'],
  ['the index in the block besides', `${PLACE} if (i >= n) return; y[i] = threadIdx.x;`, 'block'],
  ['the number of the block besides', `${PLACE} if (i >= n) return; y[i] = blockIdx.x;`, 'block'],
  ['a part of a longer sum', 'const int i = n * blockIdx.x * blockDim.x + threadIdx.x; y[i] = n;', undefined],
  ['a part of a product', 'const int i = blockIdx.x * blockDim.x + threadIdx.x * n; y[i] = n;', undefined],
  ['an atomic function', `${PLACE} atomicAdd(y, i);`, undefined],
  ['an atomic function behind a guard', `${PLACE} if (i >= n) return; atomicAdd(y, i);`, 'block'],
  ['one in a function that is called', `${PLACE} count(y + i);`, undefined],
  ['volatile', `${PLACE} volatile int* z = y; z[i] = n;`, undefined],
  ['printf', `${PLACE} printf("%d", i);`, undefined],
  ['a guard that reads memory, without a place', 'if (y[threadIdx.x] > n) return; y[threadIdx.x] = n;', undefined],
  ['a lambda', `${PLACE} auto f = [&] { return i; }; y[i] = f();`, undefined],
  ['static', `${PLACE} static int z = 3; y[i] = z;`, undefined],
  ['shared memory', `${PLACE} __shared__ int z[8]; z[0] = i; y[i] = z[0];`, undefined],
])('%s', (_what, body, kind) => {
  const text = `__device__ void count(int* z) { atomicAdd(z, 1); }\nextern "C" __global__ void k(int* y, int n) { ${body} }`;
  expect(kindOf(text)).toBe(kind);
});

test('no loops over rows if another function uses indices, nor with shared memory at namespace scope', () => {
  const kernel = `extern "C" __global__ void k(int* y, int n) { ${PLACE} y[i] = n; }`;
  expect(kindOf(kernel)).toBe('grid');
  expect(kindOf(`__device__ int rank() { return threadIdx.x; }\n${kernel}`)).toBe(undefined);
  expect(kindOf(`extern __shared__ int all[];\n${kernel}`)).toBe(undefined);
  expect(kindOf(`${kernel.replace('"C"', '"C++"')}\n${kernel}`)).toBe(undefined);
});
