// The routes: digits over HTTP and WebSocket, faces of pictures, and what those who operate the service ask for.
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import websocket from '@fastify/websocket';
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { LimitError } from 'millrace';
import { messageOf } from '../command-line.js';
import { PIXELS } from '../training/shape.js';
import { type Faces, MOST_PICTURES, PictureError } from './faces.js';
import type { Metrics, ModelMetrics } from './metrics.js';
import { FACES_PAGE } from './faces-page.js';
import { pageOf } from './page.js';
import type { Predictor } from './predictor.js';

/** Seconds after which a refused client may come again. */
const RETRY_AFTER = '1';
/** Longer than the 60 s for which proxies keep connections. */
const KEEP_ALIVE_MS = 72_000;
/** A client that sends slowly holds a place of few. */
const REQUEST_MS = 30_000;
/** A digit as JSON is at most 784 numbers of three figures. */
const DIGIT_LIMIT = 8 * 1024;
const DIGIT_TYPES = `The content-type of a digit is application/octet-stream, with ${PIXELS} bytes, or application/json.`;
const PICTURE_LIMIT = 8 * 1024 * 1024;
const PICTURE_TYPES = 'The content-type of a picture is image/jpeg or image/png.';

export interface Answer {
  readonly digit: number;
  readonly shares: readonly number[];
}

export interface Predictors {
  readonly digits: Predictor<Uint8Array, Float32Array>;
  readonly faces?: Predictor<Uint8Array, Faces> | undefined;
}

export interface ServerOptions {
  /** Digits that may wait. */
  readonly maxQueue: number;
  /** Undefined: it works. Else why not. */
  readonly trouble?: () => string | undefined;
  /** The service is about to stop: clients are to go elsewhere, and those that come are still served. */
  readonly isDraining?: () => boolean;
}

/** The service around predictors, which stay the caller's. It does not listen yet. */
export async function createServer(
  { digits, faces }: Predictors,
  metrics: Metrics,
  { maxQueue, trouble, isDraining = () => false }: ServerOptions,
): Promise<FastifyInstance> {
  let isClosing = false;
  const app = fastify({
    bodyLimit: DIGIT_LIMIT,
    // Refusals take the thread from answers, so they cost as little as they can: neither the framework nor a body is waited for.
    serverFactory: (handler) =>
      createHttpServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: REQUEST_MS }, (request, response) => {
        const isFull = request.method === 'POST' && request.url === '/digit' && digits.waiting >= maxQueue;
        if (!isFull || isClosing || isDraining()) return handler(request, response);
        metrics.digits.count('refused');
        refuseSoon(response);
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

  async function readDigit(pixels: Uint8Array, signal: AbortSignal): Promise<Answer> {
    const shares = [...(await counted(metrics.digits, signal, digits.run(pixels, { signal })))];
    return { digit: shares.indexOf(Math.max(...shares)), shares };
  }

  app.setErrorHandler(refusesBy(metrics.digits, DIGIT_TYPES));
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/digit', async (request, reply) => {
    const pixels = pixelsOf(request.body);
    if (pixels === undefined) {
      metrics.digits.count('invalid');
      return reply.code(400).send({ error: `A digit is ${PIXELS} bytes, or { "pixels": [...] } with as many numbers from 0 to 255.` });
    }
    return answer(reply, (signal) => readDigit(pixels, signal));
  });

  // While a client draws, only its newest picture counts.
  app.get('/draw', { websocket: true }, (socket) => {
    metrics.sockets = app.websocketServer.clients.size;
    let newest = new AbortController();
    socket.on('message', (message: Buffer, isBinary: boolean) => {
      newest.abort();
      const { signal } = (newest = new AbortController());
      const pixels = isBinary ? pixelsOf(message) : undefined;
      if (pixels === undefined) {
        metrics.digits.count('invalid');
        socket.close(1003, `A digit is ${PIXELS} bytes.`);
        return;
      }
      const send = (sent: Answer | { readonly error: string }): void => void (signal.aborted || socket.send(JSON.stringify(sent)));
      readDigit(pixels, signal).then(send, (error: unknown) => send({ error: messageOf(error) }));
    });
    socket.on('close', () => {
      newest.abort();
      metrics.sockets = app.websocketServer.clients.size;
    });
  });
  app.get('/', async (_request, reply) => reply.type('text/html').send(pageOf(faces !== undefined)));

  if (faces !== undefined) {
    await app.register(async (scope) => {
      // Those that arrive count, too: their bodies are in memory.
      let pictures = 0;
      scope.addHook('onRequest', async (request, reply) => {
        if (request.method !== 'POST') return;
        if (pictures >= MOST_PICTURES) {
          metrics.faces.count('refused');
          return refuse(reply);
        }
        pictures++;
        reply.raw.once('close', () => pictures--);
      });
      scope.setErrorHandler(refusesBy(metrics.faces, PICTURE_TYPES));
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser(['image/jpeg', 'image/png'], { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
      scope.post('/faces', { bodyLimit: PICTURE_LIMIT }, async (request, reply) => {
        const bytes = request.body as Buffer | undefined;
        if (!isPicture(bytes)) throw new PictureError(400, 'The body is neither a JPEG nor a PNG.');
        return answer(reply, (signal) => counted(metrics.faces, signal, faces.run(bytes, { signal })));
      });
      scope.get('/faces', async (_request, reply) => reply.type('text/html').send(FACES_PAGE));
    });
  }

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
    for (const [predictor, own] of [[digits, metrics.digits] as const, [faces, metrics.faces] as const]) {
      const batches = predictor?.report()?.batches;
      own.set('waiting', predictor?.waiting ?? 0);
      own.set('batches', batches?.count ?? 0);
      own.set('batched', Math.round((batches?.count ?? 0) * (batches?.meanItems ?? 0)));
    }
  }, 500);
  app.addHook('onClose', async () => clearInterval(timer));
  return app;
}

