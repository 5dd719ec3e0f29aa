// How random kernels are launched: one to three dimensions, blocks of few and of many threads, and extents that no block
// divides, so that the last blocks are not full.
import type { LaunchShape } from 'millrace';

type Triple = readonly [x: number, y: number, z: number];

export interface Plan {
  /** In the order of arrays: the last is x. */
  readonly threads: readonly number[];
  readonly block: Triple;
  /** Whole blocks, without a guard of the tail. */
  readonly isByGrid: boolean;
}

/** Widths of 1, 7, 16, 17, 33 and 100: below, at and above what a machine computes at once. */
const GUARDED: readonly (readonly [threads: readonly number[], block: Triple])[] = [
  [[65], [24, 1, 1]],
  [[9], [1, 1, 1]],
  [[45], [7, 1, 1]],
  [[47], [16, 1, 1]],
  [[50], [17, 1, 1]],
  [[80], [33, 1, 1]],
  [[130], [100, 1, 1]],
  [[31], [64, 1, 1]],
  [
    [7, 13],
    [5, 3, 1],
  ],
  [
    [5, 39],
    [16, 2, 1],
  ],
  [
    [35, 3],
    [1, 33, 1],
  ],
  [
    [4, 37],
    [17, 1, 1],
  ],
  [
    [3, 40],
    [33, 2, 1],
  ],
  [
    [11, 9],
    [4, 4, 1],
  ],
  [
    [6, 5, 4],
    [3, 2, 5],
  ],
  [
    [3, 2, 20],
    [17, 1, 2],
  ],
  [
    [5, 6, 3],
    [2, 4, 4],
  ],
];
const BY_GRID: readonly (readonly [grid: Triple, block: Triple])[] = [
  [
    [5, 1, 1],
    [7, 1, 1],
  ],
  [
    [3, 1, 1],
    [33, 1, 1],
  ],
  [
    [2, 1, 1],
    [48, 1, 1],
  ],
  [
    [2, 3, 1],
    [16, 2, 1],
  ],
  [
    [2, 1, 2],
    [7, 3, 2],
  ],
];

const PLANS: readonly Plan[] = [
  ...GUARDED.map(([threads, block]) => ({ threads, block, isByGrid: false })),
  ...BY_GRID.map(([grid, block]) => {
    const whole = grid.map((blocks, axis) => blocks * block[axis]!);
    const rank = grid[2] > 1 ? 3 : grid[1] > 1 ? 2 : 1;
    return { threads: whole.slice(0, rank).toReversed(), block, isByGrid: true };
  }),
];

/** Threads of the largest block. */
export const MOST_THREADS = 128;

/** Kernels with barriers are launched in whole blocks (S437). */
export function planOf(seed: number, hasBarriers: boolean): Plan {
  const plans = hasBarriers ? PLANS.filter(isWhole) : PLANS;
  return plans[seed % plans.length]!;
}

function isWhole(plan: Plan): boolean {
  return extentOf(plan).every((along, axis) => Number.isInteger(along / plan.block[axis]!));
}

/** x first, of three dimensions. */
export function extentOf({ threads }: Plan): Triple {
  const [x = 1, y = 1, z = 1] = threads.toReversed();
  return [x, y, z];
}
export function gridOf(plan: Plan): Triple {
  const [x, y, z] = extentOf(plan);
  const { block } = plan;
  return [Math.ceil(x / block[0]), Math.ceil(y / block[1]), Math.ceil(z / block[2])];
}
export function countOf({ threads }: Plan): number {
  return threads.reduce((a, b) => a * b, 1);
}

export function launchShapeOf(plan: Plan, sharedBytes: number): LaunchShape {
  const { threads, block, isByGrid } = plan;
  return isByGrid
    ? { grid: [...gridOf(plan)], block: [...block], sharedBytes }
    : { threads: threads as never, block: [...block], sharedBytes };
}
