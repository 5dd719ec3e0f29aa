// The memory that an owner and its device share: the streams' slots, and the arena.
import { type GrowableSharedBuffer, growableSharedBuffer } from '../core/channel/host-buffers.js';
import { MAX_STREAMS, TimelineSlot } from '../protocol/protocol.gen.js';

/** The most that one SharedArrayBuffer can reserve. */
export const ARENA_BYTES: number = 4 * 2 ** 30;
/** The arena's first size: an empty buffer has no address. */
export const PAGE_BYTES = 4096;
const TIMELINE_BYTES = MAX_STREAMS * TimelineSlot.BYTE_SIZE;

export interface Pages {
  readonly timeline: GrowableSharedBuffer;
  readonly arena: GrowableSharedBuffer;
}

/** Memory for a device, which `views` show to the addon. */
export function freshPages(): Pages & { readonly views: readonly [timeline: Uint8Array, arena: Uint8Array] } {
  const timeline = growableSharedBuffer(TIMELINE_BYTES, TIMELINE_BYTES);
  const arena = growableSharedBuffer(PAGE_BYTES, ARENA_BYTES);
  return { timeline, arena, views: [new Uint8Array(timeline, 0, TIMELINE_BYTES), new Uint8Array(arena, 0, PAGE_BYTES)] };
}
