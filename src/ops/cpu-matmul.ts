// Products of matrices on a CPU device: each core keeps the sums of 12 rows and 128 bytes of columns in vector registers while it goes through the
// common axis. Operands are first copied to such tiles, in the order in which they are read, unless they are used too few times.
import type { DeviceArray } from '../core/api/array.js';
import { Arguments } from './body.js';
import type { Target } from './target.js';

/** Rows of a tile: as many sums as fit in the registers of processors that have 32. Those with 16 take half of them at a time. */
const TILE_ROWS = 12;
const FEW_ROWS = 6;
/** The columns of a tile: two vectors of the widest processors. */
const TILE_BYTES = 128;
/** Tiles of a block, one below the other, which use the same columns of the right operand; fewer where there would not be so many blocks. */
const GROUP = 4;
const LEAST_BLOCKS = 32;
/** Steps after which a block goes to its next tile, so that the columns that all its tiles use stay in the core's second cache. */
const DEPTH = 1024;
/** Operands that fewer tiles use are read where they are. */
const LEAST_USES = 8;
/** Products of fewer columns for each row are not turned. */
const LEAST_TURNED = 4;
/** Steps that a block copies. */
const COPIED = 256;
/** Products of fewer multiplications are made by the kernel of all devices, and those of fewer rows by sums of vectors. */
export const LEAST_WORK: number = 2 ** 13;
export const LEAST_ROWS: number = 4;
const MOST_BATCHES = 65535;
const MOST_ELEMENTS = 2 ** 31 - 1;

/** A matrix of an operand, and how far the next one of the batch is; 0: there is none. */
export interface Matrix {
  readonly array: DeviceArray;
  readonly strides: readonly [row: number, column: number];
  readonly step: number;
}

export interface Product {
  readonly a: Matrix;
  readonly b: Matrix;
  readonly rows: number;
  readonly columns: number;
  readonly inner: number;
  readonly batches: number;
}

interface Tiles {
  readonly array: DeviceArray;
  readonly isPacked: boolean;
  /** From element to element along the common axis, from tile to tile, and from matrix to matrix. */
  readonly steps: readonly [inner: number, tile: number, batch: number];
}

/** Whether `multiplyOnCpu` makes the product; all operands and the result have one type, f32 or f64. */
export function isForCpu({ a, b, rows, columns, inner, batches }: Product): boolean {
  if (rows < LEAST_ROWS || inner === 0 || rows * columns * inner < LEAST_WORK) return false;
  const width = widthOf(a.array);
  const elements = (tiles: number, size: number, step: number): number => tiles * size * inner * (step === 0 ? 1 : batches);
  const most = Math.max(
    elements(Math.ceil(rows / TILE_ROWS), TILE_ROWS, a.step),
    elements(Math.ceil(columns / width), width, b.step),
    rows * columns * batches,
  );
  // Narrow products would be mostly tiles that are filled up with zeros.
  return most <= MOST_ELEMENTS && (columns >= width / 2 || rows >= TILE_ROWS * GROUP);
}

/**
 * Whether the transposed product, of the operands in turn, takes less time: few rows by many columns that each lie in one line, as in `queries @ points.T`.
 * As rows of the left operand they are read where they are, and the result, which is turned back, is smaller than their copy in tiles. Each sum has the same order.
 */
function isSoonerTurned({ a, b, rows, columns, inner, batches }: Product): boolean {
  const width = widthOf(a.array);
  const isFew = Math.ceil(rows / width) < LEAST_USES && columns >= LEAST_TURNED * rows && inner >= 2 * rows;
  return isFew && b.strides[0] === 1 && b.strides[1] !== 1 && isForCpu({ a: b, b: a, rows: columns, columns: rows, inner, batches });
}

const widthOf = ({ dtype }: DeviceArray): number => TILE_BYTES / (dtype === 'f64' ? 8 : 4);

