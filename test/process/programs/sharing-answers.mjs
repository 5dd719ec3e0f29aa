// A device's worker that answers `openShared` in an order that real ones show only rarely: `sharing-answers.mjs <case>`.
// It is a stand-in: its handler of the request does not return until the opening thread has said something or has ended.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openSharedChannel } from '../../../dist/workers/shared-device.js';

const HERE = new URL(import.meta.url);
const LIMIT_MS = 20_000;

const answers = {
  /** The answer arrives before the promise of postMessageToThread settles. */
  early: () => undefined,
  /** The port ends behind the answer: the device was closed. */
  ended: (port) => port.close(),
  /** The device is closed before the worker looks at the request. */
  refused: undefined,
};

if (isMainThread) {
  const name = process.argv[2];
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const device = new Worker(HERE, { workerData: { part: 'device', name, flag } });
  await once(device, 'message');
  const opener = new Worker(HERE, { workerData: { part: 'opener', thread: device.threadId } });
  const ended = once(opener, 'exit').then(([code]) => `exit ${code}`);
  const next = async () => Promise.race([once(opener, 'message').then(([message]) => message), ended]);
  console.log(await next());
  const last = next();
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
  if (name === 'ended') console.log(await last);
  await opener.terminate();
  await device.terminate();
} else if (workerData.part === 'device') {
  const { name, flag } = workerData;
  process.on('workerMessage', ({ port }) => {
    const answer = answers[name];
    const address = { process: process.pid, thread: 0, channel: 3, key: 'k' };
    const buffers = { timeline: new SharedArrayBuffer(8), arena: new SharedArrayBuffer(8) };
    if (answer === undefined) {
      port.close();
      return;
    }
    port.postMessage({ type: 'opened', backend: 'cpu', maxPending: 1, channel: 3, info: { ordinal: 0 }, address, ...buffers });
    answer(port);
    Atomics.wait(flag, 0, 0, LIMIT_MS);
  });
  parentPort.on('message', () => undefined);
  parentPort.postMessage('ready');
} else {
  const binding = { attach: () => 1, detach: () => undefined };
  const address = { process: process.pid, thread: workerData.thread, channel: 3, key: 'k' };
  const token = { type: 'millrace.device', device: 'cpu:0', ordering: 'tracked', address };
  const opened = openSharedChannel(binding, {}, token);
  // Nothing else keeps this thread alive meanwhile.
  const channel = await opened.catch((error) => {
    parentPort.postMessage(`${error.name} ${error.reason}`);
  });
  if (channel !== undefined) {
    parentPort.postMessage('opened');
    const alive = setInterval(() => undefined, 1000);
    await channel.ended;
    clearInterval(alive);
    parentPort.postMessage('ended');
  }
}
