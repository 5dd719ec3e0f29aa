// A subscription to errors$, and nothing else that keeps the process alive: prints what it is given.
import { f32, input, kernel, openDevice, output } from 'millrace';
import { ONE, spin, TURNS } from './work.mjs';

const shifted = kernel('shifted', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i + 4];
});
const device = await openDevice(process.argv[2]);
await device.compile(spin, shifted);
const stream = device.createStream();
const turns = stream.zeros(1, 'u32');
const x = stream.ones(4);
const y = stream.zeros(4);
globalThis.kept = [x, y, turns]; // The collector would tell of them.
await stream.synchronize();
device.errors$.subscribe((error) => console.log(error.name));
process.on('exit', () => console.log('exit'));
// Longer than the interval at which the library looks for failures.
for (let n = 0; n < 10; n++) stream.launch(spin, ONE, { x: turns, turns: 20 * TURNS });
stream.launch(shifted, 4, { x, y });
