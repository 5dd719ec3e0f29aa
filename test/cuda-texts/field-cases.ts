// Idioms of physics: bodies in tiles.
import { f32, f64, i32, inout, input, output, u32 } from 'millrace';
import { doubles, type TextCase } from './text-case.js';

// x, y, z and mass
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

export const FIELD_CASES: readonly TextCase[] = [integrated('float', [32, 2]), integrated('double', [64, 1])];
