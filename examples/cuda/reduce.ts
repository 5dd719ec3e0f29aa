// Reductions with the kernel template of reduce.cu. The program names each instance as in C++. Four run at a time, each on its own stream.
import assert from 'node:assert/strict';
import { cudaKernel, f32, f64, i32, inout, input, openDevice, output, overlap, u32, u8, type DeviceSpec } from 'millrace';

const N = 1 << 18;
const BLOCKS = 64;
const FILE = new URL('./reduce.cu', import.meta.url);

let state = 1;
/** Eighths between -100 and 100: every sum of them is exact, so the order of additions does not matter. */
const eighths = Float32Array.from({ length: N }, () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return (((state >>> 8) % 1601) - 800) / 8;
});
const DATA = { float: eighths, int: Int32Array.from(eighths), double: Float64Array.from(eighths) };
const DTYPES = { float: f32, int: i32, double: f64 };

const PLAIN = {
  Sum: (x: readonly number[]) => x.reduce((sum, value) => sum + value, 0),
  Min: (x: readonly number[]) => x.reduce((least, value) => Math.min(least, value)),
  Max: (x: readonly number[]) => x.reduce((most, value) => Math.max(most, value)),
  ArgMax: (x: readonly number[]) => x.indexOf(PLAIN.Max(x)),
};

/** An instance of the template. The values of ArgMax are structs, Indexed<T>: as an array they are bytes. */
function instance(type: keyof typeof DATA, operation: keyof typeof PLAIN, block: number) {
  const name = `reduce<${type}, ${operation}, ${block}>`;
  const [dtype, size] = operation === 'ArgMax' ? ([u8, 2 * DATA[type].BYTES_PER_ELEMENT] as const) : ([DTYPES[type], 1] as const);
  const params = { x: input(DTYPES[type]), n: i32, partials: output(dtype), finished: inout(u32), result: output(dtype) };
  return { name, type, operation, block, dtype, size, kernel: cudaKernel(name, params, FILE) };
}

const instances = [
  instance('float', 'Sum', 256),
  instance('float', 'Min', 256),
  instance('float', 'Max', 256),
  instance('float', 'ArgMax', 256),
  instance('int', 'Sum', 128),
  instance('int', 'ArgMax', 128),
  instance('double', 'Sum', 512),
  instance('double', 'Min', 512),
];

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
await device.compile(...instances.map(({ kernel }) => kernel));
using floats = device.from(DATA.float);
using ints = device.from(DATA.int);
using doubles = device.from(DATA.double);
const arrays = { float: floats, int: ints, double: doubles };

const results$ = overlap(device, instances, { depth: 4 }, async (reduction, lane) => {
  const { name, type, operation, block, dtype, size, kernel } = reduction;
  const [partials, result] = [lane.empty(BLOCKS * size, dtype), lane.empty(size, dtype)];
  const finished = lane.zeros(1, u32);
  lane.stream.launch(kernel, { grid: BLOCKS, block }, { x: arrays[type], n: N, partials, finished, result });
  const read = await result.read();
  const value = operation === 'ArgMax' ? new Int32Array(read.buffer)[DATA[type].BYTES_PER_ELEMENT / 4] : read[0];
  return { name, value, expected: PLAIN[operation]([...DATA[type]]) };
});
await results$.forEach(({ name, value, expected }) => {
  assert.equal(value, expected);
  console.log(`${name} = ${value}`);
});
// prints: reduce<float, Sum, 256> = -28420.625
// prints: reduce<float, Min, 256> = -100
// prints: reduce<float, Max, 256> = 100
// prints: reduce<float, ArgMax, 256> = 2056
// prints: reduce<int, Sum, 128> = -28323
// prints: reduce<int, ArgMax, 128> = 2056
// prints: reduce<double, Sum, 512> = -28420.625
// prints: reduce<double, Min, 512> = -100