/** Submits the product. `result` is contiguous and shares no memory with the operands. */
export function multiplyOnCpu(product: Product, result: DeviceArray, target: Target): void {
  const { a, b, rows, columns, inner, batches } = product;
  const width = widthOf(a.array);
  if (isSoonerTurned(product)) {
    using turned = target.temporary([batches, columns, rows], result.dtype);
    const from = (matrix: Matrix): Matrix => ({ ...matrix, strides: [matrix.strides[1], matrix.strides[0]] });
    multiplyOnCpu({ a: from(b), b: from(a), rows: columns, columns: rows, inner, batches }, turned, target);
    target.recorder.copy(result.reshape([batches, rows, columns]), turned.transpose([0, 2, 1]));
    return;
  }
  const [rowTiles, columnTiles] = [Math.ceil(rows / TILE_ROWS), Math.ceil(columns / width)];
  const readsLeft = columnTiles < LEAST_USES && a.strides[1] === 1;
  const readsRight = rowTiles <= GROUP && b.strides[1] === 1 && columns >= width;
  using leftCopy = readsLeft ? undefined : packed(a, rows, a.strides[0], a.strides[1], TILE_ROWS, product, target);
  using rightCopy = readsRight ? undefined : packed(b, columns, b.strides[1], b.strides[0], width, product, target);
  const left: Tiles =
    leftCopy === undefined
      ? { array: a.array, isPacked: false, steps: [a.strides[0], a.strides[0] * TILE_ROWS, a.step] }
      : tilesOf(leftCopy, TILE_ROWS, rowTiles, inner, a.step);
  const right: Tiles =
    rightCopy === undefined
      ? { array: b.array, isPacked: false, steps: [b.strides[0], width, b.step] }
      : tilesOf(rightCopy, width, columnTiles, inner, b.step);
  const args = new Arguments();
  const aFirst = args.array('a', left.array);
  const bFirst = args.array('b', right.array);
  args.array('y', result, 'output');
  const [aInner, aTile, aBatch] = left.steps;
  const [bInner, bTile, bBatch] = right.steps;
  args.numbers({ aFirst, aInner, aTile, aBatch, bFirst, bInner, bTile, bBatch, rows, columns, inner, batches });
  const group = Math.max(1, Math.min(GROUP, Math.floor((rowTiles * columnTiles * batches) / LEAST_BLOCKS)));
  args.numbers({ group, isLeftPacked: Number(left.isPacked), isRightPacked: Number(right.isPacked) });
  const { dtype } = result;
  const grid = [Math.ceil(rowTiles / group) * columnTiles, Math.min(batches, MOST_BATCHES)] as const;
  args.launchCuda(target.recorder, 'matmul', '', grid, 1, 'multiplyTiles', () => multiplyText(dtype));
}

function tilesOf(array: DeviceArray, size: number, tiles: number, inner: number, step: number): Tiles {
  return { array, isPacked: true, steps: [size, size * inner, step === 0 ? 0 : size * inner * tiles] };
}

/** A copy in tiles: `[batch][tile][inner][size]`, filled up with zeros. */
function packed(
  { array, step }: Matrix,
  length: number,
  stride: number,
  innerStride: number,
  size: number,
  { inner, batches }: Product,
  target: Target,
): DeviceArray {
  const tiles = Math.ceil(length / size);
  const count = step === 0 ? 1 : batches;
  const copy = target.temporary([count * tiles * inner * size], array.dtype);
  const args = new Arguments();
  const first = args.array('x', array);
  args.array('y', copy, 'output');
  args.numbers({ first, stride, innerStride, step, length, inner, tiles, batches: count });
  const { dtype } = array;
  const grid = [tiles * Math.ceil(inner / COPIED), Math.min(count, MOST_BATCHES)] as const;
  args.launchCuda(target.recorder, 'matmul', `${size}`, grid, 1, 'packTiles', () => packText(dtype, size));
  return copy;
}

const elementText = (dtype: string): string => `typedef ${dtype === 'f64' ? 'double' : 'float'} Element;`;

function packText(dtype: string, size: number): string {
  return `${elementText(dtype)}
extern "C" __global__ void packTiles(const Element* x, Element* y, const int first, const int stride, const int innerStride, const int step,
    const int length, const int inner, const int tiles, const int batches) {
  const int tile = blockIdx.x % tiles, from = blockIdx.x / tiles * ${COPIED}, end = from + min(${COPIED}, inner - from);
  const int filled = min(${size}, length - tile * ${size});
  for (int z = blockIdx.y; z < batches; z += gridDim.y) {
    const Element* source = x + first + (long long)z * step + (long long)tile * ${size} * stride;
    Element* goal = y + ((long long)z * tiles + tile) * inner * ${size};
    if (filled < ${size}) {
      for (int k = from; k < end; k++) {
        for (int n = 0; n < ${size}; n++) goal[(long long)k * ${size} + n] = n < filled ? source[(long long)n * stride + (long long)k * innerStride] : Element(0);
      }
    } else if (stride == 1) {
      for (int k = from; k < end; k++) {
        for (int n = 0; n < ${size}; n++) goal[(long long)k * ${size} + n] = source[(long long)k * innerStride + n];
      }
    } else {
      for (int n = 0; n < ${size}; n++) {
        const Element* row = source + (long long)n * stride;
        if (innerStride == 1) for (int k = from; k < end; k++) goal[(long long)k * ${size} + n] = row[k];
        else for (int k = from; k < end; k++) goal[(long long)k * ${size} + n] = row[(long long)k * innerStride];
      }
    }
  }
}
`;
}

