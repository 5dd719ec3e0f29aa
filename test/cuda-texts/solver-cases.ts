// Idioms of solvers: factors by tiles, sparse products, conjugate gradients.
import { f32, f64, i32, inout, input, output, struct, u64 } from 'millrace';
import { doubles, floats, ints, type TextCase } from './text-case.js';

const entry = (i: number): number => ((i * 7919) % 23) / 8 - 1;

// ── a step of a factorisation: tiles of 16 rows, the second of three ──
const [TILE, DIM, OFFSET] = [16, 48, 16];
const [diagonal, border, rest] = [0, 1, 2] as const;
/** The matrix after the first phases of the step. */
function factored(phases: number): Float32Array {
  const m = Array.from({ length: DIM * DIM }, (_unused, i) => entry(i) + (i % (DIM + 1) === 0 ? 30 : 0));
  const at = (row: number, column: number): number => (OFFSET + row) * DIM + OFFSET + column;
  const size = DIM - OFFSET;
  for (let k = 0; k < TILE; k++) {
    for (let row = k + 1; row < size; row++) {
      const isRowBelow = row >= TILE;
      if (isRowBelow ? phases <= border : phases <= diagonal) continue;
      m[at(row, k)]! /= m[at(k, k)]!;
      for (let column = k + 1; column < size; column++) {
        const phase = isRowBelow && column >= TILE ? rest : isRowBelow || column >= TILE ? border : diagonal;
        if (phase < phases) m[at(row, column)]! -= m[at(row, k)]! * m[at(k, column)]!;
      }
    }
  }
  return Float32Array.from(m);
}
function phaseCase(phase: number, kernel: string, launch: TextCase['launch']): TextCase {
  return {
    file: 'linear-algebra/lu-tiles',
    kernel,
    params: { m: inout(f32), dim: i32, offset: i32 },
    launch,
    given: { m: factored(phase), dim: DIM, offset: OFFSET },
    results: { m: factored(phase + 1) },
    tolerance: 1e-5,
  };
}

// ── a sparse matrix: 3 entries of each row in columns, the others in a list ──
const [ROWS, WIDTH, PITCH, COLUMNS] = [90, 3, 96, 70];
const rowLengths = ints(ROWS, (row) => (row % 10 === 4 ? 40 : row % 5));
const columnOf = (row: number, k: number): number => (row * 11 + k * 7) % COLUMNS;
const valueOf = (row: number, k: number): number => entry(row * 5 + k);
const x = doubles(COLUMNS, (i) => entry(3 * i + 1));
const ellColumns = ints(PITCH * WIDTH, (at) => {
  const [row, k] = [at % PITCH, Math.floor(at / PITCH)];
  return row < ROWS && k < rowLengths[row]! ? columnOf(row, k) : -1;
});
const ellValues = doubles(PITCH * WIDTH, (at) => valueOf(at % PITCH, Math.floor(at / PITCH)));
const list = [...rowLengths].flatMap((length, row) =>
  Array.from({ length: Math.max(0, length - WIDTH) }, (_unused, i): readonly [number, number] => [row, i + WIDTH]),
);
const products = (row: number, from: number, to: number): number => {
  let sum = 0;
  for (let k = from; k < Math.min(to, rowLengths[row]!); k++) sum += valueOf(row, k) * x[columnOf(row, k)]!;
  return sum;
};
const old = doubles(ROWS, (row) => entry(row + 9));

