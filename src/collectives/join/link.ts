// Messages over a socket: a header as JSON, and bytes behind it. Both sides prove that they know the secret before anything else is read.
// Thread: owner.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { clearTimeout, performance, setTimeout } from '../../core/base/timers.js';

/** A header is longer than this only if it comes from something else. */
const MOST_HEADER = 1 << 20;
/** The parts of one collective, of one rank. */
const MOST_BYTES = 2 ** 31;
/** Before a side has proved that it knows the secret. */
const MOST_STRANGERS_HEADER = 4096;
const PREFIX = 12;
const NO_BYTES = new Uint8Array();

export interface Message {
  readonly type: string;
  readonly [name: string]: unknown;
}
type Listener = (message: Message, bytes: Uint8Array) => void;

export class Link {
  readonly #socket: Socket;
  #chunks: Buffer[] = [];
  #length = 0;
  #isKnown = false;
  #listener: Listener | undefined = undefined;
  /** Called once, when no further message comes. */
  onEnd: ((why: string) => void) | undefined = undefined;
  #hasEnded = false;
  /** When the other side was heard last. */
  heardMs: number = performance.now();

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('error', (error) => this.#end(error.message));
    socket.on('close', () => this.#end('the connection was closed'));
  }

  get address(): string {
    return this.#socket.remoteAddress ?? '';
  }

  set listener(listener: Listener) {
    this.#listener = listener;
    this.#deliver();
  }

  get isTrusted(): boolean {
    return this.#isKnown;
  }

  /** The other side knows the secret: longer messages are read. */
  trust(): void {
    this.#isKnown = true;
  }

  send(message: Message, ...parts: readonly Uint8Array[]): void {
    if (this.#hasEnded) return;
    const header = Buffer.from(JSON.stringify(message));
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32LE(header.length, 0);
    prefix.writeDoubleLE(
      parts.reduce((sum, { byteLength }) => sum + byteLength, 0),
      4,
    );
    this.#socket.cork();
    this.#socket.write(prefix);
    this.#socket.write(header);
    for (const part of parts) if (part.byteLength > 0) this.#socket.write(part);
    this.#socket.uncork();
  }

  /** The process may end although the connection is open: promises that are awaited keep it alive. */
  unref(): void {
    this.#socket.unref();
  }

  /** Sends what was given, then ends. */
  close(): void {
    this.#socket.end();
    this.#socket.unref();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.heardMs = performance.now();
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    this.#deliver();
  }

  #deliver(): void {
    while (this.#listener !== undefined && this.#length >= PREFIX && !this.#hasEnded) {
      const first = this.#joined(PREFIX);
      const [headerBytes, bytes] = [first.readUInt32LE(0), first.readDoubleLE(4)];
      const most = this.#isKnown ? [MOST_HEADER, MOST_BYTES] : [MOST_STRANGERS_HEADER, 0];
      if (headerBytes > most[0]! || !(bytes >= 0 && bytes <= most[1]!)) return this.#refuse();
      const end = PREFIX + headerBytes + bytes;
      if (this.#length < end) return;
      const all = this.#joined(end);
      this.#chunks = all.length > end ? [all.subarray(end)] : [];
      this.#length -= end;
      const message = parsed(all.subarray(PREFIX, PREFIX + headerBytes));
      if (message === undefined) return this.#refuse();
      this.#listener(message, bytes === 0 ? NO_BYTES : all.subarray(PREFIX + headerBytes, end));
    }
  }

  /** The first bytes, in one piece. */
  #joined(bytes: number): Buffer {
    if (this.#chunks[0]!.length < bytes) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }

  #refuse(): void {
    this.#end('a message is malformed');
    this.#socket.destroy();
  }

  #end(why: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.onEnd?.(why);
  }
}

function parsed(bytes: Buffer): Message | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null && typeof (value as Message).type === 'string' ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it is a list of whole numbers from 0. */
export const isCounts = (value: unknown): value is readonly number[] =>
  Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && each >= 0);

/** Whether they are the lengths of the pieces of so many bytes. */
export const areLengths = (value: unknown, bytes: number): value is readonly number[] =>
  isCounts(value) && value.reduce((sum, length) => sum + length, 0) === bytes;

export const nonce = (): string => randomBytes(16).toString('hex');

/** What only a side that knows the secret can say of these words. */
export function proof(secret: string, ...words: readonly (string | number)[]): string {
  return createHmac('sha256', secret).update(words.join(' ')).digest('hex');
}

export function isProof(given: unknown, secret: string, ...words: readonly (string | number)[]): boolean {
  if (typeof given !== 'string') return false;
  const [left, right] = [given, proof(secret, ...words)].map((text) => Buffer.from(text)) as [Buffer, Buffer];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Why a rank of GPUs ended the communicator: which ranks did not come is not known. */
export const lateText = (rank: number, timeoutMs: number): string => `rank ${rank} waited for others in a collective for ${timeoutMs} ms`;

/** Calls `tick` so often until it is stopped; the event loop may end before. */
export function every(ms: number, tick: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  let isStopped = false;
  const arm = (): void => {
    timer = setTimeout(() => {
      tick();
      if (!isStopped) arm();
    }, ms);
    timer.unref();
  };
  arm();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
