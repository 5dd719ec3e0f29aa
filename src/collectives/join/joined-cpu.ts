// A rank whose device is a CPU device: the elements go through the store, which is not for speed.
//
// A collective is an external function of the stream: it waits for the operand's elements, exchanges them, and writes what came into an array that
// the record names. So it is ordered, and what derives from a failure is poisoned.
// Thread: owner.
import { badArgument, refuseSurplus } from '../../core/base/arguments.js';
import type { DeviceArray } from '../../core/api/array.js';
import type { Device } from '../../core/api/device.js';
import { onLeave } from '../../core/api/open-devices.js';
import type { Stream } from '../../core/api/stream.js';
import { DTYPES } from '../../core/elements/dtype.js';
import { checkShape } from '../../core/elements/shape.js';
import type { Operation } from '../../core/operations/operation.js';
import { MAX_LAUNCH_ARGS } from '../../protocol/protocol.gen.js';
import { reduced } from '../reduction.js';
import { type Ended, type Joint, Joined } from './joined.js';
import type { Giving, Member } from './member.js';
import type { JoinedCommunicator } from './types.js';

const NO_BYTES = new Uint8Array();
const REDUCING: ReadonlySet<string> = new Set(['allReduce', 'reduce', 'reduceScatter']);
/** The store tells of a time-out first. */
const SLACK = 3;

/** One call. */
interface Exchange {
  readonly joint: Joint;
  readonly giving: Omit<Giving, 'pieces'>;
  readonly reading: Promise<ArrayBufferView> | undefined;
  readonly sources: readonly number[];
  /** What came; no scope has it, for it is written after the call. */
  readonly parts: DeviceArray | undefined;
}

