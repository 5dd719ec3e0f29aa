// The HTTP server of the live view: on the loopback address, for those who know its token.
//
// Another web site must not read it: a request needs the token, which is random, and the Host header of the loopback address, which a name
// that was rebound to 127.0.0.1 has not. No header lets other origins read an answer.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UnavailableError } from '../core/base/errors.js';
import { performance, setImmediate } from '../core/base/timers.js';
import { livePage } from './live-page.js';

const LOOPBACK = '127.0.0.1';
const TOKEN_BYTES = 24;
const MOST_CLIENTS = 32;
/** A client that takes nothing for so long is dropped. */
const STUCK_MS = 15_000;

const HEADERS = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/** A page that is open. */
interface Client {
  readonly response: ServerResponse;
  /** Since when it has not taken what was written. */
  fullSinceMs: number | undefined;
  /** It did not get everything. */
  hasMissed: boolean;
}

/** What the server tells. */
export interface Told {
  /** For a page that has just been opened. */
  first(): object;
  snapshot(): object;
}

export class LiveHttp {
  readonly #told: Told;
  readonly #server: Server;
  readonly #token = randomBytes(TOKEN_BYTES).toString('base64url');
  readonly #clients: Set<Client> = new Set();

  /** Resolves when it listens. Rejects with UnavailableError if the port is taken or not allowed. */
  static async listen(port: number, keepAlive: boolean, told: Told): Promise<LiveHttp> {
    const { createServer } = await import('node:http');
    const http = new LiveHttp(told, createServer());
    await http.#listen(port, keepAlive);
    return http;
  }

  private constructor(told: Told, server: Server) {
    this.#told = told;
    this.#server = server;
  }

  get url(): string {
    return `http://${LOOPBACK}:${this.#port}/${this.#token}/`;
  }

  get hasClients(): boolean {
    return this.#clients.size > 0;
  }

  /** To every page. One that has not taken the last message gets the next one instead. */
  send(message: object): void {
    const now = performance.now();
    const text = event(message);
    for (const client of this.#clients) {
      if (client.fullSinceMs === undefined) this.#write(client, client.hasMissed ? event({ ...message, hasMissed: true }) : text);
      else if (now - client.fullSinceMs > STUCK_MS) client.response.destroy();
      else client.hasMissed = true;
    }
  }

  /** Tells the pages, and resolves when no connection is left. */
  async close(): Promise<void> {
    for (const { response } of this.#clients) response.end('event: end\ndata: {}\n\n');
    this.#clients.clear();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      // Of pages that take nothing.
      setImmediate(() => this.#server.closeAllConnections());
    });
  }

  async #listen(port: number, keepAlive: boolean): Promise<void> {
    const server = this.#server;
    server.on('request', (request, response) => this.#answer(request, response));
    if (!keepAlive) {
      server.unref();
      server.on('connection', (socket) => socket.unref());
    }
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) => {
        const why = cause.code === 'EADDRINUSE' ? 'it is taken' : cause.message;
        const help = 'Leave out the port: then a free one is taken.';
        reject(
          new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `Port ${port} of ${LOOPBACK} cannot be served: ${why}.`, [help], { cause }),
        );
      });
      server.listen(port, LOOPBACK, resolve);
    });
    // A later error, such as too many open files, must not end the program.
    server.on('error', () => undefined);
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? 0;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    response.on('error', () => undefined);
    const refuse = (status: number, text: string): void =>
      void response.writeHead(status, { ...HEADERS, 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
    if (request.headers.host !== `${LOOPBACK}:${this.#port}` && request.headers.host !== `localhost:${this.#port}`)
      return refuse(403, 'This server answers to its loopback address only.');
    const isSecret = isSame((request.url ?? '').slice(1), this.#token);
    if (isSecret) return void response.writeHead(308, { ...HEADERS, Location: `/${this.#token}/` }).end();
    const [, token = '', name, ...rest] = (request.url ?? '').split('?', 1)[0]!.split('/');
    if (!isSame(token, this.#token) || name === undefined || rest.length > 0)
      return refuse(403, 'Open the address that serveTimeline returned.');
    if (request.method !== 'GET') return refuse(405, 'Only GET is answered.');
    if (name === '') return this.#page(response);
    if (name === 'snapshot') return this.#json(response, this.#told.snapshot());
    if (name === 'events') return this.#events(response, refuse);
    return refuse(404, 'There is nothing of this name.');
  }

  #page(response: ServerResponse): void {
    const nonce = randomBytes(TOKEN_BYTES).toString('base64url');
    const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
    response
      .writeHead(200, { ...HEADERS, 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy })
      .end(livePage(nonce));
  }

  #json(response: ServerResponse, value: object): void {
    response.writeHead(200, { ...HEADERS, 'Content-Type': 'application/json' }).end(JSON.stringify(value));
  }

  #events(response: ServerResponse, refuse: (status: number, text: string) => void): void {
    if (this.#clients.size >= MOST_CLIENTS) return refuse(503, `${MOST_CLIENTS} pages are open already. Close one of them.`);
    response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream' });
    const client: Client = { response, fullSinceMs: undefined, hasMissed: false };
    this.#clients.add(client);
    response.on('close', () => this.#clients.delete(client));
    response.on('drain', () => void (client.fullSinceMs = undefined));
    this.#write(client, event(this.#told.first()));
  }

  #write(client: Client, text: string): void {
    client.hasMissed = false;
    if (!client.response.write(text)) client.fullSinceMs = performance.now();
  }
}

function event(message: object): string {
  return `data: ${JSON.stringify(message)}\n\n`;
}

/** In a time that does not tell how much of it is right. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