// ── a system of equations, like that of a plate with 8 x 9 points ──
const [PLATE_X, PLATE_Y, MOST] = [8, 9, 12];
const N = PLATE_X * PLATE_Y;
const neighbours = (i: number): number[] => [
  ...(i >= PLATE_X ? [i - PLATE_X] : []),
  ...(i % PLATE_X > 0 ? [i - 1] : []),
  i,
  ...(i % PLATE_X < PLATE_X - 1 ? [i + 1] : []),
  ...(i + PLATE_X < N ? [i + PLATE_X] : []),
];
const plate = Array.from({ length: N }, (_unused, i) => neighbours(i));
const rowStarts = ints(N + 1, (i) => plate.slice(0, i).reduce((sum, row) => sum + row.length, 0));
const plateColumns = Int32Array.from(plate.flat());
const plateValues = Float32Array.from(plate.flatMap((row, i) => row.map((j) => (j === i ? 6 : -1))));
const times = (v: ArrayLike<number>): number[] => plate.map((row, i) => row.reduce((sum, j) => sum + (j === i ? 6 : -1) * v[j]!, 0));
const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
const [guess, goal] = [floats(N, (i) => entry(i) / 4), floats(N, (i) => entry(5 * i))];
function solved(): { x: number[]; r: number[] } {
  const found = [...guess];
  const first = times(found);
  const r = [...goal].map((v, i) => v - first[i]!);
  let p = [...r];
  for (let k = 0; k < MOST; k++) {
    const ap = times(p);
    const before = dot(r, r);
    const alpha = before / dot(p, ap);
    for (let i = 0; i < N; i++) {
      found[i]! += alpha * p[i]!;
      r[i]! -= alpha * ap[i]!;
    }
    const beta = dot(r, r) / before;
    p = p.map((v, i) => r[i]! + beta * v);
  }
  return { x: found, r };
}

export const SOLVER_CASES: readonly TextCase[] = [
  phaseCase(diagonal, 'factor_diagonal', { grid: 1, block: TILE }),
  phaseCase(border, 'factor_border', { grid: 1, block: 2 * TILE }),
  phaseCase(rest, 'update_rest', { grid: [1, 1], block: [TILE, TILE] }),
  {
    file: 'linear-algebra/spmv-hybrid',
    kernel: 'spmv_ell<Axpby, int, double>',
    params: {
      a: struct({ rows: i32, width: i32, pitch: i32, columns: input(i32), values: input(f64) }),
      x: input(f64),
      y: inout(f64),
    },
    launch: { grid: 2, block: 64 },
    given: { a: { rows: ROWS, width: WIDTH, pitch: PITCH, columns: ellColumns, values: ellValues }, x, y: old },
    results: { y: old.map((v, row) => v / 2 + products(row, 0, WIDTH)) },
    tolerance: 1e-13,
  },
  {
    file: 'linear-algebra/spmv-hybrid',
    kernel: 'spmv_coo<3, int, float>',
    params: { a: struct({ entries: u64, rows: input(i32), columns: input(i32), values: input(f32) }), x: input(f32), y: inout(f32) },
    launch: { grid: Math.ceil(list.length / 192), block: 64 },
    given: {
      a: {
        entries: list.length,
        rows: Int32Array.from(list, ([row]) => row),
        columns: Int32Array.from(list, ([row, k]) => columnOf(row, k)),
        values: Float32Array.from(list, ([row, k]) => valueOf(row, k)),
      },
      x: Float32Array.from(x),
      y: Float32Array.from(old),
    },
    results: { y: floats(ROWS, (row) => old[row]! + products(row, WIDTH, Infinity)) },
    // Sums of 37 products of f32 in another order.
    tolerance: 1e-5,
  },
  {
    file: 'linear-algebra/conjugate-gradient',
    kernel: 'solve',
    params: {
      a: struct({ rows: input(i32), columns: input(i32), values: input(f32), n: i32 }),
      x: inout(f32),
      r: inout(f32),
      p: inout(f32),
      ap: inout(f32),
      tolerance: f32,
      most: i32,
      residuals: output(f64),
      iterations: output(i32),
    },
    launch: { grid: 2, block: 64, sharedBytes: 16, cooperative: true },
    given: {
      a: { rows: rowStarts, columns: plateColumns, values: plateValues, n: N },
      x: guess,
      r: goal,
      p: new Float32Array(N),
      ap: new Float32Array(N),
      tolerance: 1e-9,
      most: MOST,
      residuals: new Float64Array(MOST),
      iterations: new Int32Array(1),
    },
    results: { x: Float32Array.from(solved().x), r: Float32Array.from(solved().r), iterations: Int32Array.of(MOST) },
    // Rounding to f32 in each of the steps, of a matrix with a condition below 5.
    tolerance: 1e-5,
  },
];
