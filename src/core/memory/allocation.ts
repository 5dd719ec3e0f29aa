// Allocates device memory in stream order.
// Thread: owner.
import { type AllocKind, MemorySpace } from '../../protocol/protocol.gen.js';
import type { StreamContext } from '../device/stream-context.js';
import { Storage } from './storage.js';

/** Submits the record that allocates the memory. If the device refuses it, this throws and nothing is left. */
export function allocate(site: StreamContext, byteLength: number, kind: AllocKind): { readonly storage: Storage; readonly ticket: number } {
  const { core, timeline } = site;
  const handle = core.memory.take();
  let ticket: number;
  try {
    // An empty array has memory too, so that no code needs a case for it.
    ticket = core.submit(timeline, core.encoder.alloc(timeline.slot, handle, Math.max(byteLength, 1), kind));
  } catch (error) {
    core.memory.giveBackNow(handle);
    throw error;
  }
  const storage = new Storage(MemorySpace.DEVICE, handle, 0, byteLength, core);
  core.tracker.allocated(storage, site, ticket);
  return { storage, ticket };
}
