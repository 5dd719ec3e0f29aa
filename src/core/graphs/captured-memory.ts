// The memory that a capture uses. Inside the capture, a stand-in keeps the accesses of each memory, because what the capture lists has not
// been submitted: it must order the nodes among themselves and nothing else. Afterwards the stand-ins tell which bytes the graph uses.
// Thread: owner.
import type { OrderedDevice } from '../ordering/ordered-stream.js';
import { type GraphLaunch, type GraphUse, TrackedMemory, type UsedBytes } from '../ordering/tracked-memory.js';

/** The stand-in of a memory. */
export class CapturedMemory extends TrackedMemory {
  readonly original: TrackedMemory;
  readonly core: OrderedDevice;

  constructor(original: TrackedMemory) {
    super(original.byteLength);
    this.original = original;
    this.core = original.core;
    this.madeAt = original.madeAt;
  }

  get label(): string {
    return this.original.label;
  }

  override get isGone(): boolean {
    return this.original.isGone;
  }

  /** The ranges of bytes that the nodes read only, and those that they write. */
  used(): UsedBytes[] {
    const uses: { start: number; end: number; isWrite: boolean }[] = [];
    this.history.visit(0, this.byteLength, ({ start, end, writes, reads }) => {
      const isWrite = writes.timeline !== undefined;
      if (!isWrite && reads.timeline === undefined) return;
      const last = uses.at(-1);
      if (last?.end === start && last.isWrite === isWrite) last.end = end;
      else uses.push({ start, end, isWrite });
    });
    return uses;
  }
}

/** Stands for everything that one graph uses, so that a launch costs the same however much that is. A launch writes it. */
export class GraphMemory extends TrackedMemory {
  readonly core: OrderedDevice;
  readonly label: string;
  launch: GraphLaunch | undefined = undefined;
  /** Other graphs that use the same bytes of a memory that is not crowded, one of the two writing. */
  readonly conflicts: Set<GraphMemory> = new Set();
  readonly crowded: GraphUse['graph']['crowded'] = [];

  constructor(core: OrderedDevice, label: string) {
    super(1);
    this.core = core;
    this.label = label;
  }

  override get isOfGraph(): boolean {
    return true;
  }
}
