// Readers of a stream or device, or subscriptions, and nothing else that keeps the process alive: prints what they are given.
import { openDevice, operationsOf } from 'millrace';
import { ONE, spin, TURNS } from './work.mjs';

const [spec, how, when] = process.argv.slice(2);
const device = await openDevice(spec);
await device.compile(spin);
const stream = device.createStream();
const x = stream.zeros(1, 'u32');
globalThis.kept = x; // The collector would tell of it.
await stream.synchronize();

const readers = {
  stream,
  'operations of the stream': operationsOf(stream, { every: 99 }),
  device: operationsOf(device, { every: 99 }),
};
const subscriptions = {
  'operations$ of the stream': stream.operations$,
  'operations$ of the device': device.operations$,
  'activity$ of the stream': stream.activity$,
  'activity$ of the device': device.activity$,
};
const submit = () => {
  for (let n = 0; n < 3; n++) stream.launch(spin, ONE, { x, turns: 20 * TURNS });
};
const say = (way, what) => console.log(how === 'all' ? `${way}: ${what}` : what);
async function read(way) {
  for await (const { kind } of readers[way]) say(way, kind);
  say(way, 'the end');
}
// Pending operations are told as well.
if (when === 'before') submit();
for (const way of how === 'all' ? [...Object.keys(readers), ...Object.keys(subscriptions)] : [how]) {
  if (way in readers) {
    void read(way);
    continue;
  }
  subscriptions[way].subscribe({
    next: ({ kind, phase, operation }) => {
      if (phase === undefined) say(way, kind);
      else if (phase !== 'submitted') say(way, operation.kind);
    },
    complete: () => say(way, 'the end'),
  });
}
process.on('exit', () => console.log('exit'));
if (when === 'busy' || when === 'closed') submit();
if (when === 'closed') void device.close();
