// The devices of one clock: their records may name each other's memory and streams, and they share one CompletionPolling.
import { badArgument, show } from '../core/base/arguments.js';
import { StateError } from '../core/base/errors.js';
import { AccessTracker } from '../core/ordering/access-tracker.js';
import { CompletionPolling } from '../core/waits/completion-polling.js';
import { MemorySpace } from '../protocol/protocol.gen.js';
import type { TestChannel } from './channel.js';
import { type TestClock, VirtualClock } from './clock.js';
import type { Block } from './memory.js';

/** Channels of real devices have small numbers. */
let lastChannel = 2 ** 30;

export class DeviceGroup {
  readonly clock: VirtualClock;
  readonly progress: CompletionPolling = new CompletionPolling(() => undefined);
  readonly tracker: AccessTracker = new AccessTracker();
  /** Devices that were made on the clock. */
  made = 0;
  readonly #channels: Map<number, TestChannel> = new Map();
  #lastFailure = 0;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  add(channel: TestChannel): number {
    const id = ++lastChannel;
    this.#channels.set(id, channel);
    return id;
  }

  remove(channel: TestChannel): void {
    this.#channels.delete(channel.id);
  }

  channel(device: number): TestChannel {
    const found = this.#channels.get(device);
    if (found === undefined) throw new StateError('ERR_MILLRACE_STATE', 'A graph names a device of another clock.');
    return found;
  }

  nextFailure(): number {
    return ++this.#lastFailure;
  }

  /** The last completed ticket of a stream; infinity if the device is closed. */
  completed(device: number, stream: number): number {
    return this.#channels.get(device)?.streams.completed(stream) ?? Number.POSITIVE_INFINITY;
  }

  block(device: number, space: MemorySpace, handle: number): Block | undefined {
    const channel = this.#channels.get(device);
    if (channel === undefined) throw new StateError('ERR_MILLRACE_STATE', 'A copy names memory of a device of another clock.');
    return (space === MemorySpace.DEVICE ? channel.memory : channel.host).get(handle);
  }

  /** Operations of one device have finished: settles promises, and continues streams of other devices that waited. */
  progressed(by: TestChannel): void {
    this.progress.wake();
    for (const channel of this.#channels.values()) if (channel !== by) channel.streams.issueWaitingSoon();
  }
}

const groups: WeakMap<TestClock, DeviceGroup> = new WeakMap();

/** Throws ArgumentError for what `createTestClock` did not make. */
export function groupOf(clock: TestClock): DeviceGroup {
  if (!(clock instanceof VirtualClock)) throw badArgument('clock', clock, `The clock (${show(clock)}) was not made by createTestClock.`);
  let group = groups.get(clock);
  if (group === undefined) groups.set(clock, (group = new DeviceGroup(clock)));
  return group;
}
