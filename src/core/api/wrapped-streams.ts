// The streams of a device that somebody else made: one Stream for each handle while it is open, and what must live as long.
// Thread: owner.
import { badArgument, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';
import type { Device } from './device.js';
import type { Stream } from './stream.js';

interface Foreign {
  readonly stream: Stream;
  readonly owners: object[];
}

export class ForeignStreams {
  readonly #byHandle: Map<bigint, Foreign> = new Map();

  /** The open one of this handle, which `owner` too is kept for. */
  find(handle: bigint, owner: object | undefined): Stream | undefined {
    const known = this.#byHandle.get(handle);
    if (known === undefined || !known.stream.isOpen) return undefined;
    if (owner !== undefined) known.owners.push(owner);
    return known.stream;
  }

  add(handle: bigint, stream: Stream, owner: object | undefined): void {
    this.#byHandle.set(handle, { stream, owners: owner === undefined ? [] : [owner] });
  }

  /** It has closed: nothing of it is kept. */
  forget(stream: Stream): void {
    for (const [handle, foreign] of this.#byHandle) if (foreign.stream === stream) this.#byHandle.delete(handle);
  }
}

/** Throws for what no stream of the device's driver can be. */
export function checkForeign({ info }: Device, handle: unknown): void {
  if (typeof handle !== 'bigint' || handle < 0n || handle >= 2n ** 64n) {
    throw badArgument('handle', handle, `The handle of the stream (${show(handle)}) is not a 64-bit address.`);
  }
  if (info.backend !== 'cuda') {
    throw new UnsupportedError(
      'ERR_MILLRACE_UNSUPPORTED',
      `Device ${info.id} cannot wrap streams: only CUDA devices have driver streams.`,
      'wrapStream',
      {
        device: info.id,
      },
    );
  }
}
