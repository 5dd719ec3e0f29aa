// The streams that stand still for a function of the program, and who must not wait for them: the function itself, in
// everything it awaits. Such a wait would only end with the hold's timeout, so it is refused at once.
//
// What a function holds goes with its asynchronous context, by AsyncLocalStorage, which the first hold sets up: it makes
// awaits dearer. A promise that was taken before the function was called cannot be told from another.
// Thread: owner.
import { AsyncLocalStorage } from 'node:async_hooks';
import { StateError } from '../base/errors.js';
import type { Point, Timeline } from '../timeline/timeline.js';

/** A stream held at a ticket by a function that runs. */
export interface Held extends Point {
  isOver: boolean;
}

interface Context {
  readonly held: Held;
  /** Of the function that submitted this one. */
  readonly outer: Context | undefined;
}

let contexts: AsyncLocalStorage<Context> | undefined;

/** Calls `fn`, which holds the stream until `held.isOver`. */
export function runHeld<T>(held: Held, fn: () => T): T {
  contexts ??= new AsyncLocalStorage();
  return contexts.run({ held, outer: contexts.getStore() }, fn);
}

/** Why the running function may not wait for a ticket of this stream; undefined where it may. */
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
    return new StateError('ERR_MILLRACE_STATE', `${what}; it continues only after that function has ended.`, {
      device: timeline.log.device,
      stream: timeline.label,
    });
  }
  return undefined;
}

/** Why the running function may not wait for the end of these streams. */
export function refuseDeadlockAtEnd(timelines: Iterable<Timeline>): StateError | undefined {
  if (contexts?.getStore() === undefined) return undefined;
  for (const timeline of timelines) {
    const refused = refuseDeadlock(timeline, timeline.last);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** The streams by which a ticket waits for the held one; `seen`: how far each was looked at. */
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
