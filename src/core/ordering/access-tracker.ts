// What must this record wait for? The access tracker answers that for every record of a thread.
//
// Streams run apart. Two records of different streams that use the same bytes, one of them writing, must not run at the same time. The
// caller need not say which records these are: each record names the memory that it uses, and the tracker finds the earlier records
// that conflict with it. A stream's `ordering` says what follows. 'tracked' submits a wait on the device for each of them. 'checked'
// refuses the record with a StreamHazardError unless something orders it after them. 'explicit' does neither.
//
// One record takes these steps:
//   1. `begin(stream)` gives a RecordAccesses, the scratch space of one record; `add` collects each memory, byte range and mode.
//   2. `order` looks whether another stream has used one of the memories (TrackedMemory.users). If none has, that is all: a program
//      with one stream pays for a comparison an argument.
//   3. Otherwise it visits the byte intervals that the record touches (AccessHistory). Each knows its last writes, the reads since
//      then, and the copies of `read`. A read comes after the writes, a write comes after all three.
//   4. Checked: the vector clock of the stream (ClockEntry) must know each of these points. If one is missing, hazardError tells which.
//   5. Tracked: the points are reduced to the last one of each stream. waitOnDevice submits a WAIT for each, unless the point has
//      completed or an earlier wait of the stream covers it, and the stream's clock takes over the clocks of these points.
//   6. The caller encodes and submits the record. `commit` adds the accesses to the histories, with the new ticket.
//
// Waits that user code asks for (`waitEvent`, `waitStream`) go through `waitFor`, and completions that the host has observed reach the
// clocks over `Timeline.clockEntry`. A free waits for all users of its memory: StreamOrderedFrees of the device uses `wait`.
//
//   file                 answers
//   record-accesses.ts   what does this record use, and which earlier accesses conflict with it?
//   tracked-memory.ts    who has used this memory? Storage extends it.
//   access-history.ts    which records wrote and read which bytes?
//   latest-accesses.ts   the last access of each stream, of one interval or one memory
//   access-info.ts       what is known of an access besides its point: clock, operation, place in user code
//   vector-clock.ts      does this point come before the next record of that stream?
//   wait-records.ts      the WAIT record, and when it is not needed
//   hazards.ts           the StreamHazardError
//   ordered-stream.ts    what the tracker asks of streams and devices
//
// Inside a capture the same steps order the nodes of the graph: `add` takes a stand-in for each memory, and waitOnDevice adds edges
// instead of WAIT records (core/graphs/capture-session.ts). A launch of a graph is one record that writes one memory, the graph's.
//
// Other folders import this file only; memory/storage.ts and core/graphs also import tracked-memory.ts, and StreamContext and DeviceCore
// import the interfaces of ordered-stream.ts that they implement.
// Thread: owner; the devices of a thread share one tracker, because a record may use memory of several.
import type { WaitCause } from '../base/snapshots.js';
import { latestId } from '../timeline/operation-log.js';
import type { Point, StreamClock, Timeline } from '../timeline/timeline.js';
import { AccessInfos } from './access-info.js';
import { needsNoWait, waitOnDevice } from './wait-records.js';
import type { OrderedDevice, OrderedStream } from './ordered-stream.js';
import { RecordAccesses } from './record-accesses.js';
import type { TrackedMemory } from './tracked-memory.js';
import { ClockEntry, Clocks, entryOf } from './vector-clock.js';

export type { RecordAccesses } from './record-accesses.js';

export class AccessTracker {
  readonly #clocks: Clocks = new Clocks();
  readonly #infos: AccessInfos = new AccessInfos(this.#clocks);
  readonly #scratch: RecordAccesses = new RecordAccesses(this.#clocks, this.#infos);

  // ── records ──

  /** Begins the next record of a stream. It must end with `commit`, `submit` or `abandon`. */
  begin(stream: OrderedStream): RecordAccesses {
    let record = this.#scratch;
    while (record.isOpen) record = record.inner;
    record.begin(stream);
    return record;
  }

  /** An array was disposed or a stream closed, maybe by a getter among the arguments of a record that is being made. */
  interrupt(): void {
    this.#scratch.interrupt();
  }

  /** The stream has submitted the record that allocates the memory, with this ticket: that counts as the first write. */
  allocated(memory: TrackedMemory, stream: OrderedStream, ticket: number): void {
    const info = this.#infos.of(stream, 'alloc', undefined, undefined, latestId());
    if (stream.ordering === 'checked') memory.madeAt = info.at;
    memory.access(stream.timeline, ticket, 0, memory.byteLength, 'write', info, true);
  }

  // ── waits ──

  /**
   * Makes later records of a stream of `device` come after a point of another stream, of any device: `cuStreamWaitEvent`. Checked streams
   * count that as an order. Returns false if the stream came after the point already, so that no record was submitted.
   */
  waitFor(device: OrderedDevice, timeline: Timeline, point: Point, cause: WaitCause): boolean {
    const { timeline: other, ticket, clock = other.at(ticket).clock } = point;
    const isNeeded = waitOnDevice(device, timeline, other, ticket, cause);
    // A stream of a capture may wait for others and have no node behind that wait.
    if (point.nodes !== undefined) timeline.recording?.follow(timeline, other, ticket, point.nodes);
    entryOf(timeline).follow(entryOf(other), ticket, clock);
    return isNeeded;
  }

  /** The same wait, which checked streams do not count as an order: for frees, whose stream depends on timing. */
  waitUncounted(device: OrderedDevice, timeline: Timeline, { timeline: other, ticket }: Point): void {
    waitOnDevice(device, timeline, other, ticket, 'array');
  }

  /** Do later records of the stream come after all these points without a further wait? */
  needsNoWait(timeline: Timeline, points: readonly Point[]): boolean {
    return needsNoWait(timeline, points);
  }

  // ── vector clocks ──

  /** The vector clock of a new stream. */
  newClock(): StreamClock {
    return new ClockEntry(this.#clocks);
  }

  /** Keeps vector clocks from now on: the thread has a checked stream. */
  keepClocks(): void {
    this.#clocks.keep();
  }

  /** Has the thread had a checked stream? */
  get areClocksKept(): boolean {
    return this.#clocks.areKept;
  }

  /** The stream was lost with its device; see `ClockEntry.lose`. */
  lose(timeline: Timeline, reached: number | undefined): void {
    entryOf(timeline).lose(reached);
  }
}
