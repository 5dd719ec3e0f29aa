// The store of a communicator of several processes, on one of its ranks: it lets ranks in, hands the parts of each collective on when all are there
// and agree, and tells all ranks when one is gone, is silent, or does not come.
//
// Thread: owner.
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { performance, setTimeout } from '../../core/base/timers.js';
import { areLengths, every, isCounts, isProof, lateText, Link, type Message, nonce, proof } from './link.js';

/** How many times within the time-out a silent rank is asked. */
const PINGS = 4;
/** Connections before there is a store. */
const MOST_WAITING = 1024;

export interface HubOptions {
  /** The numbers of the ranks that may come. */
  readonly expected: readonly number[];
  /** Ranks that have not come after this time are left out; undefined: then nobody is let in. */
  readonly gatherMs?: number;
  readonly size: number;
  readonly generation: number;
  readonly secret: string;
  readonly timeoutMs: number;
  /** For NCCL. */
  readonly makeId: () => Uint8Array | undefined;
}

/** What a rank says first. */
interface Hello extends Message {
  readonly rank: number;
  readonly size: number;
  readonly generation: number;
  readonly nonce: string;
  readonly proof: string;
  readonly port: number;
  readonly kind: string;
}
/** What a rank gives in one collective; the bytes follow it. */
interface PartMessage extends Message, Omit<Part, 'bytes'> {
  readonly key: string;
  readonly ranks: readonly number[];
}
interface Pending {
  readonly ranks: readonly number[];
  readonly sinceMs: number;
  readonly parts: Map<number, Part>;
}
interface Part {
  readonly facts: string;
  /** The bytes for each of the ranks, or one list for all. */
  readonly lengths: readonly number[];
  readonly isForAll: boolean;
  readonly bytes: Uint8Array;
  readonly failure: string | undefined;
}

/** Listens for ranks: they wait until a hub takes them. */
export class Door {
  readonly #server: Server;
  readonly #waiting: Set<Socket> = new Set();
  #hub: Hub | undefined = undefined;

