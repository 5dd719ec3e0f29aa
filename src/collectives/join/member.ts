// One rank's connection to the store (hub.ts), and what it needs to go on when the store is gone.
// Thread: owner.
import { connect } from 'node:net';
import { clearTimeout, performance, setTimeout } from '../../core/base/timers.js';
import { CollectiveError, type CollectiveReason } from '../../core/base/errors.js';
import { Door, Hub } from './hub.js';
import { areLengths, every, isCounts, isProof, lateText, Link, type Message, nonce, proof } from './link.js';

const RETRY_MS = 50;
/** How many times within the time-out the store is asked whether it is there. */
const PINGS = 4;

export interface MemberOptions {
  readonly rank: number;
  readonly size: number;
  readonly host: string;
  readonly port: number;
  readonly secret: string;
  readonly timeoutMs: number;
  readonly kind: 'cpu' | 'cuda';
  readonly makeId: () => Uint8Array | undefined;
}

interface Place {
  readonly host: string;
  readonly port: number;
}
interface Ready extends Message {
  readonly rank: number;
  /** The former ranks, by rank. */
  readonly old: readonly number[];
  readonly places: readonly Place[];
  readonly id?: string;
}
interface Waiting {
  /** How many ranks take part. */
  readonly count: number;
  readonly resolve: (pieces: readonly Uint8Array[]) => void;
  readonly reject: (error: Error) => void;
}

/** Of one collective, or of the communicator. */
interface End extends Message {
  readonly type: 'over' | 'refuse';
  readonly reason: CollectiveReason;
  readonly ranks: readonly number[];
  readonly why: string;
}

/** What a rank gives in one exchange. */
export interface Giving {
  /** The same on all ranks that take part, and on no other exchange. */
  readonly key: string;
  /** Those that take part. */
  readonly ranks: readonly number[];
  /** What is called; ranks that call something else are refused. */
  readonly facts: string;
  /** For each of the ranks; one list for all. */
  readonly pieces: readonly Uint8Array[] | Uint8Array;
}

export class Member {
  readonly rank: number;
  readonly size: number;
  readonly id: Uint8Array | undefined;
  /** Why nothing works any more. */
  error: CollectiveError | undefined = undefined;
  /** Called when that is known. */
  onOver: ((error: CollectiveError) => void) | undefined = undefined;
  readonly #opts: MemberOptions;
  readonly #generation: number;
  readonly #link: Link;
  readonly #places: readonly Place[];
  readonly #door: Door;
  readonly #waiting: Map<string, Waiting> = new Map();
  readonly #stop: () => void;

