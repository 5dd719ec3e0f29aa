// The routes: the page, the frames over a WebSocket, and how many each viewer got.
import websocket from '@fastify/websocket';
import fastify, { type FastifyInstance } from 'fastify';
import { readMessage } from './frames.js';
import { PAGE } from './page.js';
import type { Steering } from './sources.js';
import type { Viewers } from './viewers.js';

/** A message of a viewer is a few numbers. */
const MOST_MESSAGE_BYTES = 256;

export async function createServer(viewers: Viewers, steering: Steering): Promise<FastifyInstance> {
  const app = fastify({ forceCloseConnections: true });
  await app.register(websocket, { options: { maxPayload: MOST_MESSAGE_BYTES } });
  // Another site's page in the same browser may not steer.
  app.addHook('onRequest', async ({ headers: { origin, host } }, reply) => {
    if (origin !== undefined && origin !== `http://${host}`) return reply.code(403).send({ error: 'This is for the page of this server.' });
  });
  app.get('/frames', { websocket: true }, (socket) => {
    const viewer = viewers.add(socket);
    socket.on('message', (bytes: Buffer) => {
      const message = readMessage(String(bytes));
      if (message?.kind === 'force') steering.push(message.force);
      else if (message?.kind === 'settings') steering.set(message.settings);
      else if (message === undefined || !viewer.shown()) socket.close(1003, 'No message of a viewer.');
    });
    socket.on('close', () => viewers.delete(viewer));
  });
  app.get('/', async (_request, reply) => reply.type('text/html').send(PAGE));
  app.get('/favicon.ico', async (_request, reply) => reply.code(204).send());
  app.get('/viewers', async () => viewers.report());
  return app;
}
