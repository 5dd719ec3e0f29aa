// A kernel that faults is the last operation of its stream: what each way to wait for it gives, and what the device says afterwards. A line each.
import { cudaKernel, i32, inout, openDevice } from 'millrace';

const [spec, ...isolations] = process.argv.slice(2);
const faulty = cudaKernel('faulty', { x: inout(i32) }, 'extern "C" __global__ void faulty(int* x) { if (x[0] == 0) __trap(); }');
const WAITS = {
  'stream.synchronize': ({ stream }) => stream.synchronize(),
  'device.synchronize': ({ device }) => device.synchronize(),
  'synchronize with a limit': ({ stream }) => stream.synchronize({ timeoutMs: 60_000 }),
  'event.done': ({ event }) => event.done,
  // Asks again until the device has reached it.
  'event.synchronize, late': async ({ event, launched }) => {
    while (!launched.isComplete) await new Promise(setImmediate);
    await event.synchronize();
  },
  read: ({ x }) => x.read(),
};
const told = ({ name, reason, operation, cause, message }) =>
  [
    name,
    reason,
    operation?.label,
    cause === undefined ? 'no cause' : message.includes(cause.message.slice(0, -1)),
    cause?.operation?.label,
  ].join(' ');
for (const isolation of isolations) {
  // A GPU is lost for the process with the first of them.
  const waits = Object.entries(WAITS).slice(0, spec.startsWith('cpu') && isolation === 'thread' ? undefined : 1);
  for (const [how, wait] of waits) {
    const device = await openDevice(spec, { isolation });
    await device.compile(faulty);
    device.errors$.subscribe(() => undefined);
    const { stream } = device;
    const x = stream.zeros(1, 'i32');
    await stream.synchronize();
    const before = stream.record();
    const launched = stream.launch(faulty, { grid: 1, block: 1 }, { x });
    const event = stream.record();
    const error = await wait({ device, stream, x, event, launched }).then(
      () => ({ name: 'resolved' }),
      (reason) => reason,
    );
    const lost = await device.lost;
    let later;
    try {
      stream.zeros(1);
    } catch (thrown) {
      later = thrown;
    }
    await before.done;
    console.log([how, isolation, told(error), error === lost, later === lost, device.state].join(' | '));
    await device.close();
  }
}