  private constructor(server: Server) {
    this.#server = server;
    server.unref();
    server.on('connection', (socket) => {
      if (this.#hub !== undefined) return this.#hub.greet(socket);
      if (this.#waiting.size >= MOST_WAITING) return socket.destroy();
      this.#waiting.add(socket);
      // An error is the hub's; a socket that nobody takes just closes.
      socket.on('error', () => this.#waiting.delete(socket));
    });
  }

  static open(host: string, port: number): Promise<Door> {
    return new Promise((resolve, reject) => {
      const server = createServer();
      server.once('error', reject);
      server.listen({ host, port }, () => resolve(new Door(server)));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  serve(hub: Hub): void {
    this.#hub = hub;
    for (const socket of this.#waiting) hub.greet(socket);
    this.#waiting.clear();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#waiting) socket.destroy();
  }
}

export class Hub {
  readonly #opts: HubOptions;
  readonly #members: Map<number, Link> = new Map();
  /** By old rank: where it listens. */
  readonly #places: Map<number, { readonly host: string; readonly port: number; readonly kind: string }> = new Map();
  readonly #pending: Map<string, Pending> = new Map();
  /** By rank, when all have come. */
  #links: readonly Link[] = [];
  readonly #sinceMs: number = performance.now();
  readonly #stop: () => void;
  #isOver = false;

  constructor(opts: HubOptions) {
    this.#opts = opts;
    this.#stop = every(Math.max(opts.timeoutMs / PINGS / 2, 10), () => this.#look());
  }

  /** Lets a rank in that knows the secret. */
  greet(socket: Socket): void {
    const link = new Link(socket);
    // Whoever connects keeps neither the process nor its place.
    link.unref();
    setTimeout(() => {
      if (!link.isTrusted) link.destroy();
    }, this.#opts.timeoutMs).unref();
    const own = nonce();
    link.send({ type: 'challenge', nonce: own, generation: this.#opts.generation });
    link.listener = (message) => {
      const { secret } = this.#opts;
      const refuse = (why: string): void => {
        link.send({ type: 'refused', why });
        link.close();
      };
      if (!isHello(message)) return refuse('the first message is not that of a rank');
      const { rank, size, nonce: theirs, proof: given, generation } = message;
      if (!isProof(given, secret, 'rank', own, theirs, rank, size)) return refuse('the secret differs');
      const why = this.#refusal(rank, size, generation);
      if (why !== undefined) return refuse(why);
      link.trust();
      link.send({ type: 'accepted', proof: proof(secret, 'store', theirs, own) });
      this.#enter(rank, link, message);
    };
  }

  close(): void {
    this.#isOver = true;
    this.#stop();
    for (const link of this.#members.values()) link.close();
  }

  #refusal(rank: number, size: number, generation: number): string | undefined {
    const { expected, size: own, generation: now } = this.#opts;
    if (this.#links.length > 0 || this.#isOver) return 'all ranks have joined already';
    if (size !== own) return `its size is ${size}, that of the store ${own}`;
    if (generation !== now) return `it belongs to communicator ${generation} of this group, and the store to ${now}`;
    if (!expected.includes(rank)) return `rank ${rank} is not expected`;
    return this.#members.has(rank) ? `rank ${rank} has joined already` : undefined;
  }

  #enter(rank: number, link: Link, { port, kind }: Hello): void {
    this.#members.set(rank, link);
    this.#places.set(rank, { host: link.address, port, kind });
    link.onEnd = (why) => this.#left(rank, why);
    if (this.#members.size === this.#opts.expected.length) this.#begin();
  }

  #begin(): void {
    const old = [...this.#members.keys()].toSorted((a, b) => a - b);
    const kinds = new Set(old.map((rank) => this.#places.get(rank)!.kind));
    this.#links = old.map((rank) => this.#members.get(rank)!);
    if (kinds.size > 1) return this.#over([], 'mismatch', `the ranks have devices of several kinds (${[...kinds].join(', ')})`);
    const id = kinds.has('cuda') ? this.#opts.makeId() : undefined;
    if (kinds.has('cuda') && id === undefined) return this.#over([0], 'failed', 'NCCL is not there, or makes no id');
    this.#links.forEach((link, rank) => {
      link.onEnd = (why) => this.#gone(rank, why);
      link.listener = (message, bytes) => this.#hear(rank, message, bytes);
      link.send({ type: 'ready', rank, old, places: old.map((from) => this.#places.get(from)), id: id && Buffer.from(id).toString('hex') });
    });
  }

  /** Before all have come. */
  #left(rank: number, _why: string): void {
    this.#members.delete(rank);
  }

  #hear(rank: number, message: Message, bytes: Uint8Array): void {
    switch (message.type) {
      case 'part':
        return this.#take(rank, message, bytes);
      case 'ping':
        return this.#links[rank]!.send({ type: 'pong' });
      case 'bye':
        return this.#over([rank], 'closed', `rank ${rank} closed it`);
      case 'abort':
        if (message['isLate'] === true) return this.#over([], 'timeout', lateText(rank, this.#opts.timeoutMs));
        return this.#over([rank], 'aborted', `rank ${rank} aborted it`);
      default:
    }
  }

  #take(rank: number, message: Message, bytes: Uint8Array): void {
    if (!isPart(message, rank, this.#links.length, bytes.byteLength)) return this.#gone(rank, 'it sent a malformed message');
    const { key, ranks, facts, lengths, isForAll, failure } = message;
    let pending = this.#pending.get(key);
    if (pending === undefined) this.#pending.set(key, (pending = { ranks, sinceMs: performance.now(), parts: new Map() }));
    // The key of a collective names its ranks.
    if (ranks.join() !== pending.ranks.join()) return this.#gone(rank, 'it sent a malformed message');
    pending.parts.set(rank, { facts, lengths, isForAll, bytes, failure });
    if (pending.parts.size < pending.ranks.length) return;
    this.#pending.delete(key);
    this.#hand(key, pending);
  }

  #hand(key: string, { ranks, parts }: Pending): void {
    const failed = ranks.filter((rank) => parts.get(rank)!.failure !== undefined);
    const facts = ranks.map((rank) => parts.get(rank)!.facts);
    const others = ranks.filter((_, at) => facts[at] !== facts[0]);
    const refuse = (reason: string, at: readonly number[], why: string): void => {
      for (const rank of ranks) this.#links[rank]!.send({ type: 'refuse', key, reason, ranks: at, why });
    };
    if (failed.length > 0) {
      const why = failed.map((rank) => `rank ${rank} has no operand: ${parts.get(rank)!.failure!}`).join('; ');
      return refuse('failed', failed, why);
    }
    if (others.length > 0) return refuse('mismatch', others, ranks.map((rank, at) => `rank ${rank} calls ${facts[at]!}`).join(', '));
    ranks.forEach((to, place) => {
      const pieces = ranks.map((from) => pieceOf(parts.get(from)!, place));
      this.#links[to]!.send({ type: 'parts', key, lengths: pieces.map(({ byteLength }) => byteLength) }, ...pieces);
    });
  }

  /** Looks for ranks that are silent, and for collectives that some have not come to. */
  #look(): void {
    const { timeoutMs, gatherMs } = this.#opts;
    const now = performance.now();
    if (this.#links.length === 0) {
      if (gatherMs !== undefined && this.#members.size > 0 && now - this.#sinceMs > gatherMs) this.#begin();
      return;
    }
    const silent = this.#links.findIndex(({ heardMs }) => now - heardMs > timeoutMs);
    if (silent >= 0) return this.#over([silent], 'timeout', `rank ${silent} was not heard of for ${timeoutMs} ms`);
    for (const { ranks, sinceMs, parts } of this.#pending.values()) {
      if (now - sinceMs <= timeoutMs) continue;
      const missing = ranks.filter((rank) => !parts.has(rank));
      const [{ facts }] = [...parts.values()] as [Part];
      return this.#over(missing, 'timeout', `rank ${missing.join(' and rank ')} did not come to ${facts} within ${timeoutMs} ms`);
    }
  }

  #gone(rank: number, why: string): void {
    this.#over([rank], 'lost', `rank ${rank} is gone (${why})`);
  }

  #over(ranks: readonly number[], reason: string, why: string): void {
    if (this.#isOver) return;
    for (const link of this.#links) link.send({ type: 'over', ranks, reason, why });
    this.close();
  }
}

function isHello(message: Message): message is Hello {
  const { type, rank, size, generation, port } = message;
  const texts = [message['nonce'], message['proof'], message['kind']];
  return type === 'hello' && [rank, size, generation, port].every(Number.isSafeInteger) && texts.every((text) => typeof text === 'string');
}

/** Of this rank of so many, with so many bytes behind it. */
function isPart(message: Message, rank: number, size: number, bytes: number): message is PartMessage {
  const { key, ranks, facts, lengths, isForAll, failure } = message;
  if (typeof key !== 'string' || typeof facts !== 'string' || typeof isForAll !== 'boolean') return false;
  if (failure !== undefined && typeof failure !== 'string') return false;
  const areRanks = isCounts(ranks) && ranks.includes(rank) && ranks.every((each) => each < size) && new Set(ranks).size === ranks.length;
  if (!areRanks || !areLengths(lengths, bytes)) return false;
  return failure !== undefined || lengths.length === (isForAll ? 1 : ranks.length);
}

function pieceOf({ lengths, isForAll, bytes }: Part, place: number): Uint8Array {
  if (isForAll) return bytes;
  const start = lengths.slice(0, place).reduce((sum, length) => sum + length, 0);
  return bytes.subarray(start, start + lengths[place]!);
}
