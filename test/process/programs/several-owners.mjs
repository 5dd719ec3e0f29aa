// The same device in three environments at once, and twice in this one.
import { openDevice } from 'millrace';
import { startOwner } from './owner.mjs';
import { checkDevice } from './work.mjs';

const [spec] = process.argv.slice(2);
const owners = [startOwner(spec, 'check'), startOwner(spec, 'check')];
const device = await openDevice(spec);
const again = await openDevice(spec);
console.log(device === again ? 'one device' : 'two devices');
await Promise.all([checkDevice(device), ...owners.map((owner) => owner.message)]);
console.log('three owners');
await again.close();
await checkDevice(device);
console.log('still open');
await device.close();
console.log(device.state);
await Promise.all(owners.map((owner) => owner.exited));
