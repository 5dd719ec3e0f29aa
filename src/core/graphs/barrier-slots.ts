// The slots that the grid barriers of a graph's kernels use.
//
// On CUDA, the barrier of a TypeScript kernel counts blocks in memory that belongs to a stream slot, so two kernels that may run at the same
// time need two slots (src/compiler/emission/grid-prelude.ts). Nodes that were captured on one stream run one after the other and share a
// slot. Embedding a graph copies its nodes and streams (`copyNode`), so each copy has slots of its own.
// Thread: owner.
import type { DeviceCore } from '../device/device-core.js';
import type { Timeline } from '../timeline/timeline.js';
import type { CapturedNode, CapturedStream } from './captured-node.js';

export class BarrierSlots {
  readonly #byNode: Map<object, number> = new Map();
  readonly #taken: { readonly core: DeviceCore; readonly slot: number }[] = [];

  /** Takes slots for the nodes and for those of their bodies. Throws LimitError, and keeps none, if a device has no more. */
  constructor(nodes: readonly CapturedNode[]) {
    try {
      this.#take(nodes);
    } catch (error) {
      for (const { core, slot } of this.#taken) core.slots.giveBack(slot);
      throw error;
    }
  }

  /** The slot of a node with a grid barrier. */
  of(node: object): number | undefined {
    return this.#byNode.get(node);
  }

  /** No launch of the graph comes after this ticket: streams and other graphs can have the slots once it is reached. */
  giveBackAfter(timeline: Timeline, ticket: number): void {
    for (const { core, slot } of this.#taken) core.slots.giveBackAfter(slot, timeline, ticket);
  }

  #take(nodes: readonly CapturedNode[]): void {
    const slots = new Map<CapturedStream, number>();
    for (const node of nodes) {
      const { stream, barrierArg, condition } = node;
      if (barrierArg !== undefined) {
        let slot = slots.get(stream);
        if (slot === undefined) {
          slot = stream.core.slots.take();
          this.#taken.push({ core: stream.core, slot });
          slots.set(stream, slot);
        }
        this.#byNode.set(node, slot);
      }
      for (const body of condition?.bodies ?? []) this.#take(body);
    }
  }
}
