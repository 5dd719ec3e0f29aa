// Uses of the same bytes on two streams that nothing orders: what `checked` streams refuse, and what the refusal tells.
// Thread: owner.
import { UNKNOWN } from '../base/call-site.js';
import { type HazardSite, StreamHazardError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';
import type { Access } from './access-info.js';
import type { Storage } from './storage.js';

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
