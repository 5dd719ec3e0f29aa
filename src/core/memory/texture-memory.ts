// The records that make textures: their memory, and the values that kernels get. Both have handles of memory, so they are ordered, kept and
// freed like arrays.
// Thread: owner.
import type { Sampling, TextureShapeOf } from '../../protocol/texture-encoder.js';
import type { StreamContext } from '../device/stream-context.js';
import { bindMemory, type BoundMemory } from './allocation.js';
import type { Storage } from './storage.js';

/** The memory of a texture. */
export function allocateArray(site: StreamContext, byteLength: number, shape: TextureShapeOf): BoundMemory {
  const { core, timeline } = site;
  return bindMemory(site, byteLength, (handle) =>
    core.submit(timeline, core.encoder.textures.allocArray(timeline.slot, handle, byteLength, shape)),
  );
}

/** The memory of a texture, or linear memory with this distance between rows. */
export interface TextureSource {
  readonly storage: Storage;
  readonly offset: number;
  /** 0 for the memory of a texture. */
  readonly pitch: number;
}

/** The value of a texture or a surface. For ordering, it is memory of one byte, which launches read. */
export function createObject(site: StreamContext, source: TextureSource, shape: TextureShapeOf, how: Sampling): Storage {
  const { core, timeline } = site;
  const { storage, offset, pitch } = source;
  return bindMemory(site, 1, (handle) => {
    const record = core.tracker.begin(site);
    // It reads no bytes, but the memory is freed only afterwards.
    record.add(storage, offset, offset, false);
    return record.submit('alloc', undefined, () =>
      core.encoder.textures.create(timeline.slot, handle, storage.handle, storage.base + offset, pitch, shape, how),
    );
  }).storage;
}
