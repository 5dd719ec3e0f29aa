// Converts a launch's shape to a grid and a block, and checks them against the device's limits.
//
// `threads` is in array order: the last dimension varies fastest. grid and block are x first, as in CUDA.
import type { NativeDeviceInfo } from '../../protocol/reports.js';
import { LaunchFlag } from '../../protocol/protocol.gen.js';
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';
import type { Shape } from '../elements/shape.js';
import type { KernelPlan } from './kernel-plan.js';
import type { Dim3, LaunchShape } from './kernel.js';

/** The largest extent: a kernel's indices have 32 bits. */
export const MAX_EXTENT: number = 2 ** 31 - 1;

type Triple = [x: number, y: number, z: number];

/** The geometry of a launch record. One object serves all launches, because it is read at once. */
export interface Geometry {
  readonly grid: Triple;
  readonly block: Triple;
  /** The requested threads, x first; MAX_EXTENT if the launch gave a grid. */
  readonly extent: Triple;
  sharedBytes: number;
  /** Bits of LaunchFlag. */
  flags: number;
  label: string | undefined;
  /** The launch has no threads and runs nothing. */
  isEmpty: boolean;
}

export const geometry: Geometry = {
  grid: [1, 1, 1],
  block: [1, 1, 1],
  extent: [1, 1, 1],
  sharedBytes: 0,
  flags: 0,
  label: undefined,
  isEmpty: false,
};

/** Calls `launch`, a nested launch while another one is being prepared, and restores `geometry` for the outer one. */
export function keepGeometry<T>(launch: () => T): T {
  const { grid, block, extent, ...rest } = geometry;
  const triples = [[...grid], [...block], [...extent]] as const;
  try {
    return launch();
  } finally {
    Object.assign(geometry, rest);
    for (const [at, triple] of [grid, block, extent].entries()) Object.assign(triple, triples[at]);
  }
}

/** Sets `geometry` from the launch shape. A number as the shape takes a fast path with one division. */
export function measure(shape: LaunchShape, plan: KernelPlan, info: NativeDeviceInfo, device: string): void {
  geometry.sharedBytes = 0;
  geometry.flags = 0;
  geometry.label = undefined;
  if (typeof shape === 'number' || Array.isArray(shape)) {
    if (plan.syncsGrid) throw notTogether(plan, undefined);
    measureThreads(shape as Shape, undefined, plan, info, device);
    return;
  }
  if (typeof shape !== 'object' || shape === null)
    throw badArgument('shape', shape, `The launch shape (${show(shape)}) is not a number, a list or an object.`);
  const { threads, grid, block, sharedBytes, cooperative, label } = shape as Exclude<LaunchShape, Shape>;
  if (sharedBytes !== undefined) geometry.sharedBytes = checkShared(sharedBytes, plan, info);
  geometry.label = label;
  if (threads !== undefined) measureThreads(threads, block, plan, info, device);
  else measureGrid(grid, block, plan, info, device);
  if (cooperative !== undefined || plan.syncsGrid) checkTogether(cooperative, plan, device);
}

/** Checks a cooperative launch: all its blocks must run at the same time. */
function checkTogether(cooperative: boolean | undefined, plan: KernelPlan, device: string): void {
  if (cooperative !== undefined && typeof cooperative !== 'boolean')
    throw badArgument('cooperative', cooperative, `The option cooperative (${show(cooperative)}) is not true or false.`);
  if (cooperative !== true) {
    if (plan.syncsGrid) throw notTogether(plan, cooperative);
    return;
  }
  geometry.flags = LaunchFlag.COOPERATIVE;
  if (plan.maxBlocksTogether === 0) {
    const message = `Device ${device} does not support cooperative launches (kernel ${plan.name}).`;
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'cooperative launches', { device });
  }
  const { grid, block } = geometry;
  const limit = plan.blocksTogether(block[0] * block[1] * block[2]);
  const blocks = grid[0] * grid[1] * grid[2];
  if (blocks <= limit) return;
  const message = `The blocks of a cooperative launch (${blocks}) exceed the limit of kernel ${plan.name} (${limit}).`;
  throw badArgument('grid', [...grid], message, limit);
}

function notTogether(plan: KernelPlan, cooperative: false | undefined): Error {
  const message = `The blocks of kernel ${plan.name} wait for each other, so all of them must run at the same time: launch it with { cooperative: true }.`;
  return badArgument('cooperative', cooperative, message, true);
}

function checkShared(bytes: number, plan: KernelPlan, info: NativeDeviceInfo): number {
  checkInteger('sharedBytes', bytes, 0, info.maxSharedBytes);
  const limit = plan.maxSharedBytes;
  if (bytes <= limit) return bytes;
  throw badArgument('sharedBytes', bytes, `The sharedBytes (${bytes}) exceed the limit of kernel ${plan.name} (${limit}).`, limit);
}

