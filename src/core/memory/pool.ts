// A device's stream-ordered memory pool: what it holds, and how much of that it keeps.
// Thread: owner.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import type { Channel } from '../channel/channel.js';
import type { DeviceCore } from '../device/device-core.js';

/** In bytes. High marks count from the last `resetHighWater`. */
export interface MemoryStats {
  /** All memory of the device: `cuMemGetInfo`. On the CPU device, what its arrays may use. */
  readonly totalBytes: number;
  /** Memory of the device that no process has taken: `cuMemGetInfo`. On the CPU device, `totalBytes` less `usedBytes`. */
  readonly freeBytes: number;
  /** Of arrays that are not freed, as the pool rounds them. */
  readonly usedBytes: number;
  /** The highest `usedBytes` since the last `resetHighWater`: `CU_MEMPOOL_ATTR_USED_MEM_HIGH`. */
  readonly usedHighBytes: number;
  /** What the pool has taken from the device, and what is kept of interprocess arrays that were freed. */
  readonly reservedBytes: number;
  /** The highest `reservedBytes` since the last `resetHighWater`: `CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH`. */
  readonly reservedHighBytes: number;
  /** Page-locked host memory of the device. */
  readonly pinnedBytes: number;
  /** Of these and of device memory, what copies hold for a moment on their way. */
  readonly stagingBytes: number;
}

/**
 * `cuMemPool`, `cupy.cuda.MemoryPool`, `wp.get_mempool_used_mem_current` and its like. The device's worker is asked each time, so
 * everything is a promise of an answer and takes no place in a stream. Rejects with StateError once the device is closed,
 * DeviceLostError once it is lost.
 */
export class MemoryPool {
  readonly #core: DeviceCore;

  /** @internal */
  constructor(core: DeviceCore) {
    this.#core = core;
  }

  /** `cuMemPoolGetAttribute`, `cuMemGetInfo`. What has been submitted and not run is not in it. */
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
   * How much unused memory the pool keeps: 0 gives it back at the next synchronization, up to 1 is a fraction of the device's memory,
   * above 1 bytes. `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, `wp.set_mempool_release_threshold`. Rejects with ArgumentError for what is
   * negative, no number, or no whole number of bytes.
   */
  async setReleaseThreshold(value: number): Promise<void> {
    const channel = this.#open();
    await channel.ask('setReleaseThreshold', thresholdBytes(value, this.#core.info.totalMemoryBytes));
  }

  /** In bytes, however it was set: `wp.get_mempool_release_threshold`. */
  async releaseThresholdBytes(): Promise<number> {
    return this.#open().ask('releaseThreshold');
  }

  /**
   * Gives unused memory back now, down to `keepBytes` in all: `cuMemPoolTrimTo`, `free_all_blocks`. Memory whose free has not run yet
   * is in use; `device.synchronize` first. Where freed interprocess arrays are kept, it waits for the device's work. Rejects with ArgumentError for what is no whole number of bytes.
   */
  async trim(keepBytes: number = 0): Promise<void> {
    const channel = this.#open();
    await channel.ask('trimPool', checkInteger('keepBytes', keepBytes, 0));
  }

  /** The high marks of `stats` start again from what is used now: `CU_MEMPOOL_ATTR_USED_MEM_HIGH`. */
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
