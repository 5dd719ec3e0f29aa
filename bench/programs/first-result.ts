// A process of its own: the time from the import to the first result of a kernel, then of the first copies of ordinary arrays.
// bench/peers/cupy_first_result.py is the same with CuPy. Prints one JSON object.
//
//   node first-result.js DEVICE [MIB,MIB]
const start = performance.now();
const { f32, inout, kernel, openDevice } = await import('millrace');
const imported = performance.now();

export interface FirstResult {
  readonly importSeconds: number;
  readonly openSeconds: number;
  readonly resultSeconds: number;
  /** By size in MiB. */
  readonly upSeconds: Readonly<Record<string, number>>;
}

const [spec = 'cpu', sizes] = process.argv.slice(2);
const square = kernel('square', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! * x[i]! + 1;
});
const device = await openDevice(spec as 'cpu');
const opened = performance.now();
using x = device.ones(256);
device.stream.launch(square, 256, { x });
const [first] = await x.read();
const done = performance.now();
if (first !== 2) throw new Error(`The kernel gave ${first}.`);

const upSeconds: Record<string, number> = {};
for (const size of sizes?.split(',') ?? []) {
  const count = (Number(size) * 2 ** 20) / 4;
  using dst = device.empty(count);
  const data = new Float32Array(count).fill(1);
  await device.synchronize();
  const before = performance.now();
  await device.stream.copy(dst, data).done;
  upSeconds[size] = (performance.now() - before) / 1e3;
}
const result: FirstResult = {
  importSeconds: (imported - start) / 1e3,
  openSeconds: (opened - imported) / 1e3,
  resultSeconds: (done - start) / 1e3,
  upSeconds,
};
console.log(JSON.stringify(result));
await device.close();
