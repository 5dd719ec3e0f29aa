// Products of matrices: a tile of the result for each block, of sums that its threads keep in registers.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, i32, is16BitFloat, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { input, type Kernel, type LaunchShape, output, type Param } from '../core/kernels/kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { isForCpu, LEAST_ROWS, LEAST_WORK, type Matrix, multiplyOnCpu } from './cpu-matmul.js';
import { submitFold } from './fold.js';
import { castText, onlyArrays, placesIn, STORE_NAMES, storeText } from './fused.js';
import { broadcastShape, broadcastStrides, joined } from './layout.js';
import { matmulPlan, plannedKernel } from './plans.js';
import { promoted, type Promoted } from './promotion.js';
import type { Result, TypeOf } from './ready.js';
import { productOf } from './reductions.js';
import { astype } from './selection.js';
import { formsOf, type OpOptions, targetOf, type Target } from './target.js';

/** Threads of a block along each axis. */
const SIDE = 16;
/** Sums of a thread along each axis: as many as fit in registers, if there are tiles enough for the multiprocessors of a GPU. */
const MANY = 8;
const FEW = 4;
const LEAST_TILES = 128;
/** Steps of the sums for which a block loads operands at once. */
const DEPTH = 16;
/** CUDA's limit of blocks along z. */
const MOST_BATCHES = 65535;

/** Elements of the left operand that are widened at a time: they stay in the caches of the cores. */
const WIDENED = 2 ** 20;

/** Products are kept by the layouts of their operands, so that a call only fills in the arrays. */
const MOST_PRODUCTS = 4096;

const kernels: Map<string, Kernel> = new Map();
const products: Map<string, Product> = new Map();

/** Options of `matmul`. */
export interface MatmulOptions<D extends DType = DType> extends OpOptions<D> {
  /**
   * On GPUs with cuBLASLt, operands of f32 are rounded to 10 bits behind the binary point, which is faster (5 times on an H200): `CUBLAS_COMPUTE_32F_FAST_TF32`,
   * `torch.backends.cuda.matmul.allow_tf32`. Default false; elsewhere without effect.
   */
  readonly tf32?: boolean;
}

/**
 * The product of matrices: the last two axes are rows and columns, and the axes before them broadcast; a vector is a row on the left and a
 * column on the right, and its axis is not in the result: `numpy.matmul`, `a @ b`. Sums of f16 and bf16 are f32, others have the type of
 * the result. On a GPU cuBLASLt multiplies floats where it is installed, on a CPU device OpenBLAS where `MILLRACE_OPENBLAS` asks for it. Throws ArgumentError for operands without dimensions, for inner sizes that differ, for bool, and as every operation does.
 * @example using c = matmul(a, b); // [m, k] and [k, n] give [m, n]
 */
export function matmul<A extends DeviceArray, B extends DeviceArray, const O extends MatmulOptions = Record<never, never>>(
  a: A,
  b: B,
  opts?: O,
): Result<O, Promoted<TypeOf<A>, TypeOf<B>>> {
  if (arguments.length > 3) refuseSurplus('matmul', arguments, 3);
  return multiplied('matmul', a, b, opts) as Result<O, Promoted<TypeOf<A>, TypeOf<B>>>;
}

