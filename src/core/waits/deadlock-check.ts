// Detects deadlocks of holds. The function of a `hold` must not wait for the stream that it holds, in anything that it awaits. Such a
// wait would only end with the hold's timeout, so it is refused at once.
//
// AsyncLocalStorage carries the held streams through the function's asynchronous context. It exists only while such a function runs,
// because it makes every promise of the program slower. A promise that was created before the function was called is not detected.
// Thread: owner.
import { AsyncLocalStorage } from 'node:async_hooks';
import { StateError } from '../base/errors.js';
import type { Point, Timeline } from '../timeline/timeline.js';

/** A stream that a running function holds at a ticket. */
export interface Held extends Point {
  isOver: boolean;
}

interface Context {
  readonly held: Held;
  /** The context of the function that submitted this one. */
  readonly outer: Context | undefined;
}

let contexts: AsyncLocalStorage<Context> | undefined;
const running = new Set<Held>();

/** Calls `fn`, which holds the stream until `endHeld`. */
export function runHeld<T>(held: Held, fn: () => T): T {
  contexts ??= new AsyncLocalStorage();
  running.add(held);
  return contexts.run({ held, outer: contexts.getStore() }, fn);
}

/** The stream goes on. The function may not have been called. */
export function endHeld(held: Held): void {
  held.isOver = true;
  if (!running.delete(held) || running.size > 0) return;
  contexts?.disable();
  contexts = undefined;
}

/** The error if the running function must not wait for a ticket of this stream; otherwise undefined. */
export function refuseDeadlock(timeline: Timeline, ticket: number): StateError | undefined {
  for (let context = contexts?.getStore(); context !== undefined; context = context.outer) {
    const { held } = context;
    if (held.isOver) continue;
    const route = dependencyPath(held, timeline, ticket, new Map());
    if (route === undefined) continue;
    const [first, ...rest] = route.map(({ label }) => label);
    const what =
      rest.length === 0
        ? `Stream ${first} is held by the function that waits for it`
        : `Stream ${first} waits for stream ${rest.join(', which waits for stream ')}, which is held by the function that waits`;
    return new StateError('ERR_MILLRACE_STATE', `${what}: stream ${rest.at(-1) ?? first} continues only when that function has ended.`, {
      device: timeline.log.device,
      stream: timeline.label,
    });
  }
  return undefined;
}

/** The error if the running function must not wait for the end of these streams; otherwise undefined. */
export function refuseDeadlockAtEnd(timelines: Iterable<Timeline>): StateError | undefined {
  if (contexts?.getStore() === undefined) return undefined;
  for (const timeline of timelines) {
    const refused = refuseDeadlock(timeline, timeline.last);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** The chain of streams through which a ticket waits for the held one. `seen`: the ticket up to which each stream was searched. */
function dependencyPath(held: Held, timeline: Timeline, ticket: number, seen: Map<Timeline, number>): Timeline[] | undefined {
  if (timeline === held.timeline) return ticket >= held.ticket ? [timeline] : undefined;
  if ((seen.get(timeline) ?? 0) >= ticket) return undefined;
  seen.set(timeline, ticket);
  if (timeline.hasReached(ticket)) return undefined;
  for (const { note, other } of timeline.log.waits(ticket)) {
    const route = other && dependencyPath(held, other, note.otherTicket, seen);
    if (route !== undefined) return [timeline, ...route];
  }
  return undefined;
}
