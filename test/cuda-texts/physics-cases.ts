// Idioms of physics: particles in cells, spins on a board.
import { f32, i32, i64, i8, inout, input, output, struct, u32, u64 } from 'millrace';
import { floats, type TextCase } from './text-case.js';

const f = Math.fround;
type Vec3 = readonly [number, number, number];
const AXES = [0, 1, 2] as const;
const mod = (a: number, n: number): number => ((a % n) + n) % n;

// ── atoms near the points of a lattice in a periodic box ──
const [ATOMS, SIDE, CELLS, CAPACITY, CUTOFF2] = [216, 6, 3, 32, f(3.5)];
const positions = AXES.map((axis) =>
  floats(ATOMS, (i) => (Math.floor(i / 6 ** axis) % 6) + 0.2 * Math.sin(3 * i + axis) + 0.25 + (i % 11 === 0 ? SIDE : 0)),
);
const [xs, ys, zs] = [positions[0]!, positions[1]!, positions[2]!];
const cellOf = (i: number): number => {
  const [x, y, z] = positions.map((axis) => mod(Math.floor((axis[i]! / SIDE) * CELLS), CELLS));
  return (z! * CELLS + y!) * CELLS + x!;
};
const cellCounts = new Int32Array(CELLS ** 3);
const members = new Int32Array(CELLS ** 3 * CAPACITY);
for (let i = 0; i < ATOMS; i++) members[cellOf(i) * CAPACITY + cellCounts[cellOf(i)]!++] = i;
const [EPSILON, SIGMA2] = [1.5, f(0.81)];
function pulled(i: number): { force: number[]; energy: number } {
  const sum = { force: [0, 0, 0], energy: 0 };
  for (let j = 0; j < ATOMS; j++) {
    if (i === j) continue;
    const r = positions.map((axis) => {
      const d = axis[i]! - axis[j]!;
      return d - SIDE * Math.round(d / SIDE);
    });
    const r2 = r.reduce((total, d) => total + d * d, 0);
    if (r2 >= CUTOFF2) continue;
    const s6 = (SIGMA2 / r2) ** 3;
    for (const axis of AXES) sum.force[axis]! += ((24 * EPSILON * s6 * (2 * s6 - 1)) / r2) * r[axis]!;
    sum.energy += 2 * EPSILON * s6 * (s6 - 1);
  }
  return sum;
}
const forces = Array.from({ length: ATOMS }, (_unused, i) => pulled(i));
const atomArrays = struct({ x: inout(f32), y: inout(f32), z: inout(f32) });
const box = struct({ side: f32, inverse: f32, cells: i32 });
const atoms = { x: xs, y: ys, z: zs };
const boxOf = { side: SIDE, inverse: f(1 / SIDE), cells: CELLS };
const none = (): Float32Array => new Float32Array(ATOMS);
function lennardJones(hasEnergy: boolean): TextCase {
  return {
    file: 'physics/lennard-jones',
    kernel: `lennard_jones<${hasEnergy}>`,
    params: {
      atoms: atomArrays,
      box,
      counts: input(i32),
      members: input(i32),
      capacity: i32,
      cutoff2: f32,
      forces: atomArrays,
      energies: inout(f32),
      n: i32,
    },
    launch: { grid: 4, block: 64 },
    given: {
      atoms,
      box: boxOf,
      counts: cellCounts,
      members,
      capacity: CAPACITY,
      cutoff2: CUTOFF2,
      forces: { x: none(), y: none(), z: none() },
      energies: none(),
      n: ATOMS,
    },
    results: {
      'forces.x': floats(ATOMS, (i) => forces[i]!.force[0]!),
      'forces.y': floats(ATOMS, (i) => forces[i]!.force[1]!),
      'forces.z': floats(ATOMS, (i) => forces[i]!.force[2]!),
      energies: floats(ATOMS, (i) => (hasEnergy ? forces[i]!.energy : 0)),
    },
    // Differences of positions up to 12, to powers of 14, and sums that cancel.
    tolerance: 2e-4,
  };
}

