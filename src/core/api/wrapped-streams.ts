// The streams of a device that code outside the library made: one Stream for each driver handle while it is open, and the objects that
// must live as long.
// Thread: owner.
import { badArgument, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';
import type { DeviceInfo } from './device-info.js';

interface Wrapped<S> {
  readonly stream: S;
  readonly owners: object[];
}

export class WrappedStreams<S extends { readonly isOpen: boolean }> {
  readonly #byHandle: Map<bigint, Wrapped<S>> = new Map();

  /** The open stream of this handle. It keeps `owner` alive too. */
  find(handle: bigint, owner: object | undefined): S | undefined {
    const known = this.#byHandle.get(handle);
    if (known === undefined || !known.stream.isOpen) return undefined;
    if (owner !== undefined) known.owners.push(owner);
    return known.stream;
  }

  add(handle: bigint, stream: S, owner: object | undefined): void {
    this.#byHandle.set(handle, { stream, owners: owner === undefined ? [] : [owner] });
  }

  /** The stream has closed: nothing of it is kept. */
  forget(stream: S): void {
    for (const [handle, wrapped] of this.#byHandle) if (wrapped.stream === stream) this.#byHandle.delete(handle);
  }
}

/** Throws ArgumentError for a value that is no handle of a stream, UnsupportedError on a CPU device. */
export function checkWrappable(info: DeviceInfo, handle: unknown): void {
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
