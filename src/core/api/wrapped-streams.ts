// The streams of a device that somebody else made: one Stream for each handle while it is open, and what must live as long.
// Thread: owner.
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
