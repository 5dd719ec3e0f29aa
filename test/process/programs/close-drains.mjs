// close() with work in flight: everything submitted before it has happened when it resolves.
import { openDevice, StateError } from 'millrace';
import { spin, startWork } from './work.mjs';

const [spec] = process.argv.slice(2);
const device = await openDevice(spec);
const lanes = await startWork(device, 60);
const closing = device.close();
console.log(device.close() === closing ? 'one promise' : 'two promises');
try {
  lanes[0].stream.launch(spin, 1, { x: lanes[0].x, turns: 0 });
  console.log('accepted');
} catch (error) {
  console.log(error instanceof StateError ? 'refused' : error);
}
await closing;
console.log(lanes.every((lane) => lane.last.isComplete && lane.copied.isComplete) ? 'complete' : 'incomplete');
await Promise.all(lanes.map((lane) => lane.copied.done));
console.log(lanes[0].out.data[0] === lanes[1].out.data[0] && lanes[0].out.data[0] !== 0 ? 'same' : 'different');
console.log(device.state);
