// A device's stream-ordered memory pool: what it holds, and how much of that it keeps.
// Thread: owner.
import type { DeviceCore } from './device-core.js';

/** In bytes. High marks count from the last `resetHighWater`. */
export interface MemoryStats {
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Of arrays that are not freed, as the pool rounds them. */
  readonly usedBytes: number;
  readonly usedHighBytes: number;
  /** What the pool has taken from the device. */
  readonly reservedBytes: number;
  readonly reservedHighBytes: number;
  /** Page-locked host memory of the device. */
  readonly pinnedBytes: number;
  /** Of these and of device memory, what copies hold for a moment on their way. */
  readonly stagingBytes: number;
}

/** `cuMemPool`, `cupy.cuda.MemoryPool`, `wp.get_mempool_used_mem_current` and its like. */
export class MemoryPool {
  readonly #core: DeviceCore;

  /** @internal */
  constructor(core: DeviceCore) {
    this.#core = core;
  }

  async stats(): Promise<MemoryStats> {
    const { channel } = this.#core;
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
}
