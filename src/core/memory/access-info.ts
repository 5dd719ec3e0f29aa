// What is known of a use of memory but its point, for those who order against it later.
// Thread: owner.
import { callSite, UNKNOWN } from '../base/call-site.js';
import type { OperationKind } from '../base/snapshots.js';
import type { StreamContext } from '../device/stream-context.js';
import { areClocksKept, type Clock } from '../timeline/vector-clock.js';
import { latestId } from '../timeline/operation-log.js';

export interface Access {
  /** Of its record; undefined before clocks were kept. */
  readonly clock: Clock | undefined;
  readonly kind: OperationKind;
  readonly label: string | undefined;
  /** The operation's; 0 before clocks were kept. */
  readonly id: number;
  readonly at: string;
}

/** Before clocks are kept no use costs an object. */
const plain: Map<OperationKind, Access> = new Map();
let lastPlain: Access | undefined;

/** Of a record that the site submits next, unless `id` is that of one that it has submitted. */
export function accessOf(
  { timeline, ordering }: StreamContext,
  kind: OperationKind,
  label: string | undefined,
  id: number = latestId() + 1,
): Access {
  if (!areClocksKept()) return plainAccess(kind);
  const at = ordering === 'checked' ? callSite() : UNKNOWN;
  return { clock: timeline.clockEntry.clock, kind, label, id, at };
}

function plainAccess(kind: OperationKind): Access {
  if (lastPlain?.kind === kind) return lastPlain;
  lastPlain = plain.get(kind);
  if (lastPlain === undefined) plain.set(kind, (lastPlain = { clock: undefined, kind, label: undefined, id: 0, at: UNKNOWN }));
  return lastPlain;
}