/** Counts how a request ends. */
async function counted<A>(metrics: ModelMetrics, signal: AbortSignal, answering: Promise<A>): Promise<A> {
  const startMs = performance.now();
  try {
    const result = await answering;
    metrics.answered(performance.now() - startMs);
    return result;
  } catch (error) {
    // A picture that cannot be read is counted with the other invalid ones.
    if (!(error instanceof PictureError)) metrics.count(error instanceof LimitError ? 'refused' : signal.aborted ? 'cancelled' : 'failed');
    throw error;
  }
}

/** Answers with what `run` resolves to; its signal aborts when the client has gone. */
async function answer<A>(reply: FastifyReply, run: (signal: AbortSignal) => Promise<A>): Promise<A | FastifyReply> {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  try {
    return await run(gone.signal);
  } catch (error) {
    if (gone.signal.aborted) return reply.hijack();
    if (!(error instanceof LimitError)) throw error;
    return refuse(reply);
  }
}

/** Answers what is refused before its route, or by it: no known type, too long, no JSON, no picture. */
function refusesBy(metrics: ModelMetrics, types: string) {
  return (error: FastifyError, _request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { statusCode = 500, code, message } = error;
    if (statusCode < 500) metrics.count('invalid');
    return reply.code(statusCode).send({ error: code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? types : message });
  };
}

const REFUSAL = JSON.stringify({ error: 'Too many requests wait.' });
const REFUSAL_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'content-length': REFUSAL.length, 'retry-after': RETRY_AFTER };

function refuse(reply: FastifyReply): FastifyReply {
  return reply.code(503).headers(REFUSAL_HEADERS).send(REFUSAL);
}

/** Refusals of a turn of the event loop. The turns between them are for answers, which a burst of refusals would hold up. */
const REFUSALS = 4;
const refused: ServerResponse[] = [];

function refuseSoon(response: ServerResponse): void {
  if (refused.push(response) === 1) setImmediate(refuseSome);
}

function refuseSome(): void {
  for (const response of refused.splice(0, REFUSALS)) response.writeHead(503, REFUSAL_HEADERS).end(REFUSAL);
  if (refused.length > 0) setImmediate(refuseSome);
}

function pixelsOf(body: unknown): Uint8Array | undefined {
  if (body instanceof Uint8Array) return body.length === PIXELS ? body : undefined;
  const { pixels } = (body ?? {}) as { readonly pixels?: unknown };
  if (!Array.isArray(pixels) || pixels.length !== PIXELS) return undefined;
  return pixels.every((value) => Number.isInteger(value) && value >= 0 && value <= 255) ? Uint8Array.from(pixels as number[]) : undefined;
}

/** The first bytes of a JPEG and of a PNG. */
const STARTS = [Buffer.from([0xff, 0xd8, 0xff]), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])];

function isPicture(body: Buffer | undefined): body is Buffer {
  return body !== undefined && STARTS.some((start) => body.subarray(0, start.length).equals(start));
}
