// Waits on the device: the records that make one stream wait for a point of another.
// Thread: owner.
import type { WaitCause } from '../base/snapshots.js';
import { apartError } from '../base/apart.js';
import type { Point, Timeline } from '../timeline/timeline.js';
import type { OrderedDevice } from './ordered-stream.js';
import { entryOf } from './vector-clock.js';

/**
 * Makes later records of a stream of `device` wait for a ticket of another stream, of any device. Submits a WAIT record and returns true,
 * unless the stream comes after the ticket already.
 */
export function waitOnDevice(device: OrderedDevice, timeline: Timeline, other: Timeline, ticket: number, cause: WaitCause): boolean {
  const entry = entryOf(timeline);
  if (other === timeline) return false;
  const recording = timeline.recording ?? other.recording;
  if (entry.hasWaited(entryOf(other), ticket)) return false;
  if (recording !== undefined) {
    recording.follow(timeline, other, ticket);
    entry.noteWait(entryOf(other), ticket);
    return false;
  }
  if (other.hasReached(ticket)) {
    // If the record faulted, what derives from it is poisoned before this stream reads it, also on another device.
    other.noteFailures(ticket);
    entry.noteWait(entryOf(other), ticket);
    return false;
  }
  if (other.channel !== timeline.channel && (other.channel.isApart || timeline.channel.isApart)) {
    const { backend, info } = other.channel;
    const what = `A wait of device ${device.name} for stream ${other.label} of device ${backend}:${info.ordinal}`;
    throw apartError(device.name, what, 'one of them has a process of its own', 'Await that work in JavaScript, then submit what needs it');
  }
  device.submit(timeline, device.encoder.wait(timeline.slot, other.channel.id, other.slot, ticket));
  entry.noteWait(entryOf(other), ticket);
  timeline.log.wait(timeline.last, cause, other, ticket);
  return true;
}

/** Do later records of the stream come after all these points without a further wait? */
export function needsNoWait(timeline: Timeline, points: readonly Point[]): boolean {
  const entry = entryOf(timeline);
  return points.every(({ timeline: other, ticket }) => {
    return other === timeline || other.hasReached(ticket) || entry.hasWaited(entryOf(other), ticket);
  });
}
