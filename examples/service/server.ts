// The routes: digits over HTTP and WebSocket, and what those who operate the service ask for.
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import websocket from '@fastify/websocket';
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify';
import { LimitError } from 'millrace';
import { PIXELS } from '../training/shape.js';
import type { Classifier } from './classifier.js';
import type { Metrics } from './metrics.js';
import { PAGE } from './page.js';

/** Seconds after which a refused client may come again. */
const RETRY_AFTER = '1';
/** A digit as JSON is at most 784 numbers of three figures. */
const BODY_LIMIT = 8 * 1024;
const TYPES = `The content-type of a digit is application/octet-stream, with ${PIXELS} bytes, or application/json.`;

export interface Answer {
  readonly digit: number;
  readonly shares: readonly number[];
}

export interface ServerOptions {
  /** Requests that may wait. */
  readonly maxQueue: number;
  /** Undefined: it works. Else why not. */
  readonly trouble?: () => string | undefined;
  /** The service is about to stop: clients are to go elsewhere, and those that come are still served. */
  readonly isDraining?: () => boolean;
}

/** The service around a classifier, which stays the caller's. It does not listen yet. */
export async function createServer(
  classifier: Classifier,
  metrics: Metrics,
  { maxQueue, trouble, isDraining = () => false }: ServerOptions,
): Promise<FastifyInstance> {
  let isClosing = false;
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    // Refusals take the thread from answers, so they cost as little as they can: neither the framework nor a body is waited for.
    serverFactory: (handler) =>
      createHttpServer((request, response) => {
        const isFull = request.method === 'POST' && request.url === '/digit' && classifier.waiting >= maxQueue;
        if (!isFull || isClosing || isDraining()) return handler(request, response);
        metrics.count('refused');
        refuseAtOnce(response);
      }),
  });
  await app.register(websocket, { options: { maxPayload: PIXELS } });
  app.addHook('preClose', async () => {
    isClosing = true;
  });

  // A connection whose request was there before the service began to close would stay open until it is idle for long.
  app.addHook('onSend', async (_request, reply) => {
    if (isClosing || isDraining()) reply.header('connection', 'close');
  });

  /** Reads a digit, and counts how that ended. */
  async function read(pixels: Uint8Array, signal: AbortSignal): Promise<Answer> {
    const startMs = performance.now();
    try {
      const shares = [...(await classifier.run(pixels, { signal }))];
      metrics.answered(performance.now() - startMs);
      return { digit: shares.indexOf(Math.max(...shares)), shares };
    } catch (error) {
      metrics.count(error instanceof LimitError ? 'refused' : signal.aborted ? 'cancelled' : 'failed');
      throw error;
    }
  }

  // What is refused before its route: no known type, too long, no JSON.
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const { statusCode = 500, code, message } = error;
    if (statusCode < 500) metrics.count('invalid');
    return reply.code(statusCode).send({ error: code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? TYPES : message });
  });
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/digit', async (request, reply) => {
    const pixels = pixelsOf(request.body);
    if (pixels === undefined) {
      metrics.count('invalid');
      return reply.code(400).send({ error: `A digit is ${PIXELS} bytes, or { "pixels": [...] } with as many numbers from 0 to 255.` });
    }
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    try {
      return await read(pixels, gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return reply.hijack();
      if (!(error instanceof LimitError)) throw error;
      return refuse(reply);
    }
  });

  // While a client draws, only its newest picture counts.
  app.get('/draw', { websocket: true }, (socket) => {
    metrics.set('sockets', app.websocketServer.clients.size);
    let newest = new AbortController();
    socket.on('message', (message: Buffer, isBinary: boolean) => {
      newest.abort();
      const { signal } = (newest = new AbortController());
      const pixels = isBinary ? pixelsOf(message) : undefined;
      if (pixels === undefined) {
        metrics.count('invalid');
        socket.close(1003, `A digit is ${PIXELS} bytes.`);
        return;
      }
      const send = (answer: Answer | { readonly error: string }): void => void (signal.aborted || socket.send(JSON.stringify(answer)));
      read(pixels, signal).then(send, (error: unknown) => send({ error: error instanceof Error ? error.message : String(error) }));
    });
    socket.on('close', () => {
      newest.abort();
      metrics.set('sockets', app.websocketServer.clients.size);
    });
  });

  app.get('/', async (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/favicon.ico', async (_request, reply) => reply.code(204).send());
  app.get('/health', async (_request, reply) => {
    const reason = trouble?.();
    return reply.code(reason === undefined ? 200 : 503).send({ status: reason ?? 'ok' });
  });
  app.get('/ready', async (_request, reply) => {
    const reason = isClosing || isDraining() ? 'stopping' : trouble?.();
    return reply.code(reason === undefined ? 200 : 503).send({ status: reason ?? 'ok' });
  });
  app.get('/metrics', async (_request, reply) => {
    return reply.type('text/plain; version=0.0.4').send(metrics.text());
  });
  // The gauges of every thread, whichever one is asked for /metrics.
  const timer = setInterval(() => {
    const batches = classifier.report()?.batches;
    metrics.set('waiting', classifier.waiting);
    metrics.set('batches', batches?.count ?? 0);
    metrics.set('batched', Math.round((batches?.count ?? 0) * (batches?.meanItems ?? 0)));
  }, 500);
  app.addHook('onClose', async () => clearInterval(timer));
  return app;
}

const REFUSAL = JSON.stringify({ error: 'Too many requests wait.' });
const REFUSAL_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'content-length': REFUSAL.length, 'retry-after': RETRY_AFTER };

function refuse(reply: FastifyReply): FastifyReply {
  return reply.code(503).headers(REFUSAL_HEADERS).send(REFUSAL);
}

function refuseAtOnce(response: ServerResponse): void {
  response.writeHead(503, REFUSAL_HEADERS).end(REFUSAL);
}

function pixelsOf(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body.length === PIXELS ? body : undefined;
  const { pixels } = (body ?? {}) as { readonly pixels?: unknown };
  if (!Array.isArray(pixels) || pixels.length !== PIXELS) return undefined;
  return pixels.every((value) => Number.isInteger(value) && value >= 0 && value <= 255) ? Uint8Array.from(pixels as number[]) : undefined;
}
