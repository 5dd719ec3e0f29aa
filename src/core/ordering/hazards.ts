// The error of a checked stream: two records use the same bytes, at least one of them writes, and nothing orders them.
// Thread: owner.
import { UNKNOWN } from '../base/call-site.js';
import { type HazardSite, StateError, StreamHazardError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';
import type { AccessInfo } from './access-info.js';
import type { TrackedMemory } from './tracked-memory.js';

/** One of the two accesses. */
export interface RacingAccess {
  readonly timeline: Timeline;
  readonly info: AccessInfo;
  readonly isWrite: boolean;
}

/** `device` is the device of the second access. */
export function hazardError(memory: TrackedMemory, device: string, first: RacingAccess, second: RacingAccess): StreamHazardError {
  // The device of the first access is not kept. It is nearly always the memory's own.
  const [one, other] = [siteOf(first, memory.core.name), siteOf(second, device)];
  const array = memory.label;
  const madeAt = memory.madeAt ?? UNKNOWN;
  const message =
    `${tell(other)} would ${other.access} array ${array}${place(madeAt, 'made')}. ${tell(one)} ` +
    `${one.access === 'read' ? 'reads' : 'writes'} the same array, and nothing orders the two. Let stream ${other.stream} wait for stream ${one.stream} or an event of it.`;
  return new StreamHazardError(
    'ERR_MILLRACE_HAZARD',
    message,
    { array, madeAt, first: one, second: other },
    { device, stream: other.stream, operation: other.operation },
  );
}

/** The error of a record that uses an array of a capture before the graph was launched. */
export function noContents(memory: TrackedMemory): StateError {
  const message = `Array ${memory.label}${place(memory.madeAt ?? UNKNOWN, 'made')} was allocated by a capture: it has no contents before the graph is launched.`;
  return new StateError('ERR_MILLRACE_STATE', message, { device: memory.core.name });
}

function siteOf({ timeline, info: { id, kind, label, at }, isWrite }: RacingAccess, device: string): HazardSite {
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
