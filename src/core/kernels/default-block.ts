// The block of a launch that gives none: its size by the kernel's occupancy, and its shape in one, two and three dimensions.

export const WARP: number = 32;
/**
 * The block size before a kernel is built and if its occupancy does not depend on the block size; otherwise the smallest. On an H200,
 * y[i] += a * x[i] with blocks of 128, 256, 512 and 1024 threads takes 319, 236, 251 and 274 us over 2^26 elements, and 7.1, 4.6, 4.1 and
 * 4.4 us over 2^20.
 */
export const DEFAULT_BLOCK: number = 256;
/** A block size counts as filling a multiprocessor from this share on, because smaller blocks are scheduled more easily. */
const NEARLY = 15 / 16;

/** Blocks in one, two and three dimensions. */
export type DefaultBlocks = readonly (readonly [x: number, y: number, z: number])[];

/**
 * The smallest block size whose occupancy is close to the best. `cuOccupancyMaxPotentialBlockSize` takes the largest block size with the
 * best occupancy. With smaller blocks a small launch uses more multiprocessors, and a block's resources are free again earlier.
 */
export function fullestBlock(blocksAtOnce: readonly number[]): number {
  const least = DEFAULT_BLOCK / WARP;
  const warpsAtOnce = blocksAtOnce.map((blocks, at) => (at + 1 < least ? 0 : blocks * (at + 1)));
  const enough = NEARLY * Math.max(...warpsAtOnce);
  const found = warpsAtOnce.findIndex((warps) => warps > 0 && warps >= enough);
  return found < 0 ? DEFAULT_BLOCK : (found + 1) * WARP;
}

/** The default block in one, two and three dimensions. Warps lie along x; an even number of warps gives z two layers. */
export function defaultBlocks(size: number, limit: number): DefaultBlocks {
  const warps = size / WARP;
  const layers = warps % 2 === 0 ? 2 : 1;
  return [fit([size, 1, 1], limit), fit([WARP, warps, 1], limit), fit([WARP, warps / layers, layers], limit)];
}

/** Halves the outer dimensions first until the block is small enough; warps lie along x. */
function fit(block: [number, number, number], limit: number): readonly [number, number, number] {
  for (const axis of [2, 1, 0] as const) {
    while (block[0] * block[1] * block[2] > limit && block[axis] > 1) block[axis] = block[axis] >> 1;
  }
  return block;
}