/** `matmul`, by the name of the operation that the caller called. */
export function multiplied(name: string, left: DeviceArray, right: DeviceArray, opts: MatmulOptions | undefined): DeviceArray {
  onlyArrays(name, [left, right]);
  const target = targetOf(name, opts, [left, right], ['tf32']);
  const isTf32 = opts?.tf32 ?? false;
  if (typeof isTf32 !== 'boolean') throw badArgument('tf32', isTf32, `The option tf32 (${show(isTf32)}) is not true or false.`);
  const own = promoted(left.dtype, right.dtype);
  for (const one of [left, right]) {
    if (one.shape.length === 0)
      throw badArgument('a', one, `The operand of ${name} (${one.label}) has no dimensions: multiply() takes numbers.`);
  }
  if (own === 'bool') throw badArgument('dtype', own, `The operation ${name} is not defined for elements of bool.`);
  const inner = left.shape.at(-1) as number;
  const rightInner = right.shape.at(right.shape.length === 1 ? -1 : -2) as number;
  if (inner !== rightInner) {
    throw badArgument(
      'b',
      right,
      `The inner sizes of ${name} differ: ${left.label} has ${inner} columns, and ${right.label} ${rightInner} rows.`,
      inner,
    );
  }
  const rows = left.shape.length === 1 ? [] : [left.shape.at(-2) as number];
  const columns = right.shape.length === 1 ? [] : [right.shape.at(-1) as number];
  const batch = broadcastShape(name, [left.shape.slice(0, -2), right.shape.slice(0, -2)]);
  const shape = [...batch, ...rows, ...columns];
  const dtype = target.typeOf(own);
  return target.write(shape, dtype, [left, right], (result) =>
    submit({ a: left, b: right, batch, result, own: promoted(own, dtype), target }, isTf32),
  );
}

/** A product of matrices, or of a matrix and a vector, into `result`. */
interface Task {
  readonly a: DeviceArray;
  readonly b: DeviceArray;
  /** The axes before the matrices. */
  readonly batch: readonly number[];
  readonly result: DeviceArray;
  /** The type of the sums. */
  readonly own: DType;
  readonly target: Target;
}

function submit(task: Task, isTf32: boolean): void {
  const { a, b, batch, result, own, target } = task;
  if (a.shape.length === 1 || b.shape.length === 1) {
    // A vector: each result is one sum of products along a row.
    const columns = b.shape.length === 1 ? [] : [b.shape.at(-1) as number];
    const rows = a.shape.length === 1 ? [] : [a.shape.at(-2) as number];
    const shape = [...batch, ...rows, ...columns, a.shape.at(-1) as number];
    const right = b.shape.length === 1 ? b : b.transpose([...b.shape.keys()].slice(0, -2).concat([b.shape.length - 1, b.shape.length - 2]));
    submitFold(productOf(a.dtype, b.dtype, own), [a, right], shape, [shape.length - 1], result, target);
    return;
  }
  const forms = formsOf(target);
  const isOnCpu =
    forms.includes('cpu') && (multipliedByVectors(task) || multipliedByLibrary(task) || multipliedInTiles(task) || multipliedWidened(task));
  if (isOnCpu && !forms.includes('gpu')) return;
  launch(productOn(target.recorder.device.info.backend === 'cuda' ? 'gpu' : 'cpu', task, isTf32), task);
}

/** What makes the product: of a GPU, whose library may make it; of OpenBLAS; or of a CPU device without it. */
type Maker = 'gpu' | 'openblas' | 'cpu';

function productOn(maker: Maker, task: Task, isTf32: boolean): Product {
  const { a, b, result, own } = task;
  const key = [maker, isTf32, a.dtype, b.dtype, own, result.dtype, a.shape, a.strides, b.shape, b.strides].join('|');
  let product = products.get(key);
  if (product === undefined) {
    product = productFor(task, maker, isTf32);
    if (products.size >= MOST_PRODUCTS) products.clear();
    products.set(key, product);
  }
  return product;
}

function launch({ kernel, shape, args }: Product, { a, b, result, target }: Task): void {
  args['a'] = a.span[0];
  args['b'] = b.span[0];
  args['y'] = result.span[0];
  target.recorder.launch(kernel, shape, args as never);
  // So that the arrays can be collected.
  args['a'] = args['b'] = args['y'] = undefined;
}

/** Whether the product was submitted as sums of vectors, which read the larger operand once: tiles of so few rows or columns would be mostly empty. */
function multipliedByVectors({ a, b, result, ...others }: Task): boolean {
  const [rows, inner] = a.shape.slice(-2) as [number, number];
  const columns = b.shape.at(-1) as number;
  const isFew = columns === 1 || rows < LEAST_ROWS;
  if (!isFew || a.shape.length > 2 || b.shape.length > 2 || rows * columns * inner < LEAST_WORK) return false;
  if (columns === 1) submit({ a, b: b.view(undefined, 0), result: result.reshape([rows]), ...others }, false);
  else for (let row = 0; row < rows; row++) submit({ a: a.view(row), b, result: result.view(row), ...others }, false);
  return true;
}

