// A worker of a queue on a CPU device: `queue-worker.mjs nats|bullmq PORT DEPTH ITEM_MS ACK_WAIT_MS`. Prints its report as JSON, one line each 300 ms and one
// at the end, with the bytes of its heap after a collection. Drains on SIGTERM.
import { openDevice } from 'millrace';
import { bullmqSink, bullmqSource, natsSink, natsSource, overlapQueue } from 'millrace/queue';

const [kind, port, depth, itemMs, ackWaitMs] = process.argv.slice(2);
const nats = { servers: `127.0.0.1:${port}` };
const redis = { host: '127.0.0.1', port: Number(port) };
const text = new TextDecoder();
const decode = (bytes) => text.decode(bytes);
const names = { stream: 'items', consumer: 'workers', deadLetter: 'dead.items', ackWaitMs: Number(ackWaitMs), decode };
const [source, sink] =
  kind === 'nats'
    ? [natsSource({ connection: nats, ...names }), natsSink({ connection: nats, subject: 'results.{id}' })]
    : [
        bullmqSource({ connection: redis, name: 'items', deadLetter: 'dead', ackWaitMs: Number(ackWaitMs) }),
        bullmqSink({ connection: redis, name: 'results' }),
      ];

const device = await openDevice('cpu');
const square = async (data, lane) => {
  await new Promise((resolve) => void setTimeout(resolve, Number(itemMs)));
  return String(await lane.full(64, Number(data) ** 2).item(63));
};
// Kills are no fault of the items.
const run = overlapQueue(device, source, { depth: Number(depth), onError: { retry: 1000 }, drainOn: 'SIGTERM' }, square, sink);
const tell = () => {
  globalThis.gc?.();
  const { stages: _, ...report } = run.report();
  console.log(JSON.stringify({ ...report, heap: process.memoryUsage().heapUsed }));
};
const timer = setInterval(tell, 300);
await run.done;
clearInterval(timer);
tell();
await device.close();
