// The shape of a launch as a grid and a block, checked against the limits of the device and the kernel.
//
// `threads` is in array order, last dimension fastest, as in arrays; grid and block are x first, as in CUDA.
import type { NativeDeviceInfo } from '../../protocol/reports.js';
import { LaunchFlag } from '../../protocol/protocol.gen.js';
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { UnsupportedError } from '../base/errors.js';
import type { Shape } from '../elements/shape.js';
import type { Dim3, LaunchShape } from './kernel.js';

/** The most threads along an axis, and the most elements of an array: a kernel's indices have 32 bits. */
export const MAX_EXTENT: number = 2 ** 31 - 1;

const SHAPE_KEYS: readonly string[] = ['threads', 'grid', 'block', 'sharedBytes', 'cooperative', 'label'];

type Triple = [x: number, y: number, z: number];

/** What a kernel takes: KernelPlan. */
export interface LaunchLimits {
  readonly name: string;
  readonly isShaped: boolean;
  readonly indexRank: number;
  readonly syncsGrid: boolean;
  readonly syncsBlock: boolean;
  readonly maxThreadsPerBlock: number;
  readonly maxSharedBytes: number;
  readonly maxCooperativeBlocks: number;
  readonly blocks: readonly (readonly [x: number, y: number, z: number])[];
  cooperativeBlocks(threads: number): number;
}

/**
 * What a launch record says of its shape. Scratch space of one kernel: each launch sets it anew. Loops launch a kernel with one shape, so a
 * shape that equals the latest one is not checked again: that takes a third of the instructions.
 */
export class LaunchGeometry {
  readonly grid: Triple = [1, 1, 1];
  readonly block: Triple = [1, 1, 1];
  /** The threads asked for, x first; MAX_EXTENT where the launch gave a grid. */
  readonly extent: Triple = [1, 1, 1];
  /** Dynamic shared memory of a block. */
  sharedBytes: number = 0;
  /** Bits of LaunchFlag. */
  flags: number = 0;
  label: string | undefined = undefined;
  /** The launch has zero threads and is a no-op. */
  isEmpty: boolean = false;
  /** What `grid`, `block` and `extent` were made of, without an error. */
  #from: 'nothing' | 'threads' | 'grid and block' = 'nothing';
  /** The dimensions of the threads. */
  #rank = 0;

  /** The limits of the kernel have changed. */
  forget(): void {
    this.#from = 'nothing';
  }

