// Where bytes go that are read into the host: through page-locked memory, from which they reach the host in slices, or into a buffer
// of the device's worker, which nobody sees before it is complete and of which no byte is copied on this thread.
// Thread: owner.
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { OutOfMemoryError } from '../base/errors.js';
import type { HostBlock } from '../device/host-block.js';
import type { StreamContext } from '../device/stream-context.js';
import { Storage } from '../memory/storage.js';
import type { FailingOperation } from '../timeline/failures.js';
import type { Point } from '../timeline/timeline.js';
import type { WaitOptions } from '../waits/wait.js';
import { flatRegion, type Region } from './region.js';
import type { Moved } from './transfer.js';
import { HostStage } from './upload.js';

/** The operation that a read is to its stream. */
interface ReadOperation extends FailingOperation {
  readonly sources: readonly Point[];
}

/** Through page-locked memory. */
export class HostRead {
  readonly #site: StreamContext;
  readonly #stage: HostStage;
  readonly #byteLength: number;

  constructor(site: StreamContext, byteLength: number) {
    this.#site = site;
    this.#byteLength = byteLength;
    this.#stage = HostStage.locked(site.core, byteLength);
  }

  submit(submit: (dst: Region) => Moved): Moved {
    return this.#stage.useLonger(() => submit(this.#stage.region));
  }

  /** Waits for the bytes, in `given` or a new buffer. The memory goes back when they are there, or when the device is done with it. */
  async take(operation: ReadOperation, ticket: number, opts: WaitOptions | undefined, given?: Uint8Array): Promise<ArrayBufferLike> {
    const { core, timeline } = this.#site;
    try {
      const into = given ?? new Uint8Array(this.#byteLength);
      await core.waits.until(timeline, ticket, operation, opts, operation.sources);
      const error = await new Promise<Error | undefined>((resolve) => core.hostCompletions.copyToHost(this.#stage.bytes, into, resolve));
      if (error !== undefined) throw error;
      return into.buffer;
    } finally {
      this.#stage.giveBack();
    }
  }
}

/** Into a buffer of the worker's. */
export class Loan {
  readonly #site: StreamContext;
  readonly #block: HostBlock;
  readonly #storage: Storage;

  constructor(site: StreamContext, byteLength: number) {
    this.#site = site;
    this.#block = site.core.arena.lend(byteLength);
    this.#storage = new Storage(MemorySpace.HOST, this.#block.handle, 0, byteLength, site.core);
  }

  submit(submit: (dst: Region) => Moved): Moved {
    try {
      return submit(flatRegion(this.#storage, 0, this.#block.byteLength));
    } catch (error) {
      this.#drop(Math.max(0, ...[...this.#storage.uses()].map(({ ticket }) => ticket)));
      throw error;
    }
  }

  async take(operation: ReadOperation, ticket: number, opts: WaitOptions | undefined): Promise<ArrayBuffer> {
    const { core, timeline } = this.#site;
    const { arena, channel } = core;
    try {
      await core.waits.until(timeline, ticket, operation, opts, operation.sources);
    } catch (error) {
      if (!timeline.hasReached(ticket)) {
        this.#drop(ticket);
        throw error;
      }
      // Had the worker no memory, that is what the copy failed of.
      const reason: unknown = await channel.holdLoop(arena.collect(this.#block)).catch((refused: unknown) => refused);
      throw reason instanceof OutOfMemoryError ? reason : error;
    }
    return channel.holdLoop(arena.collect(this.#block));
  }

  /** Nobody wants the bytes any more. */
  #drop(ticket: number): void {
    const { core, timeline } = this.#site;
    const drop = (): void => void core.arena.collect(this.#block).catch(() => undefined);
    core.progress.add(timeline, { ticket, holdsLoop: false, settle: drop, lose: () => undefined });
  }
}
