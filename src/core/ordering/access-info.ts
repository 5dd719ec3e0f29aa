// What is known of an access to memory besides its point, for the records that are ordered after it.
// Thread: owner.
import { callSite, UNKNOWN } from '../base/call-site.js';
import type { OperationKind } from '../base/snapshots.js';
import { latestId } from '../timeline/operation-log.js';
import type { Clock } from '../timeline/timeline.js';
import type { NodesOfLaunch } from './nodes-of-launch.js';
import type { OrderedStream } from './ordered-stream.js';
import type { Clocks } from './vector-clock.js';

export interface AccessInfo {
  /** The clock of the record; undefined before clocks were kept. */
  readonly clock: Clock | undefined;
  readonly kind: OperationKind;
  readonly label: string | undefined;
  /** The id of the operation; 0 before clocks were kept. */
  readonly id: number;
  /** The place in user code; unknown before clocks were kept. */
  readonly at: string;
  /** Of a launch of a graph. */
  readonly nodes?: NodesOfLaunch | undefined;
}

export class AccessInfos {
  readonly #clocks: Clocks;
  /** One for each kind of operation, so that an access allocates nothing before clocks are kept. */
  readonly #plain: Map<OperationKind, AccessInfo> = new Map();
  #last: AccessInfo | undefined = undefined;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
  }

  /** Of a record that the stream submits next, unless `id` is the id of one that it has submitted. */
  of(
    { timeline }: OrderedStream,
    kind: OperationKind,
    label: string | undefined,
    nodes?: NodesOfLaunch,
    id: number = latestId() + 1,
  ): AccessInfo {
    if (!this.#clocks.areKept) return this.#plainOf(kind);
    // The next use may be of a checked stream, whose error names both places.
    return { clock: timeline.clockEntry.clock, kind, label, id, at: callSite(), nodes };
  }

  #plainOf(kind: OperationKind): AccessInfo {
    if (this.#last?.kind === kind) return this.#last;
    let plain = this.#plain.get(kind);
    if (plain === undefined) this.#plain.set(kind, (plain = { clock: undefined, kind, label: undefined, id: 0, at: UNKNOWN }));
    this.#last = plain;
    return plain;
  }
}
