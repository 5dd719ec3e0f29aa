// Which test devices may use the memory of a test device in kernels.
import type { PeerWhat } from '../protocol/protocol.gen.js';
import type { PeerReport } from '../protocol/reports.js';

export class TestPeerAccess {
  readonly #granted: Set<string> = new Set();

  report(ordinal: number, what: PeerWhat): PeerReport {
    return { canGrant: true, isGranted: this.#granted.has(`${ordinal}:${what}`) };
  }

  /** Returns true: launches of a test device look when they are submitted. */
  set(ordinal: number, what: PeerWhat, isGranted: boolean): boolean {
    if (isGranted) this.#granted.add(`${ordinal}:${what}`);
    else this.#granted.delete(`${ordinal}:${what}`);
    return true;
  }
}
