// node dist/main.js NUMBER...: the functions from a shell.
import { openDevice } from 'millrace';
import { softplus } from './index.js';

const device = await openDevice();
const y = softplus(device.from(process.argv.slice(2).map(Number)));
console.log((await y.list({ rank: 1 })).join(' '));
await device.close();
