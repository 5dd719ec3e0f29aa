// The memory of a lane's last item, for the arrays of its next one: neither allocates what it can take over. Each item has array objects of its
// own, so those of an earlier item stay disposed.
//
// The memory is kept only if nothing can use it any more and no operation has failed meanwhile, which might have poisoned it. It is freed when
// an item needs arrays of other sizes, and when the lane has been free for some time.
// Thread: owner.
import type { Device } from '../core/api/device.js';
import { DeviceArray } from '../core/api/array.js';
import { PinnedArray } from '../core/api/pinned.js';
import type { Stream } from '../core/api/stream.js';
import { DTYPES, type DType } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';

type Storage = ReturnType<DeviceArray['handOver']>;
type KeptBlock = ReturnType<PinnedArray['handOver']>;

export class LaneMemory {
  #arrays: Storage[] = [];
  #blocks: KeptBlock[] = [];
  #isClosed = false;
  /** For the lane's pool, which frees the memory when it finds this set for the second time. */
  isIdle: boolean = false;

  get isEmpty(): boolean {
    return this.#arrays.length === 0 && this.#blocks.length === 0;
  }

  /** An array in kept memory; undefined if there is none of its size, and then all memory for arrays is freed. */
  array<D extends DType>(stream: Stream, shape: readonly number[], dtype: D): DeviceArray<D> | undefined {
    if (this.#arrays.length === 0 || stream.timeline.recording !== undefined) return undefined;
    stream.checkOpen();
    const storage = takeOf(this.#arrays, lengthOf(shape) * DTYPES[dtype].byteSize, (kept) => kept.byteLength);
    if (storage === undefined) this.#freeArrays();
    return storage && new DeviceArray(stream.device, dtype, shape, storage, 0);
  }

  /** As `array`, for pinned arrays. */
  pinned<D extends DType>(device: Device, shape: readonly number[], dtype: D): PinnedArray<D> | undefined {
    if (this.#blocks.length === 0 || device.core.state !== 'open') return undefined;
    const kept = takeOf(this.#blocks, lengthOf(shape) * DTYPES[dtype].byteSize, ({ storage }) => storage.byteLength);
    if (kept === undefined) this.#freeBlocks();
    return kept && new PinnedArray(device.core, dtype, shape, kept.storage, kept.block, 0);
  }

  /** Disposes the arrays of an item, and keeps their memory in place of what the item did not use. `failures`: the number before the item. */
  keep(stream: Stream, arrays: Iterable<DeviceArray | PinnedArray>, failures: number): void {
    this.clear();
    const { core } = stream;
    const mayKeep = !this.#isClosed && !core.isGone && !core.live.isAwaited && stream.ordering !== 'checked' && !core.isChecked;
    for (const array of arrays) {
      if (!mayKeep || array.isDisposed || !array.storage.isUnused || core.failures.count !== failures) array[Symbol.dispose]();
      else if (array instanceof PinnedArray) this.#blocks.push(array.handOver());
      else this.#arrays.push(array.handOver());
    }
  }

  /** The lane is used no more. */
  close(): void {
    this.clear();
    this.#isClosed = true;
  }

  clear(): void {
    this.#freeArrays();
    this.#freeBlocks();
  }

  #freeArrays(): void {
    for (const storage of this.#arrays.splice(0)) storage.freeBy(() => storage.free());
  }

  #freeBlocks(): void {
    for (const { storage, block } of this.#blocks.splice(0)) storage.freeBy(() => storage.core.arena.giveBack(block, []));
  }
}

/** Removes and returns the kept memory of exactly this size. */
function takeOf<T>(kept: T[], byteLength: number, bytesOf: (each: T) => number): T | undefined {
  const at = kept.findIndex((each) => bytesOf(each) === byteLength);
  return at < 0 ? undefined : kept.splice(at, 1)[0];
}
