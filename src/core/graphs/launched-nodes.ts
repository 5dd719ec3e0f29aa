// The nodes of one launch of a graph, for the messages of hazards: which of them uses bytes of a memory.
//
// A launch is one record to the tracker, so its hazards are found without looking at nodes. Only the error asks for them. The stand-ins of
// the capture know which node used which bytes last.
// Thread: owner.
import { UNKNOWN } from '../base/call-site.js';
import type { HazardNode } from '../base/errors.js';
import { Storage } from '../memory/storage.js';
import type { NodesOfLaunch } from '../ordering/nodes-of-launch.js';
import type { TrackedMemory } from '../ordering/tracked-memory.js';
import type { Timeline } from '../timeline/timeline.js';
import type { CaptureSession } from './capture-session.js';
import type { GraphCore } from './graph-core.js';
import type { ArraySlot } from './slots.js';

/** An array that the launch gives for a slot. */
export interface GivenArray {
  readonly slot: ArraySlot;
  readonly memory: TrackedMemory;
  readonly start: number;
  readonly end: number;
}

/** An access in the history of a memory. */
interface Access {
  readonly timeline: Timeline;
  readonly ticket: number;
  readonly info: { readonly at: string };
}

interface NodeUse {
  readonly node: HazardNode;
  readonly isWrite: boolean;
}

export class LaunchedNodes implements NodesOfLaunch {
  readonly #graph: GraphCore;
  readonly #given: readonly GivenArray[];

  constructor(graph: GraphCore, given: readonly GivenArray[]) {
    this.#graph = graph;
    this.#given = given;
  }

  userOf(memory: TrackedMemory, start: number, end: number, mustWrite: boolean): NodeUse | undefined {
    const { session, label } = this.#graph;
    const own = userIn(session, label, memory, start, end, mustWrite);
    if (own !== undefined) return own;
    for (const given of this.#given) {
      if (given.memory !== memory || given.start >= end || given.end <= start) continue;
      const user = userIn(session, label, given.slot.memory, 0, 1, mustWrite);
      if (user !== undefined) return user;
    }
    return undefined;
  }

  conflictWith(timeline: Timeline, ticket: number): ReturnType<NodesOfLaunch['conflictWith']> {
    let found: ReturnType<NodesOfLaunch['conflictWith']>;
    for (const { storage, start, end, isWrite } of this.#graph.uses()) {
      // The history takes up the launches of other graphs.
      storage.uses();
      storage.history.visit(start, end, (interval) => {
        const see = (accesses: Iterable<Access>, isEarlierWrite: boolean): void => {
          for (const access of accesses) {
            if (access.timeline !== timeline || (found !== undefined && access.ticket !== ticket)) continue;
            const range = { start: Math.max(start, interval.start), end: Math.min(end, interval.end) };
            found = { memory: storage, ...range, isWrite: isEarlierWrite };
          }
        };
        if (isWrite) see(interval.reads, false);
        see(interval.writes, true);
      });
    }
    return found;
  }
}

/** The node that wrote the bytes last or, unless it must write them, one that read them. */
function userIn(
  session: CaptureSession,
  graph: string,
  memory: TrackedMemory,
  start: number,
  end: number,
  mustWrite: boolean,
): NodeUse | undefined {
  const history = memory instanceof Storage ? session.memories.get(memory)?.history : memory.history;
  let found: { readonly access: Access; readonly isWrite: boolean } | undefined;
  history?.visit(start, end, ({ writes, reads }) => {
    const [write] = writes;
    const [read] = mustWrite ? [] : reads;
    if (write !== undefined) {
      if (found?.isWrite !== true) found = { access: write, isWrite: true };
    } else if (read !== undefined) found ??= { access: read, isWrite: false };
  });
  if (found === undefined) return undefined;
  const { access, isWrite } = found;
  const captured = session.captured(access.timeline, access.ticket);
  if (captured === undefined) return undefined;
  const { node, embedded } = captured;
  const inner = embedded && userIn(embedded, graph, memory, start, end, mustWrite);
  // An array for a slot of an embedded graph is only known to be used by that graph.
  const kind = embedded === undefined ? node.kind : 'graph';
  const at = access.info.at === UNKNOWN ? {} : { at: access.info.at };
  return inner ?? { node: { graph, kind, ...(node.label !== undefined && { label: node.label }), ...at }, isWrite };
}