function measureThreads(threads: Shape, block: Dim3 | undefined, plan: KernelPlan, info: NativeDeviceInfo, device: string): void {
  const { extent, grid } = geometry;
  const isList = typeof threads !== 'number';
  if (isList && !Array.isArray(threads))
    throw badArgument('threads', threads, `The threads (${show(threads)}) are not a number or a list.`);
  const rank = isList ? threads.length : 1;
  if (rank < 1 || rank > 3) throw badArgument('threads', threads, `The number of dimensions of threads (${rank}) is not 1, 2 or 3.`, 3);
  if (plan.indexRank !== 0 && rank !== plan.indexRank) {
    const message = `The number of dimensions of threads (${rank}) differs from that of kernel ${plan.name} (${plan.indexRank}).`;
    throw badArgument('threads', threads, message, plan.indexRank);
  }
  extent[0] = checkInteger('threads', isList ? threads[rank - 1] : threads, 0, MAX_EXTENT);
  extent[1] = rank > 1 ? checkInteger('threads', (threads as readonly number[])[rank - 2], 0, MAX_EXTENT) : 1;
  extent[2] = rank > 2 ? checkInteger('threads', (threads as readonly number[])[0], 0, MAX_EXTENT) : 1;
  geometry.isEmpty = extent[0] === 0 || extent[1] === 0 || extent[2] === 0;
  if (block === undefined) {
    const fitting = plan.blocks[rank - 1] as readonly [number, number, number];
    geometry.block[0] = fitting[0];
    geometry.block[1] = fitting[1];
    geometry.block[2] = fitting[2];
  } else {
    setBlock(block, plan, info, device);
    if (plan.isShaped) checkBlockRank(block, rank);
  }
  for (let axis = 0; axis < 3; axis++) grid[axis] = Math.ceil((extent[axis] as number) / (geometry.block[axis] as number));
  if (!geometry.isEmpty) checkGrid(info, device);
}

function measureGrid(grid: Dim3 | undefined, block: Dim3 | undefined, plan: KernelPlan, info: NativeDeviceInfo, device: string): void {
  if (grid === undefined || block === undefined) {
    throw badArgument('shape', { grid, block }, 'The launch shape has neither threads nor both grid and block.');
  }
  setBlock(block, plan, info, device);
  setTriple('grid', grid, geometry.grid);
  checkGrid(info, device);
  geometry.extent[0] = geometry.extent[1] = geometry.extent[2] = MAX_EXTENT;
  geometry.isEmpty = false;
}

function setBlock(block: Dim3, plan: KernelPlan, info: NativeDeviceInfo, device: string): void {
  setTriple('block', block, geometry.block);
  const [x, y, z] = geometry.block;
  for (let axis = 0; axis < 3; axis++) {
    const limit = info.maxBlock[axis] as number;
    const along = geometry.block[axis] as number;
    if (along > limit)
      throw badArgument('block', block, `Block size ${'xyz'[axis]} (${along}) exceeds the limit of device ${device} (${limit}).`, limit);
  }
  const size = x * y * z;
  if (size > info.maxThreadsPerBlock) {
    throw badArgument(
      'block',
      block,
      `Block size (${size}) exceeds the limit of device ${device} (${info.maxThreadsPerBlock}).`,
      info.maxThreadsPerBlock,
    );
  }
  if (size > plan.maxThreadsPerBlock) {
    throw badArgument(
      'block',
      block,
      `Block size (${size}) exceeds the limit of kernel ${plan.name} (${plan.maxThreadsPerBlock}).`,
      plan.maxThreadsPerBlock,
    );
  }
}

/** Refuses a block with threads along an axis without indices, because a TypeScript kernel would run each index several times. */
function checkBlockRank(block: Dim3, rank: number): void {
  for (let axis = rank; axis < 3; axis++) {
    const along = geometry.block[axis] as number;
    if (along === 1) continue;
    const message = `Block size ${'xyz'[axis]} (${along}) exceeds the limit for threads of ${rank} dimension${rank === 1 ? '' : 's'} (1).`;
    throw badArgument('block', block, message, 1);
  }
}

function setTriple(argument: 'grid' | 'block', dimensions: Dim3, into: Triple): void {
  if (typeof dimensions === 'number') {
    into[0] = checkInteger(argument, dimensions, 1);
    into[1] = into[2] = 1;
    return;
  }
  const list: readonly (number | undefined)[] = dimensions;
  if (!Array.isArray(list) || list.length < 1 || list.length > 3) {
    throw badArgument(argument, dimensions, `The ${argument} (${show(dimensions)}) is not one to three numbers.`, 3);
  }
  for (let axis = 0; axis < 3; axis++) into[axis] = checkInteger(argument, list[axis] ?? 1, 1);
}

function checkGrid(info: NativeDeviceInfo, device: string): void {
  const { grid } = geometry;
  for (let axis = 0; axis < 3; axis++) {
    const blocks = grid[axis] as number;
    const limit = info.maxGrid[axis] as number;
    if (blocks <= limit) continue;
    throw badArgument(
      'grid',
      [...grid],
      `Grid size ${'xyz'[axis]} (${blocks} blocks) exceeds the limit of device ${device} (${limit}).`,
      limit,
    );
  }
}
