// What streams are doing and what they wait for, found from the owner's log and the timeline words: it makes no driver call.
// Thread: owner.
import type { OperationInfo, StreamSnapshot, WaitCause, WaitKind } from '../base/snapshots.js';
import type { Channel } from '../channel/channel.js';
import type { WaitNote } from '../timeline/operation-log.js';
import type { Point, Timeline } from '../timeline/timeline.js';

/** The WaitKind of a park reason (ParkReasonName); reasons without one are not reported. */
const KINDS: ReadonlyMap<string, WaitKind> = new Map([
  ['point', 'stream'],
  ['build', 'compile'],
  ['memory', 'memory'],
  ['pin', 'pinning'],
  ['host', 'host'],
  ['peer', 'peer'],
  ['transfer', 'transfer'],
]);

type Parked = ReturnType<Channel['stats']>['parked'];

/** Snapshots of streams. `ended`: the channel of a closed or lost device, which is not queried. */
export function lookAt(timelines: Iterable<Timeline>, ended?: Channel): readonly StreamSnapshot[] {
  const parked = new Map<Channel, Parked>();
  if (ended !== undefined) parked.set(ended, []);
  return Array.from(timelines, (timeline) => look(timeline, parked).snapshot);
}

/** Why points are not reached: the streams involved, and a message about the first of them. */
export interface WaitDiagnosis {
  readonly streams: readonly StreamSnapshot[];
  readonly message: string;
}

/** Diagnoses the streams of these points, and the streams that they wait for, transitively. */
export function diagnoseWait(points: Iterable<Point>): WaitDiagnosis {
  const pending = [...points].filter(({ timeline, ticket }) => !timeline.hasReached(ticket));
  const parked = new Map<Channel, Parked>();
  const looks = new Map<Timeline, Look>();
  const queue = pending.map(({ timeline }) => timeline);
  for (const timeline of queue) {
    if (looks.has(timeline)) continue;
    const seen = look(timeline, parked);
    looks.set(timeline, seen);
    if (seen.other !== undefined) queue.push(seen.other);
  }
  return { streams: Array.from(looks.values(), ({ snapshot }) => snapshot), message: inWords(queue[0], looks) };
}

interface Look {
  readonly snapshot: StreamSnapshot;
  /** What it waits for, and the other stream if it waits for one. */
  readonly note?: WaitNote;
  readonly other?: Timeline | undefined;
}

function look(timeline: Timeline, parked: Map<Channel, Parked>): Look {
  const { log, label, pending } = timeline;
  const { device } = log;
  const reachedMs = log.look();
  if (pending === 0) return { snapshot: { stream: label, device, pending } };
  const ticket = timeline.completed + 1;
  const current = log.at(ticket);
  const [wait] = log.waits(ticket);
  const waitingFor = wait === undefined ? parkedFor(timeline, ticket, reachedMs, parked) : notedFor(wait, current, reachedMs);
  return { snapshot: { stream: label, device, pending, ...(current && { current }), ...(waitingFor && { waitingFor }) }, ...wait };
}

function notedFor(
  { note, other }: { readonly note: WaitNote; readonly other: Timeline | undefined },
  current: OperationInfo | undefined,
  reachedMs: number,
) {
  const { cause, otherTicket, atMs, wasNext } = note;
  const operation = other === undefined ? current : other.log.at(otherTicket);
  return {
    kind: cause,
    ...(other && { stream: other.label }),
    ...(operation && { operation }),
    sinceMs: wasNext ? atMs : Math.max(atMs, reachedMs),
  };
}

/** Why the channel parked the stream before the ticket; undefined if the ticket was issued. */
function parkedFor(timeline: Timeline, ticket: number, sinceMs: number, parked: Map<Channel, Parked>) {
  const { channel, slot, last } = timeline;
  let all = parked.get(channel);
  if (all === undefined) parked.set(channel, (all = statsOf(channel)));
  const park = all.find(({ stream }) => stream === slot);
  // Memory that no stream allocates is a variable of a module that is being built.
  const reason = park?.reason === 'point' && channel.isBinding ? 'build' : park?.reason;
  const kind = park && last - park.deferred + 1 <= ticket ? KINDS.get(reason as string) : undefined;
  return kind && { kind, sinceMs };
}

/** The parked streams; none if the channel has ended meanwhile. */
function statsOf(channel: Channel): Parked {
  try {
    return channel.stats().parked;
  } catch {
    return [];
  }
}

/** The chain of waits in words: 'stream B waits for stream A, at launch saxpy'. */
function inWords(first: Timeline | undefined, looks: ReadonlyMap<Timeline, Look>): string {
  if (first === undefined) return '';
  let words = `stream ${first.label} `;
  let at: Timeline = first;
  let awaited: OperationInfo | undefined;
  const named = new Set<Timeline>();
  for (;;) {
    named.add(at);
    const { snapshot, note, other: next } = looks.get(at) as Look;
    if (note === undefined || next === undefined || named.has(next)) return words + stand(snapshot, at === first, awaited);
    const operation = snapshot.waitingFor?.operation;
    words += `${at === first ? '' : ', which '}waits for ${THINGS[note.cause]}stream ${next.label}`;
    if (next.log.device !== at.log.device) words += ` of device ${next.log.device}`;
    awaited = operation;
    at = next;
  }
}

/** The position of the last stream of the chain. */
function stand({ current, waitingFor }: StreamSnapshot, isFirst: boolean, awaited: OperationInfo | undefined): string {
  const where = current && `at ${nameOf(current)}`;
  const why = waitingFor && REASONS[waitingFor.kind];
  if (isFirst) return [where === undefined ? 'is busy' : `is ${where}`, ...(why === undefined ? [] : [why])].join(', ');
  const isAwaited = awaited === undefined || awaited.id === current?.id;
  const point = awaited && `, at ${nameOf(awaited)}`;
  const there = isAwaited || where === undefined ? '' : `, and is ${where}`;
  return `${point ?? ''}${there}${why === undefined ? '' : `, ${why}`}`;
}

const nameOf = ({ kind, label }: OperationInfo): string => (label === undefined ? kind : `${kind} ${label}`);

const THINGS: Readonly<Record<WaitCause, string>> = { event: 'an event of ', array: 'an array of ', stream: '', host: '' };

const REASONS: Partial<Record<WaitKind, string>> = {
  host: 'held by a function',
  compile: 'whose kernel is being built',
  memory: 'which needs more free device memory',
  pinning: 'whose host memory is being page-locked',
  peer: 'whose peer route is being tested',
  transfer: 'whose bytes are being copied through page-locked memory',
  stream: 'which waits for another stream',
};