/** Whether the product was submitted to OpenBLAS, which makes those of f32 and f64 on a device that was opened with it. */
function multipliedByLibrary(task: Task): boolean {
  const { a, b, result, own, target } = task;
  const isOfType = (own === 'f32' || own === 'f64') && [a, b, result].every(({ dtype }) => dtype === own);
  if (!isOfType || !target.recorder.core.info.libraries.some(({ name }) => name === 'OpenBLAS')) return false;
  const product = productOn('openblas', task, false);
  if (product.kernel.build.plan === undefined) return false;
  launch(product, task);
  return true;
}

/**
 * Whether the product of matrices of 16-bit floats was submitted as one of f32, as which it adds anyway: a core widens an element faster once than with
 * each use. Rows of the left operand are widened in parts, the right operand as a whole.
 */
function multipliedWidened({ a, b, result, target }: Task): boolean {
  const isOf = (array: DeviceArray): boolean => array.dtype === 'f32' || is16BitFloat(array.dtype);
  if (![a, b, result].every((array) => array.shape.length === 2 && isOf(array)) || [a, b].every(({ dtype }) => dtype === 'f32'))
    return false;
  const [[rows, inner], columns] = [a.shape as [number, number], b.shape[1]!];
  if (rows * columns * inner < LEAST_WORK || rows < LEAST_ROWS) return false;
  const { recorder: stream } = target;
  using right = widened(b, target);
  const most = Math.max(LEAST_ROWS, Math.floor(WIDENED / inner));
  for (let from = 0; from < rows; from += most) {
    const to = Math.min(rows, from + most);
    using left = widened(a.view([from, to]), target);
    const into = result.view([from, to]);
    const part = { a: left.array, b: right.array, batch: [], own: 'f32', target } as const;
    if (result.dtype === 'f32') submit({ ...part, result: into }, false);
    else {
      using sums = target.temporary(into.shape, 'f32');
      submit({ ...part, result: sums }, false);
      astype(sums, result.dtype, { stream, out: into });
    }
  }
  return true;
}

/** A matrix as one of f32, in the order in which its elements lie. */
function widened(matrix: DeviceArray, { recorder: stream }: Target): Disposable & { readonly array: DeviceArray } {
  if (matrix.dtype === 'f32') return { array: matrix, [Symbol.dispose]: () => undefined };
  const isTurned = matrix.strides[0]! < matrix.strides[1]!;
  const made = astype(isTurned ? matrix.transpose() : matrix, 'f32', { stream });
  return { array: isTurned ? made.transpose() : made, [Symbol.dispose]: () => made[Symbol.dispose]() };
}

/** Whether the product was submitted in the form for cores: that of floats of one type, with at most one axis of batches. */
function multipliedInTiles({ a, b, batch, result, own, target }: Task): boolean {
  if ((own !== 'f32' && own !== 'f64') || [a, b, result].some(({ dtype }) => dtype !== own)) return false;
  const whole = [a, b].map((array) => broadcastStrides(array, [...batch, ...array.shape.slice(-2)]));
  const { extents, strides } = joined({ extents: batch, strides: whole.map((steps) => steps.slice(0, -2)) });
  if (extents.length > 1) return false;
  const matrix = (array: DeviceArray, at: 0 | 1): Matrix => {
    const [row, column] = whole[at]!.slice(-2) as [number, number];
    return { array, strides: [row, column], step: strides[at]![0] ?? 0 };
  };
  const [rows, inner] = a.shape.slice(-2) as [number, number];
  const product = { a: matrix(a, 0), b: matrix(b, 1), rows, columns: b.shape.at(-1) as number, inner, batches: lengthOf(batch) };
  if (!isForCpu(product)) return false;
  multiplyOnCpu(product, result, target);
  return true;
}

