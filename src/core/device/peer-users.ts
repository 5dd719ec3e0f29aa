// The streams of other devices that use memory of this device, which must stay open until they have finished.
// Thread: owner.
import type { StateError } from '../base/errors.js';
import type { Timeline } from '../timeline/timeline.js';
import { refuseDeadlock } from '../waits/deadlock-check.js';
import type { CompletionPolling } from '../waits/completion-polling.js';

export class PeerUsers {
  readonly #progress: CompletionPolling;
  readonly #lost: Promise<unknown>;
  /** By stream, the last ticket that uses memory of this device. */
  readonly #peerUsers: Map<Timeline, number> = new Map();
  /** Grants that are ending, as 'ordinal:what': no launch may rely on them any more. */
  readonly revoking: Set<string> = new Set();

  /** `lost` resolves when this device is lost. */
  constructor(progress: CompletionPolling, lost: Promise<unknown>) {
    this.#progress = progress;
    this.#lost = lost;
  }

  /** A stream of another device uses memory of this one. */
  add(timeline: Timeline, ticket: number): void {
    if (!this.#peerUsers.has(timeline)) {
      for (const [peer, last] of this.#peerUsers) if (peer.hasReached(last)) this.#peerUsers.delete(peer);
    }
    this.#peerUsers.set(timeline, ticket);
  }

  /** The error for a call of `left` from a function that holds one of these streams; undefined if there is none. */
  refuse(isAmong: (timeline: Timeline) => boolean = () => true): StateError | undefined {
    for (const [timeline, ticket] of this.#peerUsers) {
      if (!isAmong(timeline)) continue;
      const refused = refuseDeadlock(timeline, ticket);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  /** Resolves when no stream of another device uses memory of this one any more, or this one is lost. */
  left(): Promise<void> {
    return this.#leftBy(() => true);
  }

  /** The same for these streams, and what they have been given so far. Throws StateError if one is held by the calling function. */
  leftBy(timelines: ReadonlySet<Timeline>): Promise<void> {
    const isAmong = (timeline: Timeline): boolean => timelines.has(timeline);
    const refused = this.refuse(isAmong);
    if (refused !== undefined) throw refused;
    return this.#leftBy(isAmong);
  }

  async #leftBy(isAmong: (timeline: Timeline) => boolean): Promise<void> {
    const withdrawals: (() => void)[] = [];
    for (const [timeline, ticket] of this.#peerUsers) {
      if (!isAmong(timeline)) continue;
      this.#peerUsers.delete(timeline);
      if (timeline.hasReached(ticket)) continue;
      const left = new Promise<void>((resolve) => {
        // A device that is lost will not use the memory any more.
        withdrawals.push(this.#progress.add(timeline, { ticket, keepsAlive: true, settle: resolve, lose: () => resolve() }));
      });
      await Promise.race([left, this.#lost]);
    }
    for (const withdraw of withdrawals) withdraw();
  }
}
