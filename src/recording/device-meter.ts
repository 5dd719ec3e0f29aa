// Counts the operations that this thread submits to one device for the usages in whose contexts it does.
// Thread: owner.
import { DeviceTimes, Opcode, RecordedKind } from '../protocol/protocol.gen.js';
import type { OperationKind } from '../core/base/snapshots.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { kindOfOpcode } from '../core/timeline/operation-log.js';
import type { Timeline } from '../core/timeline/timeline.js';
import { DeviceFacts, type Fact, type FactListener } from './device-facts.js';
import { RecordReader, type UsageCounts } from './usage-counts.js';
import type { Target } from './usage-scope.js';

/** Facts between two turns of an event loop that is busy for half a second. */
const MOST_FACTS = 2 ** 20;
/** What the device works on. Others order, allocate or call functions. */
const WORK: ReadonlySet<OperationKind | undefined> = new Set<OperationKind>(['launch', 'copy', 'fill', 'graph']);

type Targets = readonly Target[];

export class DeviceMeter implements FactListener {
  readonly core: DeviceCore;
  readonly #facts: DeviceFacts;
  #hasTimes = false;
  readonly #current: () => Targets;
  readonly #record: RecordReader;
  /** By the stream's slot and the record's ticket: operations whose times the device has not told. */
  readonly #untold: Map<number, Map<number, Targets>> = new Map();
  /** By handle. */
  readonly #memory: Map<number, { readonly targets: Targets; readonly bytes: number }> = new Map();

  /** `current`: what the running code counts for. */
  constructor(core: DeviceCore, current: () => Targets) {
    this.core = core;
    this.#current = current;
    this.#facts = DeviceFacts.of(core);
    this.#record = new RecordReader(core.encoder.block);
    this.#facts.add(this, undefined);
  }

  /** From now on the device tells the times of operations, if it can. */
  askForTimes(): void {
    if (this.#hasTimes || !this.#facts.hasRecorder) return;
    this.#hasTimes = true;
    this.#facts.add(this, { most: MOST_FACTS, times: DeviceTimes.SHARED });
  }

  submitted(timeline: Timeline, ticket: number, opcode: number): void {
    if (opcode === Opcode.FREE) this.#freed(this.#record.handle);
    const targets = this.#current();
    if (targets.length === 0) return;
    const record = this.#record;
    const kind = kindOfOpcode(opcode);
    for (const { scope } of targets) {
      scope.points.set(timeline, { core: this.core, ticket });
      if (!this.#hasTimes) scope.lacksTimes(this.core.name);
    }
    if (kind === 'launch' || kind === 'graph') this.#count(targets, 'launches', 1);
    const bytes = record.allocated(opcode);
    if (bytes !== undefined) {
      this.#count(targets, 'allocatedBytes', bytes);
      this.#memory.set(record.handle, { targets, bytes });
      this.#hold(targets, bytes);
    }
    record.copied(opcode, (direction, copied) => this.#count(targets, direction, copied));
    if (this.#hasTimes && WORK.has(kind)) this.#expect(timeline.slot, ticket, targets);
  }

  named(): void {
    this.#count(this.#current(), 'operations', 1);
  }

  noted({ kind, slot, ticket, beginMs, endMs }: Fact): void {
    if (kind !== RecordedKind.RAN) return;
    const untold = this.#untold.get(slot);
    const targets = untold?.get(ticket);
    if (targets === undefined) return;
    untold?.delete(ticket);
    this.#count(targets, 'deviceMs', endMs - beginMs);
    for (const { scope } of targets) scope.untold--;
  }

  lost(): void {
    for (const tickets of this.#untold.values())
      for (const targets of tickets.values()) for (const { scope } of targets) scope.lacksTimes(this.core.name);
  }

  read(): void {
    this.#facts.read();
  }

  /** Reads the times of everything that has finished. */
  ending(): Promise<void> {
    return this.#facts.ending();
  }

  /** Nothing more is told of the operations of usages that are final: they did not run. */
  forget(): void {
    for (const tickets of this.#untold.values())
      for (const [ticket, targets] of tickets) if (targets.every(({ scope }) => scope.isFinal)) tickets.delete(ticket);
  }

  end(): void {
    this.#facts.delete(this);
  }

  #expect(slot: number, ticket: number, targets: Targets): void {
    let tickets = this.#untold.get(slot);
    if (tickets === undefined) this.#untold.set(slot, (tickets = new Map()));
    tickets.set(ticket, targets);
    for (const { scope } of targets) scope.untold++;
  }

  #freed(handle: number): void {
    const memory = this.#memory.get(handle);
    if (memory === undefined) return;
    this.#memory.delete(handle);
    this.#hold(memory.targets, -memory.bytes);
  }

  #hold(targets: Targets, bytes: number): void {
    for (const { scope, share } of targets) scope.hold(this.core.name, bytes * share);
  }

  #count(targets: Targets, key: keyof UsageCounts, amount: number): void {
    for (const { scope, share } of targets) scope.count(this.core.name, key, amount * share);
  }
}