/** The launch of a product, for one layout of its operands. */
interface Product {
  readonly kernel: Kernel;
  readonly shape: LaunchShape;
  /** By the kernel's parameters in their order; the arrays are those of the last launch. */
  readonly args: Record<string, unknown>;
}

function productFor({ a, b, batch, result: { dtype }, own }: Task, maker: Maker, isTf32: boolean): Product {
  const inner = a.shape.at(-1) as number;
  const [rows, columns] = [a.shape.at(-2) as number, b.shape.at(-1) as number];
  const whole = [a, b].map((array) => broadcastStrides(array, [...batch, ...array.shape.slice(-2)]));
  const { extents, strides } = joined({ extents: batch, strides: whole.map((steps) => steps.slice(0, -2)) });
  const params: Record<string, Param> = {};
  const args: Record<string, unknown> = {};
  /** The number of each parameter among those of the compiled kernel, in which an array has its length besides. */
  const numbers: Record<string, number> = {};
  let next = 0;
  const give = (name: string, param: Param, value?: number): void => {
    params[name] = param;
    args[name] = value;
    numbers[name] = next;
    next += param.kind === 'array' ? 2 : 1;
  };
  const places = [a, b].map((array, at) => {
    const name = at === 0 ? 'a' : 'b';
    give(name, input(scalarOf(array.dtype)));
    const terms = [`${name}First`];
    give(`${name}First`, i32, array.span[1]);
    for (const [axis, stride] of strides[at]!.entries()) {
      if (stride === 0) continue;
      give(`${name}Step${axis}`, i32, stride);
      terms.push(`z${axis} * ${name}Step${axis}`);
    }
    const [rowStride, columnStride] = whole[at]!.slice(-2) as [number, number];
    // What is 1 is written into the kernel, so that compilers see neighbours.
    const along = (place: string, stride: number, axis: string): string => {
      if (stride === 1) return place;
      give(`${name}${axis}`, i32, stride);
      return `${place} * ${name}${axis}`;
    };
    return {
      base: terms.join(' + '),
      element: (row: string, column: string) =>
        `${name}[${name}Base + ${along(row, rowStride, 'Row')} + ${along(column, columnStride, 'Column')}]`,
    };
  }) as [Place, Place];
  for (const [axis, extent] of extents.entries()) if (axis > 0) give(`e${axis}`, i32, extent);
  const type = REGISTER_TYPE[own];
  const load = (at: 0 | 1, row: string, column: string): string =>
    castText(places[at].element(row, column), REGISTER_TYPE[[a, b][at]!.dtype], type);
  const [fromA, fromB] = [load(0, 'row', 'step'), load(1, 'step', 'column')];
  const batches = lengthOf(extents);
  for (const [name, value] of Object.entries({ rows, columns, inner, batches })) give(name, i32, value);
  give('y', output(scalarOf(dtype)));
  const manyTiles = Math.floor(columns / (SIDE * MANY)) * Math.floor(rows / (SIDE * MANY)) * batches;
  const each = maker === 'gpu' && manyTiles >= LEAST_TILES ? MANY : FEW;
  const tile = SIDE * each;
  const key = [each, a.dtype, b.dtype, own, dtype, fromA, fromB, places[0].base, places[1].base].join('|');
  let kernel = kernels.get(key);
  if (kernel === undefined) {
    const store = (to: string, value: string): string => storeText(to, value, type, dtype);
    const text = textOf(each, Object.keys(params), type, extents.length, places, fromA, fromB, store);
    kernel = kernelOfText('matmul', params, text, new Map(), { file: undefined, line: 0 });
    kernels.set(key, kernel);
  }
  // Libraries add products of 16-bit numbers in f32.
  const isOwn = a.dtype === own || (own === 'f32' && is16BitFloat(a.dtype));
  const plan =
    maker !== 'cpu' && a.dtype === b.dtype && isOwn && a.span[1] === 0 && b.span[1] === 0 && extents.length <= 1
      ? matmulPlan({
          own: a.dtype,
          dtype,
          isTf32,
          rows,
          columns,
          inner,
          batches,
          a: { param: numbers['a']!, strides: whole[0]!.slice(-2), step: strides[0]![0] ?? 0 },
          b: { param: numbers['b']!, strides: whole[1]!.slice(-2), step: strides[1]![0] ?? 0 },
          result: numbers['y']!,
        })
      : undefined;
  const grid = [Math.ceil(columns / tile), Math.ceil(rows / tile), Math.min(batches, MOST_BATCHES)] as const;
  return {
    kernel: plan === undefined ? kernel : plannedKernel(kernel, plan),
    shape: { grid, block: [SIDE, SIDE], label: 'matmul' },
    args,
  };
}