  /** Sets all fields for a launch on the device of this name. Throws ArgumentError for a shape that kernel or device cannot take. */
  measure(shape: LaunchShape, plan: LaunchLimits, info: NativeDeviceInfo, device: string): void {
    this.sharedBytes = 0;
    this.flags = 0;
    this.label = undefined;
    if (typeof shape === 'number' || Array.isArray(shape)) {
      if (plan.syncsGrid) throw notCooperative(plan, undefined);
      this.#measureThreads(shape as Shape, undefined, plan, info, device);
      return;
    }
    if (typeof shape !== 'object' || shape === null)
      throw badArgument('shape', shape, `The launch shape (${show(shape)}) is not a number, a list or an object.`);
    const { threads, grid, block, sharedBytes, cooperative, label } = shape as Exclude<LaunchShape, Shape>;
    // Counting costs less than comparing names: with the number of values that were found, no key is unknown.
    let keys = 0;
    for (const _ in shape as object) keys++;
    let found = (threads ?? grid) === undefined ? 0 : 1;
    if (block !== undefined) found++;
    if (sharedBytes !== undefined) found++;
    if (cooperative !== undefined) found++;
    if (label !== undefined) found++;
    if (keys !== found) checkNames(shape, threads, grid);
    if (sharedBytes !== undefined) this.sharedBytes = checkShared(sharedBytes, plan, info);
    this.label = label;
    if (threads !== undefined) this.#measureThreads(threads, block, plan, info, device);
    else if (this.#from !== 'grid and block' || !isSame(block, this.block) || !isSame(grid, this.grid))
      this.#measureGrid(grid, block, plan, info, device);
    if (cooperative !== undefined || plan.syncsGrid) this.#checkCooperative(cooperative, plan, device);
  }

  /** Has each element of an array of this shape a thread with its indices? `rank`: the number of the kernel's indices. */
  covers(shape: readonly number[], rank: number): boolean {
    return shape.every((length, dimension) => length <= this.threadsAlong(rank - 1 - dimension));
  }

  /** The values that the index along a CUDA axis takes. */
  threadsAlong(axis: number): number {
    return Math.min(this.extent[axis] as number, (this.grid[axis] as number) * (this.block[axis] as number));
  }

  /** Are these the threads that were checked? */
  #areSame(threads: Shape): boolean {
    const { extent } = this;
    if (typeof threads === 'number') return threads === extent[0] && this.#rank === 1;
    const list: readonly number[] = threads;
    if (!Array.isArray(list) || list.length !== this.#rank) return false;
    // The last of the threads is the first of the extent.
    for (let axis = 0; axis < list.length; axis++) if (list[list.length - 1 - axis] !== extent[axis]) return false;
    return true;
  }

  /** A cooperative launch runs all its blocks at the same time: checks that they fit, and that a kernel that needs it is launched so. */
  #checkCooperative(cooperative: boolean | undefined, plan: LaunchLimits, device: string): void {
    if (cooperative !== undefined && typeof cooperative !== 'boolean')
      throw badArgument('cooperative', cooperative, `The option cooperative (${show(cooperative)}) is not true or false.`);
    if (cooperative !== true) {
      if (plan.syncsGrid) throw notCooperative(plan, cooperative);
      return;
    }
    this.flags = LaunchFlag.COOPERATIVE;
    if (plan.maxCooperativeBlocks === 0) {
      const message = `Device ${device} does not support cooperative launches (kernel ${plan.name}).`;
      throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'cooperative launches', { device });
    }
    const { grid, block } = this;
    const limit = plan.cooperativeBlocks(block[0] * block[1] * block[2]);
    const blocks = grid[0] * grid[1] * grid[2];
    if (blocks <= limit) return;
    const message = `The blocks of a cooperative launch (${blocks}) exceed the limit of kernel ${plan.name} (${limit}).`;
    throw badArgument('grid', [...grid], message, limit);
  }

  #measureThreads(threads: Shape, block: Dim3 | undefined, plan: LaunchLimits, info: NativeDeviceInfo, device: string): void {
    const { extent, grid } = this;
    if (this.#from === 'threads' && block === undefined && this.#areSame(threads)) return;
    this.#from = 'nothing';
    const isList = typeof threads !== 'number';
    if (isList && !Array.isArray(threads)) refuseSlot('threads', threads);
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
    this.isEmpty = extent[0] === 0 || extent[1] === 0 || extent[2] === 0;
    if (block === undefined) {
      const fitting = plan.blocks[rank - 1] as readonly [number, number, number];
      this.block[0] = fitting[0];
      this.block[1] = fitting[1];
      this.block[2] = fitting[2];
    } else {
      this.#setBlock(block, plan, info, device);
      if (plan.isShaped) this.#checkBlockRank(block, rank);
    }
    for (let axis = 0; axis < 3; axis++) grid[axis] = Math.ceil((extent[axis] as number) / (this.block[axis] as number));
    if (!this.isEmpty) {
      this.#checkGrid(info, device);
      if (plan.syncsBlock) this.#checkWholeBlocks(threads, plan);
    }
    if (block === undefined) this.#from = 'threads';
    this.#rank = rank;
  }

  #measureGrid(grid: Dim3 | undefined, block: Dim3 | undefined, plan: LaunchLimits, info: NativeDeviceInfo, device: string): void {
    this.#from = 'nothing';
    if (grid === undefined || block === undefined) {
      throw badArgument('shape', { grid, block }, 'The launch shape has neither threads nor both grid and block.');
    }
    this.#setBlock(block, plan, info, device);
    setTriple('grid', grid, this.grid);
    this.#checkGrid(info, device);
    this.extent[0] = this.extent[1] = this.extent[2] = MAX_EXTENT;
    this.isEmpty = false;
    this.#from = 'grid and block';
  }

  #setBlock(block: Dim3, plan: LaunchLimits, info: NativeDeviceInfo, device: string): void {
    setTriple('block', block, this.block);
    const [x, y, z] = this.block;
    for (let axis = 0; axis < 3; axis++) {
      const limit = info.maxBlock[axis] as number;
      const along = this.block[axis] as number;
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

  /** A block is one thread wide along axes without indices: a TypeScript kernel would run each index once for each of those threads. */
  #checkBlockRank(block: Dim3, rank: number): void {
    for (let axis = rank; axis < 3; axis++) {
      const along = this.block[axis] as number;
      if (along === 1) continue;
      const message = `Block size ${'xyz'[axis]} (${along}) exceeds the limit for threads of ${rank} dimension${rank === 1 ? '' : 's'} (1).`;
      throw badArgument('block', block, message, 1);
    }
  }

  /** Threads beyond the shape return at once, so a barrier would not wait for them, and what they write for their block would be missing. */
  #checkWholeBlocks(threads: Shape, { name }: LaunchLimits): void {
    for (let axis = 0; axis < 3; axis++) {
      const [along, block] = [this.extent[axis] as number, this.block[axis] as number];
      if (along % block === 0) continue;
      const message =
        `The threads along ${'xyz'[axis]} (${along}) do not fill the last block (${block} along ${'xyz'[axis]}) of kernel ${name}, whose threads wait for each other: ` +
        'threads beyond them would not run. Launch whole blocks, or { grid, block }, with a condition such as i < x.length in the kernel.';
      throw badArgument('threads', threads, message, block);
    }
  }

  #checkGrid(info: NativeDeviceInfo, device: string): void {
    const { grid } = this;
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
}

