// Opens a device twice, and between these one that there is not. The process has nothing to do then, and ends.
import { openDevice } from 'millrace';

const [spec] = process.argv.slice(2);
globalThis.kept = await openDevice(spec);
await openDevice('cuda:63').catch(() => console.log('refused'));
globalThis.again = await openDevice('auto');
console.log(globalThis.again.state);
