// What a launch costs the calling thread, from the first call on, until V8 has optimised it, beside the launch of a graph:
//   node bench/programs/first-launches.mjs [cuda|cpu]
// Calls are timed one by one; every 100 the program waits for the device.
import { f32, inout, kernel, openDevice } from 'millrace';

const addOne = kernel('add_one', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i] + 1;
});
const device = await openDevice(process.argv[2] ?? 'cpu');
await device.compile(addOne);
const { stream } = device;
const x = stream.zeros(64);
const graph = stream.capture((s) => {
  for (let n = 0; n < 20; n++) s.launch(addOne, 64, { x });
});
await graph.upload(stream).done;
const calls = { 'launch of a kernel': () => stream.launch(addOne, 64, { x }), 'launch of a graph of 20': () => stream.launch(graph) };
const ends = [100, 1000, 3000, 10_000, 30_000, 100_000];
for (const [name, call] of Object.entries(calls)) {
  let from = 0;
  for (const end of ends) {
    let ms = 0;
    for (let n = from; n < end; n++) {
      const start = performance.now();
      call();
      ms += performance.now() - start;
      if (n % 100 === 99) await stream.synchronize();
    }
    console.log(`${name}, calls ${from + 1} to ${end}: ${((ms * 1000) / (end - from)).toFixed(2)} us each`);
    from = end;
  }
}
await device.close();