/** Throws for names that are not of a shape, and for a grid beside threads. */
function checkNames(shape: object, threads: unknown, grid: unknown): void {
  refuseSlot('shape', shape);
  checkOptionNames(shape, SHAPE_KEYS, 'shape');
  if (threads === undefined || grid === undefined) return;
  const message = `The launch shape has threads (${show(threads)}) and a grid (${show(grid)}): give threads, with or without a block, or grid and block.`;
  throw badArgument('shape', shape, message);
}

/** A slot of a capture, whose value each launch of the graph gives. */
function refuseSlot(argument: string, value: unknown): void {
  if (typeof value !== 'object' || value === null || !('uncloneable' in value && 'slot' in value)) return;
  const message = `The ${argument} (${show(value)}) is a slot: the shape of a launch is fixed at the capture. Launch as many threads as are needed at most, and let the kernel compare its index with the slot.`;
  throw badArgument(argument, value, message);
}

function notCooperative(plan: LaunchLimits, cooperative: false | undefined): Error {
  const message = `The blocks of kernel ${plan.name} wait for each other, so all of them must run at the same time: launch it with { cooperative: true }.`;
  return badArgument('cooperative', cooperative, message, true);
}

function checkShared(bytes: number, plan: LaunchLimits, info: NativeDeviceInfo): number {
  checkInteger('sharedBytes', bytes, 0, info.maxSharedBytes);
  const limit = plan.maxSharedBytes;
  if (bytes <= limit) return bytes;
  throw badArgument('sharedBytes', bytes, `The sharedBytes (${bytes}) exceed the limit of kernel ${plan.name} (${limit}).`, limit);
}

/** Are these the dimensions that were checked? */
function isSame(dimensions: Dim3 | undefined, [x, y, z]: Triple): boolean {
  if (typeof dimensions === 'number') return dimensions === x && y === 1 && z === 1;
  const list: readonly (number | undefined)[] | undefined = dimensions;
  if (!Array.isArray(list) || list.length < 1 || list.length > 3) return false;
  return list[0] === x && (list.length > 1 ? list[1] : 1) === y && (list.length > 2 ? list[2] : 1) === z;
}

function setTriple(argument: 'grid' | 'block', dimensions: Dim3, into: Triple): void {
  if (typeof dimensions === 'number') {
    into[0] = checkInteger(argument, dimensions, 1);
    into[1] = into[2] = 1;
    return;
  }
  const list: readonly (number | undefined)[] = dimensions;
  if (!Array.isArray(list) || list.length < 1 || list.length > 3) {
    refuseSlot(argument, dimensions);
    throw badArgument(argument, dimensions, `The ${argument} (${show(dimensions)}) is not one to three numbers.`, 3);
  }
  for (let axis = 0; axis < 3; axis++) into[axis] = axis < list.length ? checkInteger(argument, list[axis], 1) : 1;
}
