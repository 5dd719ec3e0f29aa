// The memory pool of a device (`CUmemoryPool`): how much it holds, and how much of that it keeps when unused.
// Thread: owner.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import type { Channel } from '../channel/channel.js';
import type { DeviceCore } from '../device/device-core.js';

/** Memory of a device and its pool, all in bytes. */
export interface MemoryStats {
  /** All memory of the device: `cuMemGetInfo`. On the CPU device, what its arrays may use. */
  readonly totalBytes: number;
  /** Memory of the device that no process has taken: `cuMemGetInfo`. On the CPU device, `totalBytes` less `usedBytes`. */
  readonly freeBytes: number;
  /** Memory of arrays that are not freed, with their sizes as the pool rounds them: `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`. */
  readonly usedBytes: number;
  /** The highest `usedBytes` since the last `resetHighWater`: `CU_MEMPOOL_ATTR_USED_MEM_HIGH`. */
  readonly usedHighBytes: number;
  /**
   * Memory that the pool has taken from the device (`CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`), and freed interprocess arrays that it keeps.
   */
  readonly reservedBytes: number;
  /** The highest `reservedBytes` since the last `resetHighWater`: `CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH`. */
  readonly reservedHighBytes: number;
  /** Page-locked host memory that belongs to the device. */
  readonly pinnedBytes: number;
  /** The part of pinned and device memory that copies in progress use for staging. */
  readonly stagingBytes: number;
}

/**
 * A device's memory pool: `CUmemoryPool`, `cupy.cuda.MemoryPool`, `wp.get_mempool_used_mem_current` and so on. Every call asks the
 * device's worker, so it returns a promise and takes no place in a stream. Rejects with StateError once the device is closed,
 * DeviceLostError once it is lost.
 */
export class MemoryPool {
  readonly #core: DeviceCore;

  /** @internal */
  constructor(core: DeviceCore) {
    this.#core = core;
  }

  /**
   * What the pool and the device hold: `cuMemPoolGetAttribute`, `cuMemGetInfo`. Operations that were submitted and have not run do not
   * count.
   */
  async stats(): Promise<MemoryStats> {
    const channel = this.#open();
    const pool = await channel.ask('poolStats');
    const { pinnedBytes, stagingBytes } = channel.stats();
    return {
      totalBytes: pool.total,
      freeBytes: pool.free,
      usedBytes: pool.used,
      usedHighBytes: pool.usedHigh,
      reservedBytes: pool.reserved,
      reservedHighBytes: pool.reservedHigh,
      pinnedBytes,
      stagingBytes,
    };
  }

  /**
   * Sets how much unused memory the pool keeps at a synchronization: 0 releases all, a value up to 1 is a fraction of the device's
   * memory, and a value above 1 is bytes. Default: 7/8 of a GPU's memory, and 256 MiB on a CPU device.
   * `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, `wp.set_mempool_release_threshold`. Rejects with ArgumentError for a negative value, one that is
   * not a number, or a fraction of a byte.
   */
  async setReleaseThreshold(value: number): Promise<void> {
    const channel = this.#open();
    await channel.ask('setReleaseThreshold', thresholdBytes(value, this.#core.info.totalMemoryBytes));
  }

  /** The release threshold in bytes, however it was set: `wp.get_mempool_release_threshold`. */
  async releaseThresholdBytes(): Promise<number> {
    return this.#open().ask('releaseThreshold');
  }

  /**
   * Releases unused memory now, until the pool holds `keepBytes` (default 0): `cuMemPoolTrimTo`, `free_all_blocks`. Memory whose free has
   * not run yet is still in use; await `device.synchronize` first. If the pool keeps freed interprocess arrays, it waits for the device's
   * work. Rejects with ArgumentError if `keepBytes` is not a whole number of bytes.
   */
  async trim(keepBytes: number = 0): Promise<void> {
    const channel = this.#open();
    await channel.ask('trimPool', checkInteger('keepBytes', keepBytes, 0));
  }

  /** Restarts the high-water values of `stats` from the present values: `CU_MEMPOOL_ATTR_USED_MEM_HIGH`. */
  async resetHighWater(): Promise<void> {
    await this.#open().ask('resetHighWater');
  }

  #open(): Channel {
    const over = this.#core.refuseIfOver();
    if (over !== undefined) throw over;
    return this.#core.channel;
  }
}

function thresholdBytes(value: unknown, totalBytes: number): number {
  if (typeof value !== 'number' || !(value >= 0)) {
    throw badArgument('threshold', value, `The release threshold (${show(value)}) is not a number of at least 0.`, 0);
  }
  return value <= 1 ? Math.floor(value * totalBytes) : checkInteger('release threshold in bytes', value, 0);
}
