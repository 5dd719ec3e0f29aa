// The memory of the arrays that a capture allocates. It is allocated when the captured function has returned, because only then it is known
// which arrays it has disposed: of these, two share memory if every node that uses the one comes after every node that uses the other. An
// array that the function keeps has memory of its own, so what is in it stays there between launches.
// Thread: owner.
import type { Storage } from '../memory/storage.js';
import type { CapturedAllocation, Timeline } from '../timeline/timeline.js';
import type { CapturedNode, CapturedStream } from './captured-node.js';

interface Pending extends CapturedAllocation {
  readonly storage: Storage;
  /** The nodes that use it, in their order. */
  readonly uses: number[];
  /** Some of the nodes that use it are not known. */
  isSpread: boolean;
}

/** Memory, and the nodes that used it last, by stream. */
interface Block {
  readonly first: Storage;
  readonly kind: number;
  lastUses: Map<CapturedStream, number>;
}

/** The most blocks that are looked at for an array: a capture of thousands of arrays would take too long otherwise. */
const MOST_LOOKED_AT = 64;

export class CapturedAllocations {
  readonly #pending: Map<Storage, Pending> = new Map();

  /** The memory is needed when the capture has ended, or when something outside of the capture uses it. */
  add(storage: Storage, allocation: CapturedAllocation): void {
    this.#pending.set(storage, { ...allocation, storage, uses: [], isSpread: false });
    storage.whenUsed = (): void => {
      this.#pending.delete(storage);
      allocation.bind(undefined);
    };
  }

  /** A node uses the memory; `isSpread`: further ones before it, too. */
  use(storage: Storage, node: number, isSpread: boolean): void {
    const pending = this.#pending.get(storage);
    if (pending === undefined) return;
    pending.uses.push(node);
    pending.isSpread ||= isSpread;
  }

  /** Allocates what was not allocated before. If the device refuses it, this throws, and the rest stays without memory. */
  bind(nodes: readonly CapturedNode[]): void {
    // An array that was disposed before a node used it has given its handle back.
    const needed = [...this.#pending.values()].filter(({ storage, uses }) => !storage.isDisposed || uses.length > 0);
    if (needed.length === 0) return;
    const counts = new Map<Timeline, number>();
    for (const { on } of needed) counts.set(on, (counts.get(on) ?? 0) + 1);
    for (const { storage, on } of needed) storage.core.checkRoom(on, counts.get(on) as number);
    const before = needed.some(isTemporary) ? clocksOf(nodes) : [];
    const blocks: Block[] = [];
    for (const pending of needed) {
      const { storage, kind, uses, bind } = pending;
      const block = isTemporary(pending) ? fitting(blocks, pending, before) : undefined;
      bind(block?.first.handle);
      if (!isTemporary(pending)) continue;
      const lastUses = new Map(uses.map((node) => [(nodes[node] as CapturedNode).stream, node]));
      if (block === undefined) blocks.push({ first: storage, kind, lastUses });
      else block.lastUses = lastUses;
    }
    this.#pending.clear();
  }
}

function isTemporary({ storage, uses, isSpread }: Pending): boolean {
  return storage.isDisposed && uses.length > 0 && !isSpread;
}

/** The smallest block of enough bytes whose uses all come before those of the array. */
function fitting(blocks: readonly Block[], { storage, kind, uses }: Pending, before: readonly Clock[]): Block | undefined {
  let best: Block | undefined;
  for (let at = blocks.length - 1; at >= Math.max(0, blocks.length - MOST_LOOKED_AT); at--) {
    const block = blocks[at] as Block;
    const { first, lastUses } = block;
    if (first.core !== storage.core || block.kind !== kind || first.byteLength < storage.byteLength) continue;
    if (best !== undefined && best.first.byteLength <= first.byteLength) continue;
    const isOver = uses.every((node) => [...lastUses].every(([stream, last]) => ((before[node] as Clock).get(stream) ?? -1) >= last));
    if (isOver) best = block;
  }
  return best;
}

/** Of each stream the last node that comes before a node. The nodes of a stream come one after another. */
type Clock = ReadonlyMap<CapturedStream, number>;

function clocksOf(nodes: readonly CapturedNode[]): Clock[] {
  const clocks: Map<CapturedStream, number>[] = [];
  for (const { after } of nodes) {
    const [first, ...others] = after;
    const clock = new Map(first === undefined ? [] : clocks[first]);
    for (const earlier of others)
      for (const [stream, last] of clocks[earlier] as Clock) if ((clock.get(stream) ?? -1) < last) clock.set(stream, last);
    for (const earlier of after) {
      const { stream } = nodes[earlier] as CapturedNode;
      if ((clock.get(stream) ?? -1) < earlier) clock.set(stream, earlier);
    }
    clocks.push(clock);
  }
  return clocks;
}
