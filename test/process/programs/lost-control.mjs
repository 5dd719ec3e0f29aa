// Asks the worker of a GPU whose driver fails meanwhile.
import { openDevice } from 'millrace';

const device = await openDevice('cuda');
const error = await device.pool.stats().then(
  () => undefined,
  (reason) => reason,
);
console.log(`${error?.name} ${error?.reason} ${error?.device}`);
process.exit();