export class JoinedCpu extends Joined {
  /** Copies of what came: it waits for no other stream, for these wait for the collective. */
  readonly #arriving: Stream;
  readonly #timeoutMs: number;
  /** Collectives of all ranks, and those with each other rank in each direction. */
  readonly #counts: Map<string, number> = new Map();
  /** Collectives that were submitted and have not been exchanged, and what to call when there are none. */
  #pending = 0;
  #emptied: (() => void) | undefined = undefined;
  #isClosed = false;
  readonly #leave = (device: Device): void => {
    if (device === this.device && this.member.error === undefined) this.member.abort();
  };

  constructor(device: Device, member: Member, timeoutMs: number) {
    super(device, member, ['bool']);
    this.#timeoutMs = timeoutMs;
    this.#arriving = device.createStream({ ordering: 'explicit', label: 'what other ranks give' });
    onLeave.add(this.#leave);
  }

  protected submit(joints: readonly Joint[]): readonly Ended[] {
    if (joints.length > MAX_LAUNCH_ARGS) {
      const message = `The group has ${joints.length} calls, and may have ${MAX_LAUNCH_ARGS}: make several groups.`;
      throw badArgument('fn', joints.length, message, MAX_LAUNCH_ARGS);
    }
    const [{ kind, stream, named }] = joints as [Joint];
    const inside = joints.find((joint) => joint.stream.timeline.recording !== undefined)?.stream.timeline;
    if (inside?.recording !== undefined) {
      const message =
        'a graph cannot contain a collective of CPU devices of several processes, whose elements go through the event loop: call it between launches of two graphs';
      throw inside.recording.refusal(inside, 'unsupported-node', message);
    }
    const others = new Set(joints.map((joint) => joint.stream).filter((other) => other !== stream));
    const exchanges: Exchange[] = [];
    let exchanged: Operation;
    try {
      for (const joint of joints) exchanges.push(this.#begin(joint));
      for (const other of others) stream.waitStream(other);
      const writes = Object.fromEntries(exchanges.flatMap(({ parts }, at) => (parts === undefined ? [] : [[`parts${at}`, parts]])));
      exchanged = stream.external({ writes, label: named.label ?? kind, timeoutMs: SLACK * this.#timeoutMs }, () =>
        this.#exchange(exchanges).finally(() => this.#ended()),
      );
    } catch (error) {
      for (const { parts } of exchanges) parts?.[Symbol.dispose]();
      throw error;
    }
    this.#pending++;
    for (const other of others) other.waitStream(stream);
    return exchanges.map((exchange) => this.#result(exchange, exchanged));
  }

  abort(): void {
    if (arguments.length > 0) refuseSurplus('abort', arguments, 0);
    this.member.abort();
  }

  async close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    if (this.#isClosed) return;
    this.#isClosed = true;
    onLeave.delete(this.#leave);
    if (this.member.error === undefined && this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#emptied = resolve;
        this.member.onOver = () => resolve();
      });
    }
    this.member.close();
    await this.#arriving.close().catch(() => undefined);
  }

  async shrink(): Promise<JoinedCommunicator> {
    if (arguments.length > 0) refuseSurplus('shrink', arguments, 0);
    const member = await this.member.shrink();
    await this.close();
    return new JoinedCpu(this.device, member, this.#timeoutMs);
  }

  #ended(): void {
    if (--this.#pending === 0) this.#emptied?.();
  }

  /** What is exchanged, and where what comes is written. */
  #begin(joint: Joint): Exchange {
    const { dtype, from, block, result, stream } = joint;
    const giving = this.#giving(joint);
    const sources = result === undefined ? [] : this.#sources(joint);
    const parts = sources.length === 0 ? undefined : stream.allocate(checkShape([sources.length, ...block]), dtype);
    const reading = from?.read();
    // The external function tells of it.
    reading?.catch(() => undefined);
    return { joint, giving, reading, sources, parts };
  }

  #result({ joint, sources, parts }: Exchange, exchanged: Operation): Ended {
    const { kind, dtype, op, result, stream, named } = joint;
    if (parts === undefined) return { array: undefined, operations: [exchanged] };
    const array = joint.into ?? stream.empty(result!, dtype);
    if (!REDUCING.has(kind)) return { array, operations: [exchanged, stream.copy(array, parts.reshape(result!), named)] };
    using sum = reduced(
      stream,
      sources.map((_, at) => parts.view(at)),
      op,
    );
    return { array, operations: [exchanged, stream.copy(array, sum, named)] };
  }

  async #exchange(exchanges: readonly Exchange[]): Promise<void> {
    try {
      const read = await Promise.allSettled(exchanges.map(async ({ reading }) => reading));
      const failed = read.find((one) => one.status === 'rejected');
      if (failed !== undefined) {
        const why = (failed.reason as Error).message.split('\n', 1)[0]!;
        for (const { giving } of exchanges) this.member.fail(giving, why);
        throw failed.reason;
      }
      const ended = await Promise.allSettled(
        exchanges.map((exchange, at) => this.#give(exchange, (read[at] as PromiseFulfilledResult<ArrayBufferView | undefined>).value)),
      );
      const refused = ended.find((one) => one.status === 'rejected');
      if (refused !== undefined) throw refused.reason;
    } finally {
      // What reads them was submitted with the calls.
      for (const { parts } of exchanges) parts?.[Symbol.dispose]();
    }
  }

  async #give({ joint, giving, sources, parts }: Exchange, read: ArrayBufferView | undefined): Promise<void> {
    const bytes = read === undefined ? NO_BYTES : new Uint8Array(read.buffer, read.byteOffset, read.byteLength);
    const received = await this.member.exchange({ ...giving, pieces: this.#pieces(joint, giving.ranks, bytes) });
    if (parts === undefined || parts.length === 0) return;
    const all = Buffer.concat(sources.map((rank) => received[giving.ranks.indexOf(rank)]!));
    const host = new DTYPES[joint.dtype].make(new Uint8Array(all).buffer);
    await this.#arriving.copy(parts, host as never).done;
  }

  /** Which exchange it is, and what the others have to call. */
  #giving({ kind, dtype, op, root, peer, block }: Joint): Omit<Giving, 'pieces'> {
    const isBetween = kind === 'send';
    const name = isBetween ? `${root}-${peer}` : 'all';
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    const ranks = isBetween ? [root, peer] : Array.from({ length: this.size }, (_, rank) => rank);
    const how = REDUCING.has(kind) ? ` ${op}` : '';
    const where = kind === 'reduce' || kind === 'broadcast' ? ` root ${root}` : '';
    return { key: `${name} ${count}`, ranks, facts: kind === 'barrier' ? kind : `${kind}${how}${where} of ${dtype}[${block.join(', ')}]` };
  }

  /** The ranks whose part is in this rank's result. */
  #sources({ kind, root }: Joint): readonly number[] {
    return kind === 'broadcast' || kind === 'send' ? [root] : Array.from({ length: this.size }, (_, rank) => rank);
  }

  #pieces({ kind, root, peer, from }: Joint, ranks: readonly number[], bytes: Uint8Array): readonly Uint8Array[] | Uint8Array {
    if (from === undefined || bytes.length === 0) return NO_BYTES;
    if (kind === 'allToAll' || kind === 'reduceScatter') {
      const row = bytes.length / this.size;
      return ranks.map((_, at) => bytes.subarray(at * row, (at + 1) * row));
    }
    const only = kind === 'reduce' ? root : kind === 'send' ? peer : undefined;
    return only === undefined ? bytes : ranks.map((rank) => (rank === only ? bytes : NO_BYTES));
  }
}
