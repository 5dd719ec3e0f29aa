// The records that make textures: their memory, and the values that kernels get. Both have handles of memory, so they are ordered, kept and
// freed like arrays.
// Thread: owner.
import type { Sampling, TextureShapeOf } from '../../protocol/texture-encoder.js';
import { MemorySpace } from '../../protocol/protocol.gen.js';
import type { StreamContext } from '../device/stream-context.js';
import { Storage } from './storage.js';

/** Binds a new handle by the record that `submit` submits. If it is refused, nothing is left. */
function bind(site: StreamContext, byteLength: number, submit: (handle: number) => number): { storage: Storage; ticket: number } {
  const { core } = site;
  const handle = core.memory.take();
  let ticket: number;
  try {
    ticket = submit(handle);
  } catch (error) {
    core.memory.giveBackNow(handle);
    throw error;
  }
  const storage = new Storage(MemorySpace.DEVICE, handle, 0, byteLength, core);
  core.tracker.allocated(storage, site, ticket);
  return { storage, ticket };
}

/** The memory of a texture. */
export function allocateArray(site: StreamContext, byteLength: number, shape: TextureShapeOf): { storage: Storage; ticket: number } {
  const { core, timeline } = site;
  return bind(site, byteLength, (handle) =>
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

/** The value of a texture or a surface. It counts as one byte, which launches read. */
export function createObject(site: StreamContext, source: TextureSource, shape: TextureShapeOf, how: Sampling): Storage {
  const { core, timeline } = site;
  const { storage, offset, pitch } = source;
  const record = core.tracker.begin(site);
  // It reads no bytes, but the memory is freed only afterwards.
  record.add(storage, offset, offset, false);
  return bind(site, 1, (handle) =>
    record.submit('alloc', undefined, () =>
      core.encoder.textures.create(timeline.slot, handle, storage.handle, storage.base + offset, pitch, shape, how),
    ),
  ).storage;
}
