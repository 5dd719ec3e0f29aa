// From a function's text to its first result, twice, in a process of its own: of the first kernel and of one that follows, in
// milliseconds on standard output. What is in the cache of built kernels decides whether that takes a compiler.
import { f32, inout, kernel, openDevice } from 'millrace';

const square = () =>
  kernel('square', { x: inout(f32) }, ({ x }, { i }) => {
    x[i] = x[i]! * x[i]! + 1;
  });
const cube = () =>
  kernel('cube', { x: inout(f32) }, ({ x }, { i }) => {
    x[i] = x[i]! * x[i]! * x[i]! + 1;
  });

await using device = await openDevice('cpu');
const took: number[] = [];
for (const make of [square, cube]) {
  using x = device.ones(1000);
  await x.read();
  const start = performance.now();
  device.stream.launch(make(), 1000, { x });
  const [first] = await x.read();
  took.push(performance.now() - start);
  if (first !== 2) throw new Error(`The kernel gave ${first}.`);
}
console.log(took.join(' '));
