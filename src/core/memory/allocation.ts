// Allocates device memory in stream order.
// Thread: owner.
import { AllocKind, MemorySpace, PeerWhat } from '../../protocol/protocol.gen.js';
import { callSite } from '../base/call-site.js';
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
  const handle = core.handles.memory.take();
  let ticket: number;
  try {
    ticket = submit(handle);
  } catch (error) {
    core.handles.memory.giveBackNow(handle);
    throw error;
  }
  const storage = new Storage(MemorySpace.DEVICE, handle, 0, byteLength, core);
  core.tracker.allocated(storage, site, ticket);
  core.live.add(storage, site.timeline, ticket);
  return { storage, ticket };
}

/** Submits the record that allocates the memory. If the device refuses it, this throws and nothing is left. */
export function allocate(site: StreamContext, byteLength: number, kind: AllocKind): BoundMemory {
  const { core, timeline } = site;
  core.live.makeRoom(timeline, byteLength);
  // An empty array has memory too, so that no code needs a case for it.
  const bound = bindMemory(site, byteLength, (handle) =>
    core.submit(timeline, core.encoder.alloc(timeline.slot, handle, Math.max(byteLength, 1), kind)),
  );
  if (kind === AllocKind.INTERPROCESS) bound.storage.grant = PeerWhat.MEMORY;
  return bound;
}

/**
 * Allocates memory of a capture on the stream itself (`on`), so the address is fixed and launches allocate nothing: now or, if it may share
 * memory with other arrays of the capture, when the captured function has returned.
 */
export function allocateCaptured(
  { core, ordering }: StreamContext,
  recording: StreamRecording,
  on: Timeline,
  byteLength: number,
  kind: AllocKind,
  mayShare: boolean,
): Storage {
  if (mayShare) return allocateLater({ core, ordering, timeline: on }, recording, byteLength, kind);
  const { storage } = allocate({ core, ordering, timeline: on }, byteLength, kind);
  storage.hasContents = false;
  recording.addAllocation(storage);
  return storage;
}

function allocateLater(site: StreamContext, recording: StreamRecording, byteLength: number, kind: AllocKind): Storage {
  const { core, timeline: on } = site;
  const storage = new Storage(MemorySpace.DEVICE, core.handles.memory.take(), 0, byteLength, core);
  const { handle } = storage;
  storage.isUnbound = true;
  storage.hasContents = false;
  if (site.ordering === 'checked') storage.madeAt = callSite();
  const bind = (shared: number | undefined): void => {
    const { encoder } = core;
    const bytes = Math.max(byteLength, 1);
    if (shared === undefined) core.live.makeRoom(on, byteLength);
    const ticket = core.submit(
      on,
      shared === undefined ? encoder.alloc(on.slot, handle, bytes, kind) : encoder.adopt(on.slot, handle, shared, bytes),
    );
    const { madeAt } = storage;
    storage.isUnbound = false;
    storage.whenUsed = undefined;
    core.tracker.allocated(storage, site, ticket);
    storage.madeAt = madeAt;
    if (shared === undefined) core.live.add(storage, on, ticket);
  };
  recording.addAllocation(storage, { on, kind, bind });
  return storage;
}