  private constructor(opts: MemberOptions, generation: number, link: Link, ready: Ready, door: Door) {
    this.#opts = opts;
    this.#generation = generation;
    this.#link = link;
    this.rank = ready.rank;
    this.size = ready.old.length;
    this.id = ready.id === undefined ? undefined : Buffer.from(ready.id, 'hex');
    // The store does not know under which name others reach its own rank.
    this.#places = ready.places.map((place) => (isLocal(place.host) ? { ...place, host: opts.host } : place));
    this.#door = door;
    link.listener = (message, bytes) => this.#hear(message, bytes);
    link.onEnd = (why) => this.#over('lost', [], `the store is gone (${why})`);
    this.#stop = every(Math.max(opts.timeoutMs / PINGS, 10), () => {
      link.send({ type: 'ping' });
      if (performance.now() - link.heardMs > opts.timeoutMs)
        this.#over('timeout', [], `the store was not heard of for ${opts.timeoutMs} ms`);
    });
  }

  /** Joins all ranks; rank 0 opens the store. */
  static async join(opts: MemberOptions): Promise<Member> {
    const everywhere = opts.secret === '' ? '127.0.0.1' : '0.0.0.0';
    const door = await Door.open(everywhere, 0);
    let hub: Hub | undefined;
    let store: Door | undefined;
    try {
      if (opts.rank === 0) {
        store = await Door.open(everywhere, opts.port);
        const expected = Array.from({ length: opts.size }, (_, rank) => rank);
        hub = new Hub({ ...opts, expected, generation: 0 });
        store.serve(hub);
      }
      const place = { host: opts.rank === 0 ? '127.0.0.1' : opts.host, port: opts.port };
      const { link, ready } = await enter(place, opts, opts.rank, 0, door.port, opts.timeoutMs);
      // All have joined.
      store?.close();
      return new Member(opts, 0, link, ready, door);
    } catch (error) {
      hub?.close();
      store?.close();
      door.close();
      throw error;
    }
  }

  /** What each of the ranks gives this one. Rejects with CollectiveError. */
  exchange({ key, ranks, facts, pieces }: Giving): Promise<readonly Uint8Array[]> {
    if (this.error !== undefined) return Promise.reject(this.error);
    const list = pieces instanceof Uint8Array ? [pieces] : pieces;
    const promise = new Promise<readonly Uint8Array[]>((resolve, reject) =>
      this.#waiting.set(key, { count: ranks.length, resolve, reject }),
    );
    const lengths = list.map(({ byteLength }) => byteLength);
    this.#link.send({ type: 'part', key, ranks, facts, lengths, isForAll: pieces instanceof Uint8Array }, ...list);
    return promise;
  }

  /** This rank has nothing to give: the others get the reason. */
  fail({ key, ranks, facts }: Omit<Giving, 'pieces'>, why: string): void {
    this.#link.send({ type: 'part', key, ranks, facts, lengths: [], isForAll: true, failure: why });
  }

  /** `isLate`: because this rank has waited for others for the time-out. */
  abort(isLate = false): void {
    this.#link.send({ type: 'abort', isLate });
    if (isLate) this.#over('timeout', [], lateText(this.rank, this.#opts.timeoutMs));
    else this.#over('aborted', [this.rank], `rank ${this.rank} aborted it`);
  }

  close(): void {
    this.#link.send({ type: 'bye' });
    this.#over('closed', [this.rank], 'it is closed');
    this.#door.close();
  }

  /**
   * Joins the ranks that live and call this within the time-out. The first of them has the new store; a rank that does not answer is left out.
   */
  async shrink(): Promise<Member> {
    if (this.error === undefined) this.abort();
    const gone = new Set(this.error!.reason === 'lost' ? this.error!.ranks : []);
    const generation = this.#generation + 1;
    const { timeoutMs } = this.#opts;
    for (let candidate = 0; candidate < this.size; candidate++) {
      if (gone.has(candidate)) continue;
      let hub: Hub | undefined;
      if (candidate === this.rank) {
        const expected = Array.from({ length: this.size }, (_, rank) => rank).filter((rank) => rank >= candidate && !gone.has(rank));
        hub = new Hub({ ...this.#opts, expected, size: this.size, generation, gatherMs: timeoutMs / 2 });
        this.#door.serve(hub);
      }
      const place = candidate === this.rank ? { host: '127.0.0.1', port: this.#door.port } : this.#places[candidate]!;
      const door = await Door.open(this.#opts.secret === '' ? '127.0.0.1' : '0.0.0.0', 0);
      const opts = { ...this.#opts, size: this.size };
      try {
        const { link, ready } = await enter(place, opts, this.rank, generation, door.port, timeoutMs, false);
        this.#door.close();
        return new Member({ ...opts, host: place.host, port: place.port }, generation, link, ready, door);
      } catch (error) {
        hub?.close();
        door.close();
        if (candidate === this.rank) throw error;
      }
    }
    throw new CollectiveError('No rank of the communicator can be reached any more.', 'lost');
  }

  #hear(message: Message, bytes: Uint8Array): void {
    const { type, key, lengths } = message;
    const expected = type === 'parts' ? this.#waiting.get(key as string)?.count : undefined;
    if (expected !== undefined && areLengths(lengths, bytes.byteLength) && lengths.length === expected) {
      let start = 0;
      this.#take(key)!.resolve(lengths.map((length) => bytes.subarray(start, (start += length))));
    } else if (isEnd(message)) {
      const { reason, ranks, why } = message;
      if (type === 'over') return this.#over(reason, ranks, why);
      this.#take(key)?.reject(new CollectiveError(`The collective did not take place: ${why}.`, reason, { ranks }));
    } else if (type !== 'pong') this.#over('lost', [], 'the store sent a malformed message');
  }

  #take(key: unknown): Waiting | undefined {
    const waiting = this.#waiting.get(key as string);
    this.#waiting.delete(key as string);
    return waiting;
  }

  #over(reason: CollectiveReason, ranks: readonly number[], why: string): void {
    if (this.error !== undefined) return;
    const error = new CollectiveError(`The communicator does not work any more: ${why}.`, reason, { ranks });
    this.error = error;
    this.#stop();
    this.#link.close();
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    this.onOver?.(error);
  }
}

/** Whether it tells this rank its new number, and where the others are. */
function isReady(message: Message, former: number): message is Ready {
  const { rank, old, places, id } = message;
  if (!isCounts(old) || !Array.isArray(places) || places.length !== old.length || old[rank as number] !== former) return false;
  return places.every(isPlace) && (id === undefined || (typeof id === 'string' && /^(?:[\da-f]{2})+$/.test(id)));
}

function isPlace(value: unknown): value is Place {
  const { host, port } = Object(value) as Partial<Place>;
  return typeof host === 'string' && isCounts([port]);
}

function isEnd(message: Message): message is End {
  const { type, reason, ranks, why } = message;
  return (type === 'over' || type === 'refuse') && typeof reason === 'string' && typeof why === 'string' && isCounts(ranks);
}

const isLocal = (host: string): boolean => /^(?:::ffff:)?127\.|^::1$/.test(host);

/** Connects to a store and waits until it has all ranks. `retries`: the store may not be there yet. */
async function enter(
  { host, port }: Place,
  opts: MemberOptions,
  rank: number,
  generation: number,
  doorPort: number,
  timeoutMs: number,
  retries = true,
): Promise<{ readonly link: Link; readonly ready: Ready }> {
  const latestMs = performance.now() + timeoutMs;
  while (true) {
    const left = latestMs - performance.now();
    try {
      return await greet(host, port, opts, rank, generation, doorPort, Math.max(left, 1));
    } catch (error) {
      if (error instanceof CollectiveError || !retries || left <= RETRY_MS) throw asError(error, `${host}:${port}`, timeoutMs);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

function asError(error: unknown, where: string, timeoutMs: number): CollectiveError {
  if (error instanceof CollectiveError) return error;
  const message = `The store at ${where} was not reached within ${timeoutMs} ms: ${(error as Error).message}.`;
  return new CollectiveError(message, 'timeout');
}

function greet(
  host: string,
  port: number,
  opts: MemberOptions,
  rank: number,
  generation: number,
  doorPort: number,
  timeoutMs: number,
): Promise<{ readonly link: Link; readonly ready: Ready }> {
  const { size, secret, kind } = opts;
  return new Promise((resolve, reject) => {
    const link = new Link(connect({ host, port }));
    const own = nonce();
    let theirs = '';
    let isIn = false;
    const timer = setTimeout(() => {
      const what = isIn ? `not all ranks had joined` : 'it did not answer';
      fail(
        new CollectiveError(`The store at ${host}:${port} was asked to join ${size} ranks: after ${opts.timeoutMs} ms ${what}.`, 'timeout'),
      );
    }, timeoutMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      link.onEnd = undefined;
      link.destroy();
      reject(error);
    };
    link.onEnd = (why) => fail(new Error(why));
    link.listener = (message) => {
      const { nonce: challenge, why } = message;
      if (message.type === 'challenge' && typeof challenge === 'string') {
        theirs = challenge;
        link.send({
          type: 'hello',
          rank,
          size,
          generation,
          nonce: own,
          proof: proof(secret, 'rank', theirs, own, rank, size),
          port: doorPort,
          kind,
        });
      } else if (message.type === 'accepted' && isProof(message['proof'], secret, 'store', own, theirs)) {
        isIn = true;
        link.trust();
      } else if (isIn && message.type === 'ready' && isReady(message, rank)) {
        clearTimeout(timer);
        link.onEnd = undefined;
        link.unref();
        resolve({ link, ready: message });
      } else {
        const malformed = isIn ? 'the store sent a malformed message' : 'it does not know the secret';
        const reason = typeof why === 'string' ? why : malformed;
        fail(new CollectiveError(`The store at ${host}:${port} refused rank ${rank}: ${reason}.`, 'failed', { ranks: [rank] }));
      }
    };
  });
}
