// Idioms of physics: fields on grids, bodies in tiles.
import { f32, f64, i32, inout, input, output, struct, u32 } from 'millrace';
import { doubles, floats, type TextCase } from './text-case.js';

const mod = (a: number, n: number): number => ((a % n) + n) % n;

// ── fields ──
const [NX, NY, LAST, COURANT] = [23, 17, 6, 0.5];
const source = { i: 11, j: 8, period: 4 };
const losses = doubles(NX * NY, (at) => (at % NX === 0 ? 0.25 : 0));
const field = (by: number): Float64Array => doubles(NX * NY, (i) => ((i * by) % 31) / 31 - 0.5);
const start = { ez: field(7), hx: field(11), hy: field(17) };
function yee(isPeriodic: boolean): typeof start {
  const [ez, hx, hy] = [start.ez.slice(), start.hx.slice(), start.hy.slice()];
  const read = (of: Float64Array, i: number, j: number): number =>
    isPeriodic || (i >= 0 && i < NX && j >= 0 && j < NY) ? of[mod(j, NY) * NX + mod(i, NX)]! : 0;
  for (let step = 0; step < LAST; step++) {
    for (let at = 0; at < NX * NY; at++) {
      const [i, j] = [at % NX, Math.floor(at / NX)];
      hx[at]! -= COURANT * (read(ez, i, j + 1) - ez[at]!);
      hy[at]! += COURANT * (read(ez, i + 1, j) - ez[at]!);
    }
    for (let at = 0; at < NX * NY; at++) {
      const [i, j] = [at % NX, Math.floor(at / NX)];
      const curl = hy[at]! - read(hy, i - 1, j) - (hx[at]! - read(hx, i, j - 1));
      ez[at] = ((1 - losses[at]!) / (1 + losses[at]!)) * ez[at]! + (COURANT / (1 + losses[at]!)) * curl;
    }
    ez[source.j * NX + source.i]! += Math.exp(-((step / source.period - 1) ** 2) * 4);
  }
  return { ez, hx, hy };
}
const view = struct({ data: inout(f64), nx: i32, ny: i32, pitch: i32 });
const viewOf = (data: Float64Array): { data: Float64Array; nx: number; ny: number; pitch: number } => ({ data, nx: NX, ny: NY, pitch: NX });

function stepsInBlock(isPeriodic: boolean): TextCase {
  const end = yee(isPeriodic);
  return {
    file: 'physics/fdtd-yee',
    kernel: `fdtd::steps_in_block<double, fdtd::Edge::${isPeriodic ? 'periodic' : 'conductor'}>`,
    params: {
      ez: view,
      hx: view,
      hy: view,
      losses: input(f64),
      s: f64,
      source: struct({ i: i32, j: i32, period: f32 }),
      first: i32,
      last: i32,
    },
    launch: { grid: 1, block: [8, 4] },
    given: { ez: viewOf(start.ez), hx: viewOf(start.hx), hy: viewOf(start.hy), losses, s: COURANT, source, first: 0, last: LAST },
    results: { 'ez.data': end.ez, 'hx.data': end.hx, 'hy.data': end.hy },
    tolerance: 1e-13,
  };
}
const half = { ez: Float32Array.from(start.ez), hx: Float32Array.from(start.hx), hy: Float32Array.from(start.hy) };
const halfStep = half.ez.map((value, at) => {
  const [i, j] = [at % NX, Math.floor(at / NX)];
  const [left, below] = [i > 0 ? half.hy[at - 1]! : 0, j > 0 ? half.hx[at - NX]! : 0];
  return value + 0.25 * (half.hy[at]! - left - (half.hx[at]! - below));
});

// ── bodies: x, y, z and mass ──
const BODIES = 100;
const DT = 0.01;
/** Bodies without mass fill the last tile. */
const bodiesOf = (tiles: number, size: number): Float64Array =>
  doubles(4 * tiles * size, (i) => {
    if (i >= 4 * BODIES) return 0;
    return i % 4 === 3 ? 1 + (i % 3) : ((i * 7919) % 103) / 32 - 1.5;
  });
const velocities = doubles(4 * BODIES, (i) => (i % 4 === 3 ? 0 : ((i * 31) % 17) / 8 - 1));
function integrated(type: 'float' | 'double', block: readonly [number, number]): TextCase {
  const size = block[0] * block[1];
  const tiles = Math.ceil(BODIES / size);
  const old = bodiesOf(tiles, size);
  const vel = velocities.slice();
  const next = old.slice(0, 4 * BODIES);
  for (let body = 0; body < 4 * BODIES; body += 4)
    for (const axis of [0, 1, 2]) {
      let sum = 0;
      for (let other = 0; other < old.length; other += 4) {
        const r = [0, 1, 2].map((k) => old[other + k]! - old[body + k]!);
        const r2 = r.reduce((total, d) => total + d * d, type === 'float' ? Math.fround(0.01) : 0.01);
        sum += (r[axis]! * old[other + 3]!) / r2 ** 1.5;
      }
      vel[body + axis]! += sum * Math.fround(DT);
      next[body + axis]! += vel[body + axis]! * Math.fround(DT);
    }
  const dtype = type === 'float' ? f32 : f64;
  const given = (values: Float64Array): Float32Array | Float64Array => (type === 'float' ? Float32Array.from(values) : values);
  return {
    file: 'physics/n-body-precisions',
    kernel: `integrate_bodies<${type}>`,
    params: { new_pos: output(dtype), old_pos: input(dtype), vel: inout(dtype), bodies: u32, dt: f32, damping: f32, tiles: i32 },
    launch: { grid: Math.ceil(BODIES / block[0]), block, sharedBytes: size * (type === 'float' ? 16 : 32) },
    given: {
      new_pos: given(new Float64Array(4 * BODIES)),
      old_pos: given(old),
      vel: given(velocities),
      bodies: BODIES,
      dt: DT,
      damping: 1,
      tiles,
    },
    results: { new_pos: given(next), vel: given(vel) },
    // rsqrtf of a GPU, cubed, and sums of large terms.
    tolerance: type === 'float' ? 1e-4 : 1e-11,
  };
}

export const FIELD_CASES: readonly TextCase[] = [
  stepsInBlock(false),
  stepsInBlock(true),
  {
    file: 'physics/fdtd-yee',
    kernel: 'fdtd::half_step_e<16, 8>',
    params: { ez: input(f32), hx: input(f32), hy: input(f32), next: output(f32), nx: i32, ny: i32, s: f32 },
    launch: { grid: [2, 3], block: [16, 8] },
    given: { ...half, next: floats(NX * NY, () => 0), nx: NX, ny: NY, s: 0.25 },
    results: { next: halfStep },
  },
  integrated('float', [32, 2]),
  integrated('double', [64, 1]),
];
