// Starts work and ends the process in the middle of it, in the way asked for.
import { openDevice } from 'millrace';
import { startWork } from './work.mjs';

const [spec, how] = process.argv.slice(2);
const device = await openDevice(spec);
const lanes = await startWork(device);
process.on('exit', () => console.log(lanes[0].copied.isComplete ? 'complete' : 'in flight'));
console.log('started');

const ways = {
  exit() {
    process.exit(7);
  },
  'exit, awaited'() {
    for (const lane of lanes)
      lane.copied.done.then(
        () => console.log('awaited'),
        () => console.log('rejected'),
      );
    process.exit(7);
  },
  throw() {
    setImmediate(() => {
      throw new Error('on purpose');
    });
  },
  reject() {
    void Promise.reject(new Error('on purpose'));
  },
};
ways[how]();
