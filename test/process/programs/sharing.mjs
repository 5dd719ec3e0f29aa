// What a thread does with a device that another one opened: `sharing.mjs <spec> <case>...`. Each case prints its name and what was seen.
// The conformance tests run parts of it (test/support/sharer.ts).
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openDevice, openShared } from 'millrace';
import { untilGivenBack } from './given-back.mjs';

const HERE = new URL(import.meta.url);

/** A worker that runs a part below, and the messages that it posts. */
function start(part, data) {
  const worker = new Worker(HERE, { workerData: { part, data } });
  const messages = [];
  let heard = () => undefined;
  worker.on('message', (message) => {
    messages.push(message);
    heard();
  });
  worker.on('error', (error) => console.log(`${part}: ${error.stack}`));
  const exited = once(worker, 'exit');
  const next = async () => {
    while (messages.length === 0)
      await Promise.race([new Promise((resolve) => (heard = resolve)), exited.then(() => messages.push('exit'))]);
    return messages.shift();
  };
  return { worker, next, exited };
}

const reason = (error) => `${error.name} ${error.reason ?? ''}: ${error.message}`;

const cases = {
  async disposed(device) {
    const x = device.full(4, 1, 'i32');
    const token = x.share();
    x[Symbol.dispose]();
    await device.synchronize();
    const { next, exited } = start('late', { device: device.share(), x: token });
    console.log(await next());
    await exited;
    await untilGivenBack(device);
  },
  async dying() {
    const opener = start('opens', process.argv[2]);
    const token = await opener.next();
    const { next, exited } = start('outlives', token);
    console.log(await next());
    await opener.worker.terminate();
    console.log(await next());
    await exited;
    const late = await openShared(token).catch(reason);
    console.log(late);
  },
  async beside(device) {
    const { next, exited } = start('besideItsOwn', { spec: process.argv[2], token: device.share() });
    console.log(await next());
    await exited;
    await untilGivenBack(device);
  },
  async again(device) {
    const { next, exited } = start('reopens', device.share());
    console.log(await next());
    await exited;
    await untilGivenBack(device);
  },
};

const parts = {
  /** Divides the device, uses a part, and ends without a word. */
  async divides(token) {
    const device = await openShared(token);
    const [fast] = await device.partition([1, 'rest']);
    await device.createStream({ partition: fast }).fill(device.zeros(4), 1).done;
    parentPort.postMessage('divided');
    process.exit();
  },
  /** Holds a stream of its own until it is told to let go. */
  async holdsUntilTold(token) {
    const device = await openShared(token);
    const told = new Promise((resolve) => parentPort.once('message', resolve));
    device.createStream().hold(() => told, { timeoutMs: 30_000 });
    parentPort.postMessage('submitted');
    await told;
    await device.close();
  },
  async opensItsOwn(spec) {
    const device = await openDevice(spec);
    parentPort.postMessage(device.zeros(4).share());
    await device.close();
  },
  async reads(token) {
    const device = await openShared(token);
    const stream = device.createStream({ label: 'mine' });
    const x = stream.full([1000], 7, 'i32');
    stream.fill(x, 9);
    const event = stream.record();
    await event.done;
    // Neither disposed nor closed: closing the Device does both.
    device.pinned(100);
    stream.record({ timing: true });
    parentPort.postMessage(`read ${await x.item(999)} on ${device.info.id}`);
    await device.close();
  },
  async adopts({ device: token, x }) {
    const device = await openShared(token);
    const mine = device.adopt(x);
    const other = device.createStream();
    const copy = mine.clone(other);
    const done = other.record();
    parentPort.postMessage(`pending ${!done.isComplete}`);
    await done.done;
    other.fill(mine.subarray(0, 2), 7);
    const token2 = mine.share();
    parentPort.postMessage(token2);
    await once(parentPort, 'message');
    parentPort.unref();
    if ((await copy.read()).join() !== '5,5,5,5,5,5') throw new Error('The first use did not wait.');
    await device.close();
  },
  async late({ device: token, x }) {
    const device = await openShared(token);
    const mine = device.adopt(x);
    const error = await mine.read().catch((failure) => failure);
    parentPort.postMessage(`${error.name} of ${error.cause?.name}: ${error.cause?.message}`);
    await device.close();
  },
  async pins({ device: token, data }) {
    const device = await openShared(token);
    const pinned = device.pin(data);
    const x = device.empty(1000, 'u32');
    device.stream.copy(x, pinned);
    device.stream.fill(x.subarray(0, 1), 4);
    await device.stream.copy(pinned, x).done;
    parentPort.postMessage(`${pinned.data === data} ${pinned.data[0]} ${pinned.data[1]}`);
    pinned[Symbol.dispose]();
    await device.close();
  },
  async outlives(token) {
    const device = await openShared(token);
    const stream = device.createStream();
    const x = stream.full(1000, 1, 'i32');
    await x.item(0);
    parentPort.postMessage('open');
    // That a device may be lost keeps no thread alive.
    const alive = setInterval(() => undefined, 1000);
    const lost = await device.lost;
    clearInterval(alive);
    const refused = await x.read().catch((error) => error);
    parentPort.postMessage(`${reason(lost)} | ${device.state} ${device.signal.aborted} ${refused.name}`);
    await device.close();
  },
  async holds(token) {
    const device = await openShared(token);
    const stream = device.createStream();
    const x = stream.full(1000, 1, 'i32');
    const pinned = device.pinned(1000, 'i32');
    stream.hold(() => new Promise(() => undefined), { timeoutMs: 2 ** 30 });
    stream.copy(x, pinned);
    await device.stream.record({ timing: true }).done;
    parentPort.postMessage(x.share());
    setInterval(() => undefined, 1000);
  },
  async opens(spec) {
    const device = await openDevice(spec);
    parentPort.postMessage(device.share());
    setInterval(() => undefined, 1000);
  },
  async besideItsOwn({ spec, token }) {
    const own = await openDevice(spec);
    const first = await openShared(token);
    const second = await openShared(token);
    await first.close();
    const third = await openShared(token);
    const isOwn = [first, second, third].map((shared) => own.isSameDevice(shared));
    parentPort.postMessage([...isOwn, first.isSameDevice(second), second.isSameDevice(third)].join(' '));
    for (const device of [second, third, own]) await device.close();
  },
  async reopens(token) {
    const results = [];
    for (let n = 0; n < 3; n++) {
      const device = await openShared(token);
      const second = await openShared(token);
      const closing = device.close();
      results.push(await second.full(4, n, 'i32').item(3));
      await closing;
      // The next opening does not wait for it.
      void (n === 1 ? second.destroy() : second.close());
    }
    parentPort.postMessage(results.join(' '));
  },
};

if (isMainThread) {
  const [spec, ...names] = process.argv.slice(2);
  for (const name of names) {
    console.log(`── ${name}`);
    const device = name === 'dying' ? undefined : await openDevice(spec);
    await cases[name](device);
    await device?.close();
  }
} else {
  await parts[workerData.part](workerData.data);
}
