// A thread's first build of a TypeScript kernel, while all file descriptors but argv[2] are taken; then the same kernel again, and another.
// Nothing is built before, so that whatever a build loads late is asked for in that moment.
import { closeSync, openSync } from 'node:fs';
import { i32, kernel, openDevice, output } from 'millrace';

const spare = Number(process.argv[2]);
const device = await openDevice('cpu');
const result = device.zeros(1, 'i32');
await result.read();
const settled = (promise) =>
  promise.then(
    () => 'built',
    (error) => `${error.name} ${error.code}`,
  );

const taken = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  for (let n = 0; n < spare; n++) closeSync(taken.pop());
}
const first = kernel('first', { y: output(i32) }, ({ y }, { i }) => {
  y[i] = 7;
});
const without = await settled(device.stream.launch(first, 1, { y: result }).done);
for (const file of taken) closeSync(file);

const again = await settled(device.stream.launch(first, 1, { y: result }).done);
const value = await result.item(0);
const second = kernel('second', { y: output(i32) }, ({ y }, { i }) => {
  y[i] = 8;
});
const other = await settled(device.stream.launch(second, 1, { y: result }).done);
console.log(JSON.stringify({ without, again, other, values: [value, await result.item(0)], state: device.state }));
await device.close();