// ── particles in a grid of 8 x 4 x 4 cells ──
const [PARTICLES, GRID, H, MASS, STIFFNESS, REST] = [400, [8, 4, 4], 0.25, 0.125, 3, 10] as const;
const particles = floats(4 * PARTICLES, (i) => {
  const [at, axis] = [i >> 2, i & 3];
  return axis === 3 ? 1 : ((at * [7919, 6101, 3253][axis]!) % 1021) / 512 / (axis === 0 ? 1 : 2) - [0.999, 0.499, 0.499][axis]!;
});
const placeOf = (i: number): Vec3 => [particles[4 * i]!, particles[4 * i + 1]!, particles[4 * i + 2]!];
const gridCell = (p: Vec3): Vec3 => AXES.map((axis) => Math.floor((p[axis] + [1, 0.5, 0.5][axis]!) / 0.25)) as unknown as Vec3;
const keyOf = ([x, y, z]: Vec3): number => mod(z, GRID[2]) * GRID[1] * GRID[0] + mod(y, GRID[1]) * GRID[0] + mod(x, GRID[0]);
const keys = Uint32Array.from({ length: PARTICLES }, (_unused, i) => keyOf(gridCell(placeOf(i))));
const byCell = Uint32Array.from([...keys.keys()].toSorted((a, b) => keys[a]! - keys[b]! || a - b));
const sortedKeys = byCell.map((i) => keys[i]!);
const sorted = floats(4 * PARTICLES, (i) => particles[4 * byCell[i >> 2]! + (i & 3)]!);
const ranges = new Uint32Array(2 * 128);
for (const [at, key] of sortedKeys.entries()) {
  if (sortedKeys[at - 1] !== key) ranges[2 * key] = at;
  ranges[2 * key + 1] = at + 1;
}
const densities = floats(2 * PARTICLES, (at) => {
  const p = placeOf(at >> 1);
  const cell = gridCell(p);
  let density = 0;
  for (let j = 0; j < PARTICLES; j++) {
    // Cells beyond an edge are those at the opposite one, whose particles are too far away.
    const q = placeOf(j);
    const r2 = Math.hypot(...AXES.map((axis) => p[axis] - q[axis])) ** 2;
    const isNear = AXES.every((axis) => [0, 1, GRID[axis] - 1].includes(mod(gridCell(q)[axis] - cell[axis], GRID[axis])));
    if (isNear && r2 < H * H) density += ((MASS * 315) / (64 * Math.PI * H ** 9)) * (H * H - r2) ** 3;
  }
  return at % 2 === 0 ? density : Math.max(0, STIFFNESS * (density - REST));
});

