// Allocates device memory in stream order.
// Thread: owner.
import { type AllocKind, MemorySpace } from '../../protocol/protocol.gen.js';
import type { StreamContext } from '../device/stream-context.js';
import type { StreamRecording, Timeline } from '../timeline/timeline.js';
import { Storage } from './storage.js';

export interface BoundMemory {
  readonly storage: Storage;
  readonly ticket: number;
}

/** Binds a new handle by the record that `submit` submits. If the record is refused, this throws and nothing is left. */
export function bindMemory(site: StreamContext, byteLength: number, submit: (handle: number) => number): BoundMemory {
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

/** Submits the record that allocates the memory. If the device refuses it, this throws and nothing is left. */
export function allocate(site: StreamContext, byteLength: number, kind: AllocKind): BoundMemory {
  const { core, timeline } = site;
  // An empty array has memory too, so that no code needs a case for it.
  return bindMemory(site, byteLength, (handle) =>
    core.submit(timeline, core.encoder.alloc(timeline.slot, handle, Math.max(byteLength, 1), kind)),
  );
}

/**
 * Allocates memory of a capture. It is allocated now, on the stream itself (`on`), so the address is fixed and launches allocate nothing.
 */
export function allocateCaptured(
  { core, ordering }: StreamContext,
  recording: StreamRecording,
  on: Timeline,
  byteLength: number,
  kind: AllocKind,
): Storage {
  const { storage } = allocate({ core, ordering, timeline: on }, byteLength, kind);
  storage.hasContents = false;
  recording.addAllocation(storage);
  return storage;
}
