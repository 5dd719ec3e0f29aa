// The two ways to read bytes to the host. Small reads go through page-locked memory, from which this thread copies them in slices, or other
// threads where the buffer is new and takes longer. Large reads go into a buffer of the device's worker, which transfers it when it is
// complete, so this thread copies nothing.
// Thread: owner.
import { MemorySpace } from '../../protocol/protocol.gen.js';
import { OutOfMemoryError } from '../base/errors.js';
import { performance } from '../base/timers.js';
import { tellStaging } from '../base/trace.js';
import type { HostBlock } from '../device/host-block.js';
import { LEAST_LARGE } from '../device/large-host-blocks.js';
import type { StreamContext } from '../device/stream-context.js';
import { Storage } from '../memory/storage.js';
import type { FailingOperation } from '../timeline/failures.js';
import type { Point } from '../timeline/timeline.js';
import type { WaitOptions } from '../waits/wait.js';
import { flatRegion, type Region } from './memory-region.js';
import type { Moved } from './transfer.js';
import { HostStage } from './upload.js';

/** A read that was submitted. */
interface SubmittedRead {
  readonly operation: FailingOperation;
  readonly ticket: number;
  /** The last writes to the memory that it reads. */
  readonly sources: readonly Point[];
}

/** A read through page-locked memory. */
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

  /** Resolves to the bytes, in `given` or a new buffer. The page-locked memory is given back after that, or when the device has finished with it. */
  async take({ operation, ticket, sources }: SubmittedRead, opts: WaitOptions | undefined, given?: Uint8Array): Promise<ArrayBufferLike> {
    const { core, timeline } = this.#site;
    try {
      const into = given ?? core.arena.resultBytes(this.#byteLength);
      await core.waits.until(timeline, ticket, operation, opts, sources);
      const reachedMs = performance.now();
      // No other code knows the new buffer, so threads may fill it while the event loop goes on.
      if (given === undefined && this.#byteLength >= LEAST_LARGE) {
        await core.channel.copyHostApart(into, this.#stage.bytes);
        tellStaging('to', this.#byteLength, core.name, reachedMs);
        return into.buffer;
      }
      const error = await new Promise<Error | undefined>((resolve) => core.hostCopies.copyToHost(this.#stage.bytes, into, resolve));
      if (error !== undefined) throw error;
      tellStaging('to', this.#byteLength, core.name, reachedMs);
      return into.buffer;
    } finally {
      this.#stage.giveBack();
    }
  }
}

/** A read into a buffer of the worker. */
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

  async take({ operation, ticket, sources }: SubmittedRead, opts: WaitOptions | undefined): Promise<ArrayBuffer> {
    const { core, timeline } = this.#site;
    const { arena, channel } = core;
    try {
      await core.waits.until(timeline, ticket, operation, opts, sources);
    } catch (error) {
      if (!timeline.hasReached(ticket)) {
        this.#drop(ticket);
        throw error;
      }
      // If the worker could not allocate the buffer, the copy failed for that reason.
      const reason: unknown = await channel.keepAlive(arena.collect(this.#block)).catch((refused: unknown) => refused);
      throw reason instanceof OutOfMemoryError ? reason : error;
    }
    return channel.keepAlive(arena.collect(this.#block));
  }

  /** Gives the buffer up: the caller no longer waits for the bytes. */
  #drop(ticket: number): void {
    const { core, timeline } = this.#site;
    const drop = (): void => void core.arena.collect(this.#block).catch(() => undefined);
    core.progress.add(timeline, { ticket, keepsAlive: false, settle: drop, lose: () => undefined });
  }
}
