// The kernels: a fluid after Stam's "Stable Fluids", and a filter that finds edges. Rows are `i`, columns `j`.
import { f32, i32, inout, input, kernel, output, u8 } from 'millrace';

/** Moves a field with the velocity: each cell looks where its contents were one step before, and takes the share `keep` of that. */
export const carry = kernel(
  'carry',
  { u: input(f32, 2), v: input(f32, 2), from: input(f32, 2), to: output(f32, 2), keep: f32 },
  ({ u, v, from, to, keep }, { i, j, clamp, mix, i32: whole, f32: float }) => {
    const [height, width] = from.shape;
    const y = clamp(float(i) - v[i]![j]!, 0, float(height - 1));
    const x = clamp(float(j) - u[i]![j]!, 0, float(width - 1));
    const top = whole(y);
    const left = whole(x);
    const bottom = clamp(top + 1, 0, height - 1);
    const right = clamp(left + 1, 0, width - 1);
    const above = mix(from[top]![left]!, from[top]![right]!, x - float(left));
    const below = mix(from[bottom]![left]!, from[bottom]![right]!, x - float(left));
    to[i]![j] = keep * mix(above, below, y - float(top));
  },
);

/** Adds velocity and dye around places: each row of `forces` is x, y, dx, dy in cells. */
export const push = kernel(
  'push',
  { u: inout(f32, 2), v: inout(f32, 2), dye: inout(f32, 2), forces: input(f32, 2), count: i32, radius: f32, strength: f32 },
  ({ u, v, dye, forces, count, radius, strength }, { i, j, f32: float, min }) => {
    for (let n = 0; n < count; n++) {
      const dx = float(j) - forces[n]![0]!;
      const dy = float(i) - forces[n]![1]!;
      const near = Math.exp(-(dx * dx + dy * dy) / (radius * radius));
      u[i]![j] = u[i]![j]! + near * strength * forces[n]![2]!;
      v[i]![j] = v[i]![j]! + near * strength * forces[n]![3]!;
      dye[i]![j] = min(dye[i]![j]! + near * 0.25, 1);
    }
  },
);

/** How much more flows into a cell than out of it. */
export const divergence = kernel(
  'divergence',
  { u: input(f32, 2), v: input(f32, 2), inflow: output(f32, 2) },
  ({ u, v, inflow }, { i, j, clamp }) => {
    const [height, width] = u.shape;
    const across = u[i]![clamp(j + 1, 0, width - 1)]! - u[i]![clamp(j - 1, 0, width - 1)]!;
    const down = v[clamp(i + 1, 0, height - 1)]![j]! - v[clamp(i - 1, 0, height - 1)]![j]!;
    inflow[i]![j] = -0.5 * (across + down);
  },
);

/** One step of Jacobi's method for the pressure that the inflow makes. */
export const relax = kernel(
  'relax',
  { inflow: input(f32, 2), before: input(f32, 2), after: output(f32, 2) },
  ({ inflow, before, after }, { i, j, clamp }) => {
    const [height, width] = inflow.shape;
    const beside = before[i]![clamp(j - 1, 0, width - 1)]! + before[i]![clamp(j + 1, 0, width - 1)]!;
    const above = before[clamp(i - 1, 0, height - 1)]![j]! + before[clamp(i + 1, 0, height - 1)]![j]!;
    after[i]![j] = 0.25 * (inflow[i]![j]! + beside + above);
  },
);

/** Takes from the velocity what the pressure pushes away. Nothing flows through the edge. */
export const release = kernel(
  'release',
  { u: inout(f32, 2), v: inout(f32, 2), pressure: input(f32, 2) },
  ({ u, v, pressure }, { i, j }) => {
    const [height, width] = pressure.shape;
    if (i === 0 || j === 0 || i === height - 1 || j === width - 1) {
      u[i]![j] = 0;
      v[i]![j] = 0;
      return;
    }
    u[i]![j] = u[i]![j]! - 0.5 * (pressure[i]![j + 1]! - pressure[i]![j - 1]!);
    v[i]![j] = v[i]![j]! - 0.5 * (pressure[i + 1]![j]! - pressure[i - 1]![j]!);
  },
);

/** The dye as numbers of a palette of 256 colours. */
export const paint = kernel('paint', { dye: input(f32, 2), picture: output(u8, 2) }, ({ dye, picture }, { i, j, clamp }) => {
  picture[i]![j] = clamp(dye[i]![j]! * 255, 0, 255) | 0;
});

/** The edges of a grey picture (Sobel's operator), as numbers of the palette. */
export const edges = kernel(
  'edges',
  { picture: input(u8, 2), edge: output(u8, 2), gain: f32 },
  ({ picture, edge, gain }, { i, j, clamp, f32: float }) => {
    const [height, width] = picture.shape;
    const top = picture[clamp(i - 1, 0, height - 1)]!;
    const row = picture[i]!;
    const bottom = picture[clamp(i + 1, 0, height - 1)]!;
    const left = clamp(j - 1, 0, width - 1);
    const right = clamp(j + 1, 0, width - 1);
    const across = float(top[right]! + 2 * row[right]! + bottom[right]! - top[left]! - 2 * row[left]! - bottom[left]!);
    const down = float(bottom[left]! + 2 * bottom[j]! + bottom[right]! - top[left]! - 2 * top[j]! - top[right]!);
    edge[i]![j] = clamp(gain * Math.sqrt(across * across + down * down), 0, 255) | 0;
  },
);

export const KERNELS = [carry, push, divergence, relax, release, paint, edges] as const;