/** `tile` of so many rows: its left operand is packed, or has rows that lie \`aInner\` apart. */
function tileText(rows: number, isPacked: boolean): string {
  const each = Array.from({ length: rows }, (_, row) => row);
  const lines = (text: (row: number) => string): string => each.map(text).join(' ');
  const from = (row: number): string => (isPacked ? `a[${row}]` : `a${row}[k]`);
  return `
__device__ __forceinline__ void ${isPacked ? 'packedTile' : 'readTile'}(const Element* a, const int aInner, const Element* b, const int bInner, Element* y, const int columns,
    const int count, const int rows, const int begin, const int end, const bool isFirst) {
  ${isPacked ? '' : lines((row) => `const Element* a${row} = a + (long long)min(${row}, rows - 1) * aInner;`)}
  ${lines((row) => `Vector c${row} = {}, d${row} = {};`)}
  if (!isFirst) { ${lines((row) => `if (${row} < rows) readSums(y + (long long)${row} * columns, c${row}, d${row}, begin, end);`)} }
  for (int k = 0; k < count; k++) {
    const Vector left = *(const Vector*)b, right = *(const Vector*)(b + LANES);
    ${lines((row) => `c${row} += ${from(row)} * left; d${row} += ${from(row)} * right;`)}
    b += bInner; ${isPacked ? `a += ${TILE_ROWS};` : ''}
  }
  ${lines((row) => `if (${row} < rows) writeSums(y + (long long)${row} * columns, c${row}, d${row}, begin, end);`)}
}`;
}

function multiplyText(dtype: string): string {
  return `${elementText(dtype)}
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES (BYTES / (int)sizeof(Element))
#define WIDTH (${TILE_BYTES} / (int)sizeof(Element))
typedef Element Vector __attribute__((vector_size(BYTES), aligned(sizeof(Element))));

/* Of a vector, columns begin to end alone: at an edge of the matrix. Functions that are called, because g++ took ten seconds for the copies in each row. */
__device__ __noinline__ Vector readPart(const Element* y, const int begin, const int end) {
  Vector some = {};
  for (int n = max(begin, 0); n < min(end, LANES); n++) some[n] = y[n];
  return some;
}
__device__ __noinline__ void writePart(Element* y, const Vector some, const int begin, const int end) {
  for (int n = max(begin, 0); n < min(end, LANES); n++) y[n] = some[n];
}
/* The sums of columns begin to end of two vectors. */
__device__ __forceinline__ void readSums(const Element* y, Vector& left, Vector& right, const int begin, const int end) {
  if (begin <= 0 && end >= 2 * LANES) { left = *(const Vector*)y; right = *(const Vector*)(y + LANES); return; }
  left = readPart(y, begin, end);
  right = readPart(y + LANES, begin - LANES, end - LANES);
}
__device__ __forceinline__ void writeSums(Element* y, const Vector left, const Vector right, const int begin, const int end) {
  if (begin <= 0 && end >= 2 * LANES) { *(Vector*)y = left; *(Vector*)(y + LANES) = right; return; }
  writePart(y, left, begin, end);
  writePart(y + LANES, right, begin - LANES, end - LANES);
}
#if BYTES == 32
#define ROWS ${FEW_ROWS}${tileText(FEW_ROWS, true)}${tileText(FEW_ROWS, false)}
#else
#define ROWS ${TILE_ROWS}${tileText(TILE_ROWS, true)}${tileText(TILE_ROWS, false)}
#endif

extern "C" __global__ void multiplyTiles(const Element* a, const Element* b, Element* y, const int aFirst, const int aInner, const int aTile, const int aBatch,
    const int bFirst, const int bInner, const int bTile, const int bBatch, const int rows, const int columns, const int inner, const int batches,
    const int group, const int isLeftPacked, const int isRightPacked) {
  const int tiles = (columns + WIDTH - 1) / WIDTH, column = blockIdx.x % tiles, top = blockIdx.x / tiles * group * ${TILE_ROWS};
  const int bottom = min(rows, top + group * ${TILE_ROWS});
  /* Columns that are read where they are end with the matrix: the last tile begins before it, and writes only its end. */
  const int leftmost = isRightPacked ? column * WIDTH : min(column * WIDTH, columns - WIDTH), ahead = column * WIDTH - leftmost;
  for (int z = blockIdx.y; z < batches; z += gridDim.y) {
    const Element* from = b + bFirst + (long long)z * bBatch + (isRightPacked ? (long long)column * bTile : (long long)leftmost);
    Element* goal = y + (long long)z * rows * columns + leftmost;
    for (int k = 0; k < inner; k += ${DEPTH}) {
      const int count = min(${DEPTH}, inner - k);
      for (int row = top; row < bottom; row += ROWS) {
        const int tile = row / ${TILE_ROWS}, rest = row % ${TILE_ROWS};
        const Element* left = a + aFirst + (long long)z * aBatch + (long long)tile * aTile;
        for (int part = 0; part < WIDTH; part += 2 * LANES) {
          const Element* right = from + part + (long long)k * bInner;
          Element* sums = goal + (long long)row * columns + part;
          const int begin = ahead - part, end = columns - leftmost - part;
          if (end <= 0) break;
          if (isLeftPacked) packedTile(left + (long long)k * ${TILE_ROWS} + rest, 0, right, bInner, sums, columns, count, min(ROWS, rows - row), begin, end, k == 0);
          else readTile(left + (long long)rest * aInner + k, aInner, right, bInner, sums, columns, count, min(ROWS, rows - row), begin, end, k == 0);
        }
      }
    }
  }
}
`;
}