interface Place {
  readonly base: string;
  readonly element: (row: string, column: string) => string;
}

function textOf(
  many: number,
  names: readonly string[],
  type: string,
  axes: number,
  [a, b]: readonly [Place, Place],
  fromA: string,
  fromB: string,
  store: (to: string, value: string) => string,
): string {
  const tile = SIDE * many;
  const each = Array.from({ length: many }, (_, at) => at);
  const pairs = each.flatMap((row) => each.map((column) => [row, column] as const));
  const zero = `${type}(0)`;
  // Neighbouring threads load and store neighbours, so a thread's rows and columns lie a block's width apart.
  return `({ ${names.join(', ')} }, { threadIdx, blockIdx, gridDim, shared, syncthreads, ${STORE_NAMES}, idiv, i32, u32, i64, u64, f32, f64 }) => {
    const as = shared('${type}', [${DEPTH}, ${tile + 1}]); const bs = shared('${type}', [${DEPTH}, ${tile}]);
    const x = threadIdx.x; const t = threadIdx.y; const number = t * ${SIDE} + x;
    const top = blockIdx.y * ${tile}; const leftmost = blockIdx.x * ${tile};
    for (let z = blockIdx.z; z < batches; z += gridDim.z) {
      ${placesIn('z', axes - 1, 'z', 'e')}
      const aBase = ${a.base}; const bBase = ${b.base};
      ${pairs.map(([row, column]) => `let c${row}${column} = ${zero};`).join(' ')}
      for (let from = 0; from < inner; from += ${DEPTH}) {
        for (let l = 0; l < ${(tile * DEPTH) / SIDE ** 2}; l++) {
          const e = number + l * ${SIDE ** 2}; const step = from + e % ${DEPTH}; const row = top + idiv(e, ${DEPTH});
          let v = ${zero}; if (row < rows && step < inner) v = ${fromA};
          as[e % ${DEPTH}][idiv(e, ${DEPTH})] = v;
        }
        for (let l = 0; l < ${(tile * DEPTH) / SIDE ** 2}; l++) {
          const e = number + l * ${SIDE ** 2}; const step = from + idiv(e, ${tile}); const column = leftmost + e % ${tile};
          let v = ${zero}; if (column < columns && step < inner) v = ${fromB};
          bs[idiv(e, ${tile})][e % ${tile}] = v;
        }
        syncthreads();
        for (let k = 0; k < ${DEPTH}; k++) {
          ${each.map((at) => `const a${at} = as[k][t + ${at * SIDE}]; const b${at} = bs[k][x + ${at * SIDE}];`).join(' ')}
          ${pairs.map(([row, column]) => `c${row}${column} = c${row}${column} + a${row} * b${column};`).join(' ')}
        }
        syncthreads();
      }
      const base = z * rows * columns;
      ${pairs.map(([row, column]) => `if (top + t + ${row * SIDE} < rows && leftmost + x + ${column * SIDE} < columns) ${store(`y[base + (top + t + ${row * SIDE}) * columns + leftmost + x + ${column * SIDE}]`, `c${row}${column}`)}`).join('\n      ')}
    }
  }`;
}
