// Partitions: shares of a device for streams of their own.
// Thread: the one that opened the device.
import { badArgument, belongsTo, refuseSurplus, show, wrongDevice } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import { StateError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from '../waits/deadlock-check.js';
import type { Device } from './device.js';
import type { DeviceContext } from './device-context.js';

/** How many multiprocessors of a GPU, or threads of a CPU device, a partition is to have. 'rest': all that the other shares leave. */
export type Share = number | 'rest';

const MOST_SHARES = 64;

/**
 * A share of a device, made by `device.partition`: `CUgreenCtx`. The kernels of its streams (`device.createStream({ partition })`) run on its
 * multiprocessors alone. It ends with its device.
 */
export class Partition implements AsyncDisposable {
  /** How many multiprocessors, on a CPU device threads, it has. */
  readonly multiprocessors: number;
  /** @internal */
  readonly id: number;
  readonly #context: DeviceContext;
  /** The last launches of graphs that have nodes of the partition, by stream. */
  readonly #graphs: Map<Timeline, number> = new Map();
  #isOpen = true;
  #closing: Promise<void> | undefined = undefined;

  /** @internal Made by `device.partition`. */
  constructor(context: DeviceContext, id: number, multiprocessors: number) {
    this.#context = context;
    this.id = id;
    this.multiprocessors = multiprocessors;
  }

  /** A Device that has the partition's device open. */
  get device(): Device {
    return this.#context.deviceOf(undefined);
  }

  /** 'closed' after `close`, and once the device is closed or lost. */
  get state(): 'open' | 'closed' {
    return this.#isOpen && this.#context.core.state === 'open' ? 'open' : 'closed';
  }

  /**
   * Closes the streams of the partition, which waits for their pending work, and then the partition: `cuGreenCtxDestroy`. Graphs with nodes
   * of it finish their pending launches, and cannot be launched any more. Rejects with StateError, and leaves it open, inside a `hold` that
   * it would have to wait for. When all partitions are closed, the device can be divided anew.
   */
  close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Throws unless streams of the context can be of the partition. */
  check(context: DeviceContext): void {
    const { core } = this.#context;
    if (context !== this.#context)
      throw wrongDevice('partition', this, `The partition (${this.multiprocessors}) ${belongsTo(core.name, context.core.name)}.`);
    this.checkOpen();
  }

  /** @internal */
  checkOpen(): void {
    if (this.#isOpen) return;
    const { core } = this.#context;
    const message = `The partition of device ${core.name} is closed: device.partition() makes others.`;
    throw new StateError('ERR_MILLRACE_STATE', message, { device: core.name });
  }

  /** @internal */
  noteGraph(timeline: Timeline, ticket: number): void {
    if (!this.#graphs.has(timeline)) for (const [other, last] of this.#graphs) if (other.hasReached(last)) this.#graphs.delete(other);
    this.#graphs.set(timeline, ticket);
  }

  async #close(): Promise<void> {
    const { core, partitions, streams } = this.#context;
    this.#isOpen = false;
    try {
      await Promise.all([...streams].filter(({ partition }) => partition === this).map((stream) => stream.close()));
      for (const [timeline, ticket] of this.#graphs) {
        const refused = refuseDeadlock(timeline, ticket);
        if (refused !== undefined) throw refused;
        await core.waits.until(timeline, ticket);
      }
      if (core.state === 'open') await core.channel.ask('endPartition', this.id);
    } catch (error) {
      // The partitions of a device that is closed or lost have ended with it.
      if (core.state === 'open') {
        this.#isOpen = true;
        this.#closing = undefined;
        throw error;
      }
    }
    partitions.ended(this);
  }
}

/** The partitions of a device that one thread has made. */
export class Partitions {
  readonly #context: DeviceContext;
  readonly #open: Set<Partition> = new Set();
  #isDividing = false;

  constructor(context: DeviceContext) {
    this.#context = context;
  }

  async divide(shares: readonly Share[]): Promise<readonly Partition[]> {
    const { core, owner } = this.#context;
    const { name } = core;
    const { multiprocessors, backend } = owner.info;
    const units = backend === 'cuda' ? 'multiprocessors' : 'threads';
    const numbers = checkShares(shares, multiprocessors, `${multiprocessors} ${units} of device ${name}`);
    if (this.#isDividing || this.#open.size > 0) {
      const message = `Device ${name} is ${this.#isDividing ? 'being divided' : 'divided already'}: close its partitions first.`;
      throw new StateError('ERR_MILLRACE_STATE', message, { device: name });
    }
    this.#isDividing = true;
    try {
      const { unit, partitions } = await core.channel.ask('divide', Float64Array.from(numbers));
      if (partitions.length === 0) {
        const message = `The shares (${shares.join(', ')}) are more than the ${multiprocessors} ${units} of device ${name}, which gives them in units of ${unit}: ask for fewer.`;
        throw badArgument('shares', shares, message, multiprocessors);
      }
      const made = partitions.map((each) => new Partition(this.#context, each.id, each.multiprocessors));
      for (const partition of made) this.#open.add(partition);
      return made;
    } finally {
      this.#isDividing = false;
    }
  }

  ended(partition: Partition): void {
    this.#open.delete(partition);
  }
}

/** Throws unless the value is an open partition of this device. */
export function checkPartition(partition: unknown, context: DeviceContext): void {
  if (!(partition instanceof Partition))
    throw badArgument('partition', partition, `The partition (${show(partition)}) is not one of device.partition().`);
  partition.check(context);
}

/** The shares as numbers, 0 for the rest. `all`: what there is, in words. */
function checkShares(shares: unknown, most: number, all: string): readonly number[] {
  if (!Array.isArray(shares) || shares.length === 0 || shares.length > MOST_SHARES)
    throw badArgument(
      'shares',
      shares,
      `The shares (${show(shares)}) are not a list of 1 to ${MOST_SHARES} numbers or 'rest'.`,
      MOST_SHARES,
    );
  const list: readonly unknown[] = shares;
  const numbers = list.map((share, n) => {
    if (share === 'rest' && list.indexOf('rest') === n) return 0;
    if (share === 'rest')
      throw badArgument(`shares[${n}]`, share, `Two of the shares are 'rest': one share has all that the others leave.`);
    if (typeof share === 'number' && Number.isInteger(share) && share >= 1 && share <= most) return share;
    const message = `The share shares[${n}] (${show(share)}) is neither a whole number from 1 to the ${all} nor 'rest'.`;
    throw badArgument(`shares[${n}]`, share, message, most);
  });
  const sum = numbers.reduce((total, share) => total + share, 0) + (numbers.includes(0) ? 1 : 0);
  if (sum <= most) return numbers;
  throw badArgument('shares', shares, `The shares (${list.join(', ')}) are more than the ${all}: ask for fewer.`, most);
}

describeAs(
  Partition.prototype,
  ({ device, multiprocessors, state }) => `Partition of ${device.info.id} (${multiprocessors}, ${state})`,
  ({ device, multiprocessors, state }) => ({ device: device.info.id, multiprocessors, state }),
);