// ── spins ──
const [ROWS, COLUMNS, STEP] = [14, 10, 5];
const THRESHOLDS = Uint32Array.of(2 ** 32 - 1, 0, 2 ** 31, 0, 2 ** 29);
const M64 = 2n ** 64n - 1n;
function mixed(place: number, step: number): number {
  let state = (BigInt(place) * 0x9e37_79b9_7f4a_7c15n + BigInt(step) * 0xd1b5_4a32_d192_ed03n) & M64;
  state = ((state ^ (state >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & M64;
  state = ((state ^ (state >> 27n)) * 0x94d0_49bb_1331_11ebn) & M64;
  return Number(state >> 32n);
}
const spins = (by: number): Int8Array => Int8Array.from({ length: ROWS * COLUMNS }, (_unused, i) => ((i * by) % 13 < 7 ? 1 : -1));
const [mine, others] = [spins(5), spins(8)];
function flipped(isBlack: boolean): TextCase {
  const lattice = mine.map((spin, at) => {
    const [i, j] = [Math.floor(at / COLUMNS), at % COLUMNS];
    const isRight = (i % 2 === 1) === isBlack;
    const other = (row: number, column: number): number => others[mod(row, ROWS) * COLUMNS + mod(column, COLUMNS)]!;
    const gain = spin * (other(i - 1, j) + other(i, j) + other(i + 1, j) + other(i, isRight ? j + 1 : j - 1));
    return gain <= 0 || mixed(at, STEP) < THRESHOLDS[gain]! ? -spin : spin;
  });
  return {
    file: 'physics/ising-checkerboard',
    kernel: `flip_spins<${isBlack ? 'BLACK' : 'WHITE'}>`,
    params: { lattice: inout(i8), other: input(i8), thresholds: input(u32), nx: i64, ny: i64, step: u32 },
    launch: { grid: 3, block: 64 },
    given: { lattice: mine, other: others, thresholds: THRESHOLDS, nx: ROWS, ny: COLUMNS, step: STEP },
    results: { lattice },
  };
}
// Words of 16 spins, 2 of them together.
const [WORD_ROWS, PAIRS] = [5, 3];
const bit = (row: number, column: number): bigint => BigInt((mod(row, WORD_ROWS) * 7 + mod(column, 32 * PAIRS) * 5) % 3 === 0);
const nibbles = (of: (row: number, column: number) => bigint): BigUint64Array =>
  BigUint64Array.from({ length: 2 * WORD_ROWS * PAIRS }, (_unused, word) => {
    const [row, first] = [Math.floor(word / (2 * PAIRS)), 16 * (word % (2 * PAIRS))];
    return Array.from({ length: 16 }, (_spin, i) => of(row, first + i) << BigInt(4 * i)).reduce((a, b) => a | b);
  });
const many = Int8Array.from({ length: 4000 }, (_unused, i) => (i % 7 < 4 ? -1 : 1));

const filling = {
  file: 'physics/lennard-jones',
  kernel: 'fill_cells',
  params: { atoms: atomArrays, box, n: i32, capacity: i32, counts: inout(i32), members: inout(i32), overflow: inout(i32) },
  launch: { grid: 4, block: 64 },
  given: {
    atoms,
    box: boxOf,
    n: ATOMS,
    capacity: CAPACITY,
    counts: new Int32Array(CELLS ** 3),
    members: new Int32Array(members.length),
    overflow: new Int32Array(1),
  },
} as const;

export const PHYSICS_CASES: readonly TextCase[] = [
  { ...filling, results: { counts: cellCounts, overflow: Int32Array.of(0) } },
  lennardJones(true),
  lennardJones(false),
  {
    file: 'physics/sph-grid',
    kernel: 'compute_keys',
    params: { keys: output(u32), indices: output(u32), positions: input(f32), n: u32 },
    launch: { grid: 4, block: 128 },
    given: { keys: new Uint32Array(PARTICLES), indices: new Uint32Array(PARTICLES), positions: particles, n: PARTICLES },
    results: { keys, indices: Uint32Array.from(keys.keys()) },
  },
  {
    file: 'physics/sph-grid',
    kernel: 'find_cells',
    params: { ranges: inout(u32), sorted: output(f32), keys: input(u32), indices: input(u32), positions: input(f32), n: u32 },
    launch: { grid: 4, block: 128, sharedBytes: 4 * 129 },
    given: {
      ranges: new Uint32Array(256),
      sorted: new Float32Array(4 * PARTICLES),
      keys: sortedKeys,
      indices: byCell,
      positions: particles,
      n: PARTICLES,
    },
    results: { ranges, sorted },
  },
  {
    file: 'physics/sph-grid',
    kernel: 'density_and_pressure',
    params: { sorted: input(f32), indices: input(u32), ranges: input(u32), results: output(f32), n: u32 },
    launch: { grid: 4, block: 128 },
    given: { sorted, indices: byCell, ranges, results: new Float32Array(2 * PARTICLES), n: PARTICLES },
    results: { results: densities },
    // powf of a GPU, and the third power of a difference.
    tolerance: 5e-5,
  },
  flipped(true),
  flipped(false),
  {
    file: 'physics/ising-checkerboard',
    kernel: 'sum_neighbours',
    params: { words: input(u64), sums: output(u64), rows: i32, columns: i32 },
    launch: { grid: [1, 2], block: [8, 4] },
    given: { words: nibbles(bit), sums: new BigUint64Array(2 * WORD_ROWS * PAIRS), rows: WORD_ROWS, columns: PAIRS },
    results: { sums: nibbles((row, at) => bit(row - 1, at) + bit(row + 1, at) + bit(row, at - 1) + bit(row, at + 1)) },
  },
  {
    file: 'physics/ising-checkerboard',
    kernel: 'magnetisation<96>',
    params: { spins: input(i8), n: u64, total: inout(u64) },
    launch: { grid: 3, block: 96 },
    given: { spins: many, n: many.length, total: new BigUint64Array(1) },
    results: { total: BigUint64Array.of(BigInt.asUintN(64, BigInt(many.reduce((sum, spin) => sum + spin, 0)))) },
  },
];

/** The order within a cell is not fixed. */
export const UNORDERED_PHYSICS_CASES: readonly TextCase[] = [{ ...filling, results: { members } }];
