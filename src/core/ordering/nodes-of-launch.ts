// The interface by which the message of a hazard finds the nodes of a graph's launch that use an array.
import type { HazardNode } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';

/** A UsedMemory, as messages name it. */
export interface UsedMemory {
  readonly core: { readonly name: string };
  readonly label: string;
  readonly madeAt: string | undefined;
}

/** The nodes of a launch of a graph, for the messages of hazards. */
export interface NodesOfLaunch {
  /** A node that uses these bytes: one that writes them, if there is one. With `mustWrite` no other. */
  userOf(
    memory: UsedMemory,
    start: number,
    end: number,
    mustWrite: boolean,
  ): { readonly node: HazardNode; readonly isWrite: boolean } | undefined;
  /** Bytes that the graph uses in conflict with this earlier record, and whether that writes them. */
  conflictWith(
    timeline: Timeline,
    ticket: number,
  ): { readonly memory: UsedMemory; readonly start: number; readonly end: number; readonly isWrite: boolean } | undefined;
}
