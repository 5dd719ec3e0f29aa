// A rank whose device is a GPU: NCCL joins it with those of other processes, by an id that the store hands out. The store also tells when a rank is
// gone, which NCCL itself may not notice.
// Thread: owner.
import { refuseSurplus } from '../../core/base/arguments.js';
import { CollectiveError } from '../../core/base/errors.js';
import { clearTimeout, setTimeout } from '../../core/base/timers.js';
import type { Device } from '../../core/api/device.js';
import type { CommunicatorCalls } from '../../core/channel/channel.js';
import type { DType } from '../../core/elements/dtype.js';
import { checkShape } from '../../core/elements/shape.js';
import { type LibraryCall, type NcclCall, NcclCalls } from '../nccl-calls.js';
import { type Kind, UNREDUCED } from '../nccl-plans.js';
import { type Ended, type Joint, Joined } from './joined.js';
import type { Member } from './member.js';
import type { JoinedCommunicator } from './types.js';

const MAY_BE_SAME: ReadonlySet<string> = new Set(['allReduce', 'reduce', 'broadcast']);

export class JoinedNccl extends Joined {
  readonly #library: CommunicatorCalls;
  readonly #calls: NcclCalls;
  readonly #timeoutMs: number;
  /** The launch of the latest call. */
  #latest: LibraryCall['operation'] | undefined = undefined;

  private constructor(device: Device, member: Member, timeoutMs: number, library: CommunicatorCalls, number: number) {
    super(device, member, UNREDUCED);
    this.#library = library;
    this.#timeoutMs = timeoutMs;
    this.#calls = new NcclCalls([device], library, number, (call) => this.#watch(call));
    member.onOver = ({ reason }) => this.#calls.abort(reason);
    if (member.error !== undefined) this.#calls.abort(member.error.reason);
  }

  static async open(device: Device, member: Member, timeoutMs: number, library: CommunicatorCalls): Promise<JoinedNccl> {
    const { id, rank, size } = member;
    let opening: Promise<number> | undefined;
    try {
      if (id === undefined) throw new CollectiveError('The store has no id of NCCL.', 'failed');
      if (member.error !== undefined) throw member.error;
      const over = new Promise<never>((_, reject) => {
        member.onOver = reject;
      });
      opening = library.open({ ordinals: [device.core.info.ordinal], ranks: [rank], size, id });
      return new JoinedNccl(device, member, timeoutMs, library, await Promise.race([opening, over]));
    } catch (error) {
      member.onOver = undefined;
      // The other ranks wait for this one in the library.
      if (member.error === undefined) member.abort();
      member.close();
      opening?.then((number) => library.close(number)).catch(() => undefined);
      throw error;
    }
  }

  protected submit(joints: readonly Joint[]): readonly Ended[] {
    const [{ kind }] = joints as [Joint];
    // A barrier is in no group.
    if (kind === 'barrier') return this.#barrier(joints[0]!);
    return this.#calls
      .collect(joints.map((joint) => callOf(joint)))
      .map(({ given, operations, launched }) => ({ array: given[0], operations: operations[0] ?? [launched] }));
  }

  abort(): void {
    if (arguments.length > 0) refuseSurplus('abort', arguments, 0);
    this.member.abort();
  }

  async close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    await this.#calls.close();
    this.member.onOver = undefined;
    this.member.close();
  }

  async shrink(): Promise<JoinedCommunicator> {
    if (arguments.length > 0) refuseSurplus('shrink', arguments, 0);
    const member = await this.member.shrink();
    await this.close();
    return JoinedNccl.open(this.device, member, this.#timeoutMs, this.#library);
  }

  /** An all-reduce of one element. */
  #barrier(joint: Joint): readonly Ended[] {
    using one = joint.stream.allocate(checkShape(1), 'u8');
    joint.stream.fill(one, 0);
    const [{ operations }] = this.submit([{ ...joint, kind: 'allReduce', dtype: 'u8', from: one, block: [1], result: [1], into: one }]) as [
      Ended,
    ];
    return [{ array: undefined, operations }];
  }

  /** Ends the communicator when a rank does not come, or this one fails: the others cannot know. Calls without elements wait for no other rank. */
  #watch({ operation: launched, stream, before }: LibraryCall): void {
    const abort = (isLate: boolean): void => {
      if (this.member.error === undefined) this.member.abort(isLate);
    };
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const come = (): void => {
      if (isOver) return;
      timer = setTimeout(abort, this.#timeoutMs, true);
      timer.unref();
    };
    // Earlier work of this rank does not count.
    const look = (): void => {
      stream.core.progress.add(stream.timeline, { ticket: before, keepsAlive: false, settle: come, lose: () => undefined });
    };
    if (this.#latest === undefined) look();
    else this.#latest.whenOver(look);
    this.#latest = launched;
    launched.whenOver(() => {
      isOver = true;
      clearTimeout(timer);
      if (launched.status === 'failed') abort(false);
    });
  }
}

function callOf({ kind, dtype, op, root, peer, from, block, result, into, stream, named }: Joint): NcclCall<DType> {
  const results = { dtype, result: result ?? block, root: undefined, streams: [stream], into: into && [into], named };
  const count = block.reduce((product, extent) => product * extent, 1);
  const getting = [result !== undefined];
  return { results, parts: { kind: kind as Kind, op, root, peer, count, from: [from], getting, mayBeSame: MAY_BE_SAME.has(kind) } };
}
