// The error of a checked stream: two records use the same bytes, at least one of them writes, and nothing orders them.
// Thread: owner.
import { UNKNOWN } from '../base/call-site.js';
import { type HazardSite, StateError, StreamHazardError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';
import type { AccessInfo } from './access-info.js';
import type { UsedMemory } from './nodes-of-launch.js';
import type { OrderedStream } from './ordered-stream.js';
import type { TrackedMemory } from './tracked-memory.js';

/** One of the two accesses. */
export interface RacingAccess {
  readonly timeline: Timeline;
  readonly info: AccessInfo;
  readonly isWrite: boolean;
}

/** Bytes of a memory that both accesses use. */
export interface RacedBytes {
  readonly memory: UsedMemory;
  readonly start: number;
  readonly end: number;
}

/** `device` is the device of the second access. */
export function hazardError(bytes: RacedBytes, device: string, first: RacingAccess, second: RacingAccess): StreamHazardError {
  const { memory } = bytes;
  const other = siteOf(second, device, bytes, !first.isWrite);
  // The device of the first access is not kept. It is nearly always the memory's own.
  const one = siteOf(first, memory.core.name, bytes, other.access === 'read');
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
  const message = `Array ${memory.label}${place(memory.madeAt ?? UNKNOWN, 'made')} was allocated by a capture and has no contents yet: launch the graph first.`;
  return new StateError('ERR_MILLRACE_STATE', message, { device: memory.core.name });
}

/** The error of a call whose arguments dispose this memory while they are read. */
export function endedError(memory: TrackedMemory): StateError {
  const message = `Array ${memory.label} of device ${memory.core.name} was disposed while the arguments of the call were read.`;
  return new StateError('ERR_MILLRACE_STATE', message, { device: memory.core.name });
}

/** Bytes that a launch gets for a parameter. */
export interface GivenBytes {
  readonly memory: TrackedMemory;
  readonly start: number;
  readonly end: number;
  readonly isWrite: boolean;
  readonly name: string;
}

let hasWarned = false;

/** A launch gets the same bytes for two parameters and writes them. Throws StreamHazardError on a checked stream, elsewhere warns once. */
export function sameBytes({ core, ordering, timeline }: OrderedStream, info: AccessInfo, one: GivenBytes, other: GivenBytes): void {
  const { memory } = one;
  const [first, second] = [one, other].map((bytes) => siteOf({ timeline, info, isWrite: bytes.isWrite }, core.name, bytes, false)) as [
    HazardSite,
    HazardSite,
  ];
  const madeAt = memory.madeAt ?? UNKNOWN;
  const array = `${memory.label}${place(madeAt, 'made')}`;
  const message =
    `${tell(second)} gets the same bytes of array ${array} for its parameters ${one.name} and ${other.name}, and writes them: a thread may read ` +
    'an element before or after another thread writes it. If each thread uses only elements of its own, declare one inout parameter instead of two; ' +
    'otherwise give two arrays.';
  if (ordering === 'checked') {
    const facts = { device: core.name, stream: timeline.label, operation: second.operation };
    throw new StreamHazardError('ERR_MILLRACE_HAZARD', message, { array: memory.label, madeAt, first, second }, facts);
  }
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(`${message} Later cases are not reported.`, { type: 'MillraceWarning', code: 'MILLRACE_SAME_BYTES' });
}

/** `mustWrite`: the other access reads, so this one writes. */
function siteOf(
  { timeline, info, isWrite }: RacingAccess,
  device: string,
  { memory, start, end }: RacedBytes,
  mustWrite: boolean,
): HazardSite {
  const { id, kind, label, at, nodes } = info;
  const stream = timeline.label;
  const user = nodes?.userOf(memory, start, end, mustWrite);
  const access = (user?.isWrite ?? isWrite) ? 'write' : 'read';
  return { stream, operation: { id, kind, label, stream, device }, access, at, ...(user && { node: user.node }) };
}

function tell({ stream, operation: { kind, label, device }, at, node }: HazardSite): string {
  const where = `on stream ${stream} of device ${device}`;
  if (node === undefined) return `The ${nameOf(kind, label)} ${where}${place(at)}`;
  const captured = place(node.at ?? UNKNOWN, 'captured');
  return `The node ${nameOf(node.kind, node.label)}${captured} of graph ${node.graph} (launched ${where}${at === UNKNOWN ? '' : ` at ${at}`})`;
}

function nameOf(kind: string, label: string | undefined): string {
  return label === undefined ? kind : `${kind} ${label}`;
}

function place(at: string, what?: string): string {
  if (at === UNKNOWN) return '';
  return ` (${what === undefined ? '' : `${what} `}at ${at})`;
}
