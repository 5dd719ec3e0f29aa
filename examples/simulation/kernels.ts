// The kernels of the membrane. They use sums, products and comparisons only, and `fmad: false` rounds each of them by itself: so every
// device computes the same bits.
import { f32, i32, inout, input, kernel, output, u8 } from 'millrace';

/** The square of the speed of the waves, in cells per step. The scheme is stable up to 0.5. */
export const SPEED2 = 0.2;
/** Of a drop, in cells. */
export const DROP_RADIUS = 6;

/**
 * One step of the wave equation. A cell needs the heights of its neighbours at `now`, and of the step before `now` only its own height:
 * so the next heights take the place of those before, and two arrays are enough. The edge of the membrane does not move.
 */
export const wave = kernel(
  'wave',
  { now: input(f32, 2), before: inout(f32, 2), damping: f32 },
  ({ now, before, damping }, { i, j, speed2 }) => {
    const [height, width] = now.shape;
    if (i === 0 || j === 0 || i === height - 1 || j === width - 1) return;
    const here = now[i]![j]!;
    const pull = now[i - 1]![j]! + now[i + 1]![j]! + now[i]![j - 1]! + now[i]![j + 1]! - 4 * here;
    before[i]![j] = here + (1 - damping) * (here - before[i]![j]!) + speed2 * pull;
  },
  { constants: { speed2: SPEED2 }, fmad: false },
);

/** Presses a round dent into the membrane. It goes into both arrays, so it starts at rest. With strength 0 nothing changes. */
export const drop = kernel(
  'drop',
  { now: inout(f32, 2), before: inout(f32, 2), row: i32, column: i32, strength: f32 },
  ({ now, before, row, column, strength }, { i, j, radius }) => {
    const [height, width] = now.shape;
    const di = i - radius;
    const dj = j - radius;
    const y = row + di;
    const x = column + dj;
    const inside = radius * radius - di * di - dj * dj;
    if (inside <= 0 || y < 1 || x < 1 || y > height - 2 || x > width - 2) return;
    const dent = strength * inside * inside;
    now[y]![x] = now[y]![x]! - dent;
    before[y]![x] = before[y]![x]! - dent;
  },
  { constants: { radius: DROP_RADIUS }, fmad: false },
);

/** A picture of the membrane, lit from the upper left. */
export const shade = kernel(
  'shade',
  { now: input(f32, 2), picture: output(u8, 3) },
  ({ now, picture }, { i, j, clamp }) => {
    const [height, width] = now.shape;
    const slope =
      now[clamp(i - 1, 0, height - 1)]![j]! -
      now[clamp(i + 1, 0, height - 1)]![j]! +
      now[i]![clamp(j - 1, 0, width - 1)]! -
      now[i]![clamp(j + 1, 0, width - 1)]!;
    const light = clamp(slope * 400, -90, 130);
    const tint = clamp(now[i]![j]! * 120, -40, 40);
    picture[i]![j]![0] = clamp(50 + light - tint, 0, 255) | 0;
    picture[i]![j]![1] = clamp(110 + light, 0, 255) | 0;
    picture[i]![j]![2] = clamp(150 + light + tint, 0, 255) | 0;
  },
  { fmad: false },
);

export const KERNELS = [wave, drop, shade] as const;
