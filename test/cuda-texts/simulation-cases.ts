// Idioms of simulations: stencils, cellular automata, fluids.
import { f32, f64, i32, i64, inout, input, output, u32, u8 } from 'millrace';
import { doubles, floats, type TextCase } from './text-case.js';

const f = Math.fround;

// ── heat on a plate ──
const [NX, NY] = [37, 21];
const plate = floats(NX * NY, (i) => ((i * 31) % 17) - 8);
const heated = plate.map((c, i) => {
  const [x, y] = [i % NX, Math.floor(i / NX)];
  if (x === 0 || y === 0 || x === NX - 1 || y === NY - 1) return c;
  return c + 0.2 * (plate[i - 1]! + plate[i + 1]! + plate[i - NX]! + plate[i + NX]! - 4 * c);
});

// ── a wave in a box ──
const BOX = { x: 16, y: 8, z: 9 };
const box = floats(BOX.x * BOX.y * BOX.z, (i) => ((i * 53) % 29) / 7);
const COEFFICIENTS = [-2.5, f(1.3333333), f(-0.083333336)];
const waved = box.map((value, i) => {
  const [x, y, z] = [i % BOX.x, Math.floor(i / BOX.x) % BOX.y, Math.floor(i / (BOX.x * BOX.y))];
  const isInside = [x, y, z].every((at, axis) => at >= 2 && at < [BOX.x, BOX.y, BOX.z][axis]! - 2);
  if (!isInside) return 0;
  const strides = [1, BOX.x, BOX.x * BOX.y];
  const around = (r: number): number => strides.reduce((sum, stride) => sum + box[i - r * stride]! + box[i + r * stride]!, 0);
  return 3 * COEFFICIENTS[0]! * value + COEFFICIENTS[1]! * around(1) + COEFFICIENTS[2]! * around(2);
});

// ── life ──
const [ROW, ROWS] = [5, 24];
const world = Uint8Array.from({ length: ROW * ROWS }, (_unused, i) => (i * 89 + (i >> 3) * 57) & 0xff);
const isAlive = (x: number, y: number): number => {
  const [cx, cy] = [(x + 8 * ROW) % (8 * ROW), (y + ROWS) % ROWS];
  return (world[cy * ROW + (cx >> 3)]! >> (7 - (cx & 7))) & 1;
};
const lived = world.map((_unused, i) => {
  let byte = 0;
  for (let bit = 0; bit < 8; bit++) {
    const [x, y] = [8 * (i % ROW) + bit, Math.floor(i / ROW)];
    let neighbours = 0;
    for (const dx of [-1, 0, 1]) for (const dy of [-1, 0, 1]) if (dx !== 0 || dy !== 0) neighbours += isAlive(x + dx, y + dy);
    byte = byte * 2 + (neighbours === 3 || (neighbours === 2 && isAlive(x, y) === 1) ? 1 : 0);
  }
  return byte;
});

// ── a fluid ──
const [LX, LY] = [20, 6];
const CX = [0, 1, 0, -1, 0, 1, -1, -1, 1];
const CY = [0, 0, 1, 0, -1, 1, 1, -1, -1];
const WEIGHTS = [4 / 9, ...Array.from({ length: 4 }, () => 1 / 9), ...Array.from({ length: 4 }, () => 1 / 36)];
const fluid = doubles(9 * LX * LY, (i) => 0.05 + ((i * 13) % 11) / 40);
const flowed = doubles(9 * LX * LY, (i) => {
  const [x, y, d] = [i % LX, Math.floor(i / LX) % LY, Math.floor(i / (LX * LY))];
  const came = CX.map((cx, q) => fluid[LX * (LY * q + ((y - CY[q]! + LY) % LY)) + ((x - cx + LX) % LX)]!);
  const rho = came.reduce((a, b) => a + b);
  const ux = came.reduce((sum, v, q) => sum + v * CX[q]!, 0) / rho;
  const uy = came.reduce((sum, v, q) => sum + v * CY[q]!, 0) / rho;
  const cu = CX[d]! * ux + CY[d]! * uy;
  const equilibrium = WEIGHTS[d]! * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * (ux * ux + uy * uy));
  return 0.4 * came[d]! + 0.6 * equilibrium;
});

// ── particles in cells: x, y and the number of the cell ──
const PARTICLES = 200;
const positions = floats(2 * PARTICLES, (i) => ((i * 331) % 97) / 9 - 4);
const particles = new Uint8Array(12 * PARTICLES);
const fields = new DataView(particles.buffer);
for (let i = 0; i < PARTICLES; i++) {
  fields.setFloat32(12 * i, positions[2 * i]!, true);
  fields.setFloat32(12 * i + 4, positions[2 * i + 1]!, true);
  fields.setInt32(12 * i + 8, i % 7, true);
}
const nearest = floats(7, (cell) =>
  Math.min(
    ...Array.from({ length: PARTICLES }, (_unused, i) => (i % 7 === cell ? Math.hypot(positions[2 * i]!, positions[2 * i + 1]!) : 1e9)),
  ),
);

export const SIMULATION_CASES: readonly TextCase[] = [
  {
    file: 'simulations/heat-2d',
    kernel: 'heat_step',
    params: { u: input(f32), next: output(f32), nx: i32, ny: i32, r: f32 },
    launch: { grid: [3, 3], block: [16, 8] },
    given: { u: plate, next: new Float32Array(NX * NY), nx: NX, ny: NY, r: 0.2 },
    results: { next: heated },
    tolerance: 1e-5,
  },
  {
    file: 'simulations/wave-3d-registers',
    kernel: 'stencil_3d',
    params: { in: input(f32), out: output(f32), nx: i32, ny: i32, nz: i32 },
    launch: { grid: [2, 2], block: [8, 4] },
    given: { in: box, out: new Float32Array(box.length), nx: BOX.x, ny: BOX.y, nz: BOX.z },
    results: { out: waved },
    tolerance: 1e-5,
  },
  {
    file: 'simulations/game-of-life-bits',
    kernel: 'life_bits',
    params: { world: input(u8), next: output(u8), width: u32, height: u32 },
    launch: { grid: 2, block: 32 },
    given: { world, next: new Uint8Array(world.length), width: ROW, height: ROWS },
    results: { next: lived },
  },
  {
    file: 'simulations/lattice-boltzmann',
    kernel: 'stream_collide',
    params: { f0: input(f64), f1: output(f64), nx: u32, ny: u32, inverse: f64 },
    launch: { grid: [2, LY], block: 16 },
    given: { f0: fluid, f1: new Float64Array(fluid.length), nx: LX, ny: LY, inverse: 0.6 },
    results: { f1: flowed },
    tolerance: 1e-13,
  },
  {
    file: 'simulations/particles-atomic-min',
    kernel: 'nearest',
    params: { particles: input(u8), best: inout(f32), n: i32 },
    launch: { grid: 4, block: 64 },
    given: { particles, best: new Float32Array(7).fill(1e9), n: PARTICLES },
    results: { best: nearest },
  },
  {
    file: 'simulations/pi-by-leaps',
    kernel: 'integrate',
    params: { pi: inout(f64), steps: i64 },
    launch: { grid: 1, block: 128 },
    given: { pi: new Float64Array(1), steps: 10_000 },
    results: { pi: Float64Array.of(Math.PI) },
    tolerance: 1e-9,
  },
];
