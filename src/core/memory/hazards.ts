// Uses of the same bytes on two streams that nothing orders: what `checked` streams refuse, and what the refusal tells.
// Thread: owner.
import { callSite, UNKNOWN } from '../base/call-site.js';
import { type HazardSite, type OperationKind, StreamHazardError } from '../base/errors.js';
import type { StreamSite } from '../device/device-core.js';
import { areClocksKept, type Clock } from '../timeline/clock.js';
import { latestId } from '../timeline/operation-log.js';
import type { Timeline } from '../timeline/timeline.js';
import type { Storage } from './storage.js';

/** What is known of a use but its point. */
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
  { timeline, ordering }: StreamSite,
  kind: OperationKind,
  label: string | undefined,
  id: number = latestId() + 1,
): Access {
  if (!areClocksKept()) return plainAccess(kind);
  const at = ordering === 'checked' ? callSite() : UNKNOWN;
  return { clock: timeline.hand.clock, kind, label, id, at };
}

function plainAccess(kind: OperationKind): Access {
  if (lastPlain?.kind === kind) return lastPlain;
  lastPlain = plain.get(kind);
  if (lastPlain === undefined) plain.set(kind, (lastPlain = { clock: undefined, kind, label: undefined, id: 0, at: UNKNOWN }));
  return lastPlain;
}

/** One of the two uses. */
export interface Racing {
  readonly timeline: Timeline;
  readonly access: Access;
  readonly isWrite: boolean;
}

export function hazardError(storage: Storage, device: string, first: Racing, second: Racing): StreamHazardError {
  // Which device a foreign stream was of is not kept; the array's own is all but always right.
  const [one, other] = [siteOf(first, storage.core.name), siteOf(second, device)];
  const array = storage.label;
  const madeAt = storage.madeAt ?? UNKNOWN;
  const message =
    `${tell(other)} would ${other.access} array ${array}${place(madeAt, 'made')}, and nothing orders that after ${tell(one).replace(/^T/, 't')}, ` +
    `which ${one.access === 'read' ? 'reads' : 'writes'} it. Let stream ${other.stream} wait for stream ${one.stream} or an event of it.`;
  return new StreamHazardError(
    'ERR_MILLRACE_HAZARD',
    message,
    { array, madeAt, first: one, second: other },
    { device, stream: other.stream, operation: other.operation },
  );
}

function siteOf({ timeline, access: { id, kind, label, at }, isWrite }: Racing, device: string): HazardSite {
  const stream = timeline.label;
  return { stream, operation: { id, kind, label, stream, device }, access: isWrite ? 'write' : 'read', at };
}

function tell({ stream, operation: { kind, label, device }, at }: HazardSite): string {
  return `The ${kind}${label === undefined ? '' : ` ${label}`} on stream ${stream} of device ${device}${place(at)}`;
}

function place(at: string, what?: string): string {
  if (at === UNKNOWN) return '';
  return ` (${what === undefined ? '' : `${what} `}at ${at})`;
}
