// What libraries of the machine may do in the place of kernels, as the words that native/hal/library_plan.h reads.
import { PLAN_TYPES } from '../core/channel/build-spec.js';
import type { DType } from '../core/elements/dtype.js';
import type { Kernel } from '../core/kernels/kernel.js';

/** Strides and sizes of a plan are ints. */
const MOST = 2 ** 31 - 1;
/** Plans stay as long as their device is open. A program with more shapes multiplies further ones by its own kernel. */
const MOST_PLANS = 16384;

let plans = 0;

/** A kernel whose place a library may take: the same in all but its build. */
export function plannedKernel(kernel: Kernel, plan: Float64Array): Kernel {
  if (plans >= MOST_PLANS) return kernel;
  plans++;
  return Object.freeze(Object.create(kernel, { build: { value: { ...kernel.build, plan } } })) as Kernel;
}

/** Products of matrices: hal::MatmulPlan. */
export interface MatmulFacts {
  /** The element type of both operands. */
  readonly own: DType;
  /** The element type of the result. */
  readonly dtype: DType;
  readonly isTf32: boolean;
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
  readonly batches: number;
  readonly a: MatrixFacts;
  readonly b: MatrixFacts;
  /** The number of the result among the kernel's parameters. */
  readonly result: number;
}
export interface MatrixFacts {
  /** Its number among the kernel's parameters. */
  readonly param: number;
  /** In elements, of rows and of columns. */
  readonly strides: readonly number[];
  /** Elements from one matrix to the next. */
  readonly step: number;
}

/** Undefined for products that no library makes: of integers, of other layouts, and without elements to add. */
export function matmulPlan(facts: MatmulFacts): Float64Array | undefined {
  const { own, dtype, isTf32, columns, inner, a, b, result } = facts;
  const type = PLAN_TYPES.indexOf(own as never);
  const isHalf = own === 'f16' || own === 'bf16';
  if (type < 0 || !(dtype === own || (isHalf && dtype === 'f32')) || inner === 0) return undefined;
  // One matrix on the right, and rows in one line on the left: one product with all rows.
  const isOne = b.step === 0 && a.strides[1] === 1 && a.step === facts.rows * a.strides[0]!;
  const [rows, batches] = isOne ? [facts.rows * facts.batches, 1] : [facts.rows, facts.batches];
  const left = layoutOf(rows, inner, a);
  const right = layoutOf(inner, columns, b);
  if (left === undefined || right === undefined) return undefined;
  const words = [0, type, PLAN_TYPES.indexOf(dtype as never), Number(isTf32 && own === 'f32'), rows, columns, inner, batches];
  words.push(...left, ...right, result);
  return wordsOf(words);
}

/** Fourier transforms: hal::TransformPlan. */
export interface TransformFacts {
  readonly type: 'f32' | 'f64';
  readonly kind: (typeof FORMS)[number];
  readonly isInverse: boolean;
  readonly lengths: readonly number[];
  readonly outer: number;
  readonly inner: number;
  /** The numbers of both arrays among the kernel's parameters. */
  readonly operand: number;
  readonly result: number;
}

/** In the order of hal::TransformForm. */
const FORMS = ['complex', 'real', 'hermitian'] as const;
const MOST_LENGTHS = 3;

/** Undefined for transforms that are too large for a library. */
export function transformPlan({ type, kind, isInverse, lengths, outer, inner, operand, result }: TransformFacts): Float64Array | undefined {
  const all = [...lengths, ...Array.from({ length: MOST_LENGTHS - lengths.length }, () => 1)];
  return wordsOf([
    1,
    PLAN_TYPES.indexOf(type),
    FORMS.indexOf(kind),
    Number(isInverse),
    lengths.length,
    ...all,
    outer,
    inner,
    operand,
    result,
  ]);
}

function wordsOf(words: readonly number[]): Float64Array | undefined {
  return words.every((word) => word <= MOST) ? Float64Array.from(words) : undefined;
}

/** How a library reads the matrix: its parameter, whether its columns are contiguous instead of its rows, the stride between these, and the step. */
function layoutOf(rows: number, columns: number, { param, strides, step }: MatrixFacts): readonly number[] | undefined {
  const [row, column] = strides as readonly [number, number];
  if (step < 0) return undefined;
  if ((column === 1 || columns === 1) && (row >= columns || rows === 1)) return [param, 0, Math.max(row, columns), step];
  if ((row === 1 || rows === 1) && (column >= rows || columns === 1)) return [param, 1, Math.max(column, rows), step];
  return undefined;
}
