// Which graph each unfinished ticket of a stream launched, so that a failure of a node can be named. A stream that launches one graph again and
// again has one entry.
// Thread: owner.
import type { KernelFacts } from './failure-errors.js';

/** The nodes of a graph, for the message of a failure. */
export interface FailingGraph {
  /** The node with this number, in words, and the kernel that its device has under this handle. */
  failedNode(node: number, kernel: number): { readonly name: string; readonly kernel: KernelFacts | undefined };
}

interface Launches {
  readonly graph: FailingGraph;
  last: number;
}

/** With fewer entries, those of finished launches stay. */
const FEW = 64;

export class GraphLaunches {
  /** In the order of the tickets; an entry holds from the ticket after the one before it. */
  #launches: Launches[] = [];
  /** The list is searched for finished launches when it is longer. It doubles, so that a launch costs the same however many are pending. */
  #limit = FEW;

  /** Returns whether `forget` should be called. */
  add(ticket: number, graph: FailingGraph): boolean {
    const newest = this.#launches.at(-1);
    if (newest?.graph === graph) {
      newest.last = ticket;
      return false;
    }
    return this.#launches.push({ graph, last: ticket }) > this.#limit;
  }

  /** Everything up to this ticket has finished, and its failures were noted. */
  forget(finished: number): void {
    this.#launches = this.#launches.filter(({ last }) => last > finished);
    this.#limit = Math.max(FEW, 2 * this.#launches.length);
  }

  /** The graph that the ticket launched, if it launched one. */
  at(ticket: number): FailingGraph | undefined {
    return this.#launches.find(({ last }) => last >= ticket)?.graph;
  }
}
