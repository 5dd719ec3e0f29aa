// What the types of the public surface promise. Checked by the compiler alone (`npm run types`): a line that is marked
// as an expected error and compiles is an error, and so is a Same<> that is not. Never run.
import {
  array,
  type ArrayToken,
  copy,
  cudaKernel,
  type CudaModule,
  cudaModule,
  elapsed,
  empty,
  f32,
  fill,
  full,
  getDefaultDevice,
  getStream,
  inout,
  input,
  kernel,
  launch,
  type Device,
  type DeviceArray,
  type DeviceEvent,
  type HostOf,
  i64,
  type Kernel,
  type LaunchShape,
  type Operation,
  openDevice,
  output,
  type PinnedArray,
  type Stream,
  u32,
  u8,
  type withDevice,
  zeros,
} from 'millrace';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<T extends true>(): T;

declare const device: Device;
declare const stream: Stream;
declare const event: DeviceEvent;
declare const operation: Operation;

// Arrays carry their element type, and f32 is the default.
const floats = device.zeros(4);
const bytes = device.from(new Uint8ClampedArray(4));
const halves = device.empty([2, 3], 'f16');
const longs = device.full(4, 1n, i64);
holds<Same<typeof floats, DeviceArray<'f32'>>>();
holds<Same<typeof bytes, DeviceArray<'u8'>>>();
holds<Same<typeof halves, DeviceArray<'f16'>>>();
holds<Same<typeof longs, DeviceArray<'i64'>>>();
const readings = [await floats.read(), await longs.read(), await floats.read({ into: new Float32Array(4) })] as const;
holds<Same<(typeof readings)[0], Float32Array<ArrayBuffer>>>();
holds<Same<(typeof readings)[1], BigInt64Array<ArrayBuffer>>>();
holds<Same<Awaited<ReturnType<typeof longs.item>>, bigint>>();
holds<Same<PinnedArray<'u8'>['data'], Uint8Array<SharedArrayBuffer>>>();
holds<Same<HostOf['f16'], Uint16Array>>();
holds<Same<HostOf['bf16'], Uint16Array>>();
// The functions of the module have the types of the methods.
const ofModule = [zeros(4), full(4, 1n, i64, { device: 'cuda:1' }), array(new Int8Array(2), { stream }), empty([2, 3], 'f16')] as const;
holds<Same<typeof ofModule, readonly [DeviceArray<'f32'>, DeviceArray<'i64'>, DeviceArray<'i8'>, DeviceArray<'f16'>]>>();
holds<Same<ReturnType<typeof withDevice<number>>, number>>();
const submitted = [
  copy(floats, ofModule[0]),
  fill(longs, 1n),
  getStream('cpu')
    .record()
    .device.run(() => 1),
] as const;
holds<Same<typeof submitted, readonly [Operation, Operation, number]>>();
// @ts-expect-error the dtypes differ
copy(floats, longs);
// @ts-expect-error no device has this name
zeros(4, 'f32', { device: 'gpu' });
// A list of numbers is f32 unless the dtype is given.
const lists = [device.from([1, 2]), device.from([[1, 2]].flat(), { shape: [2, 1] }), device.from([1, 2], { dtype: 'i32' })] as const;
holds<Same<typeof lists, readonly [DeviceArray<'f32'>, DeviceArray<'f32'>, DeviceArray<'i32'>]>>();
// @ts-expect-error 64-bit integers are no f32
device.from([1n]);
// @ts-expect-error a boolean array has no number value
device.full(4, 1, 'bool');
// @ts-expect-error no such element type
device.zeros(4, 'f128');

// Copies keep the element type.
stream.copy(floats, new Float32Array(4));
stream.copy(new Uint8Array(4), bytes);
// @ts-expect-error f32 into u8
stream.copy(bytes, floats);
// @ts-expect-error Float64Array into f32
stream.copy(floats, new Float64Array(4));

// Launches take exactly the parameters of the kernel.
const saxpy = kernel('saxpy', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => {
  y[i] = a * x[i]! + y[i]!;
});
stream.launch(saxpy, 4, { a: 2, x: floats, y: floats });
const launched = launch(saxpy, 4, { a: 2, x: floats, y: floats }, { device: 'cuda:1', stream });
holds<Same<typeof launched, Operation>>();
// @ts-expect-error y is missing
launch(saxpy, 4, { a: 2, x: floats });
// @ts-expect-error y is missing
stream.launch(saxpy, 4, { a: 2, x: floats });
// @ts-expect-error x is f32
stream.launch(saxpy, 4, { a: 2, x: bytes, y: floats });
// @ts-expect-error a is a scalar
stream.launch(saxpy, 4, { a: floats, x: floats, y: floats });
// @ts-expect-error no parameter z
stream.launch(saxpy, 4, { a: 2, x: floats, y: floats, z: 1 });

const text = cudaKernel('count', { n: u32, out: output(u32) }, 'extern "C" __global__ void count(unsigned n, unsigned* out) {}');
const counters: CudaModule = cudaModule('__device__ int calls; extern "C" __global__ void count(unsigned n, unsigned* out) {}');
const counted = counters.kernel('count', { n: u32, out: output(u32) });
holds<Same<typeof counted, typeof text>>();
const calls = counters.global(device, 'calls', 'i32', []);
holds<Same<typeof calls, DeviceArray<'i32'>>>();
holds<Same<DeviceArray<'u8'>, ReturnType<typeof counters.global<'u8'>>>>();
void device.compile(counters, counted as Kernel);
// @ts-expect-error The device comes first.
counters.global('calls', 'i32', []);
holds<Same<typeof text extends Kernel ? true : false, true>>();

// Inputs are read-only in a body, and ranks shape the indexing.
kernel('bodies', { image: input(u8, 2), out: output(f32, 2), n: i64 }, ({ image, out, n }, { i, j }) => {
  out[i]![j] = image[i]![j]!;
  holds<Same<typeof n, bigint>>();
  // @ts-expect-error an input is not written
  image[i]![j] = 1;
  // A shape has as many numbers as the array has dimensions, a row's one less.
  holds<Same<typeof image.shape, readonly [number, number]>>();
  holds<Same<(typeof out)[number]['shape'], readonly [number]>>();
  // @ts-expect-error there is no third dimension
  out[i]![j] = image.shape[2];
});

// A launch names its threads, or its grid and block, not both.
const shapes: readonly LaunchShape[] = [4, [4, 4], { threads: [4, 4], block: [2, 2] }, { grid: 1, block: [32, 4], sharedBytes: 128 }];
holds<Same<typeof shapes extends readonly LaunchShape[] ? true : false, true>>();
// @ts-expect-error a grid needs a block
const half: LaunchShape = { grid: 1 };
// @ts-expect-error not both
const both: LaunchShape = { grid: 1, block: 1, threads: 4 };
void [half, both];

// Nothing is a promise by accident: an async function may return these as they are.
holds<Same<Awaited<Operation>, Operation>>();
holds<Same<Awaited<DeviceEvent>, DeviceEvent>>();
holds<Same<Awaited<Stream>, Stream>>();
holds<Same<typeof event.done, Promise<void>>>();
void operation.done.then(({ submittedAt, finishedAt }) => finishedAt - submittedAt);

// A run gives what its function gives, a promise where that is one.
holds<Same<ReturnType<typeof stream.run<number>>, number>>();
const run = [stream.run(() => 7), stream.run(async () => 'x'), stream.run(() => device.zeros(4), { syncExit: true })] as const;
holds<Same<typeof run, readonly [number, Promise<string>, DeviceArray<'f32'>]>>();
// @ts-expect-error a function, not its value
stream.run(7);
getDefaultDevice().setCurrentStream(stream, { sync: true });

// A host function returns anything but a promise; a hold waits for one.
stream.host(() => [1].push(2));
stream.host(() => undefined, { label: 'note' });
declare const sometimes: () => number | Promise<void>;
// @ts-expect-error nothing waits for the promise
stream.host(async () => {});
// @ts-expect-error not even if it comes only sometimes
stream.host(sometimes);
stream.hold(async () => {}, { timeoutMs: 1 });
stream.hold(async () => 'a value that nobody needs', { timeoutMs: 1 });

// Events have no time unless asked for; what tells one is a promise.
const between = elapsed(event, event, { timeoutMs: 1 });
holds<Same<typeof between, Promise<number>>>();
holds<Same<Awaited<typeof operation.done>['deviceMs'], number | undefined>>();
holds<Same<Awaited<ReturnType<typeof event.ipcHandle>>, Uint8Array<ArrayBuffer>>>();
stream.record({ timing: true });
// @ts-expect-error a stream is no event
stream.record(stream);

// A token carries its dtype; that of a message is checked against the dtype given.
// What `worker.on('message', ...)` gives.
declare const message: { readonly any: ReturnType<typeof JSON.parse>; readonly unknown: unknown; readonly token: ArrayToken };
const adopted = [
  device.adopt(floats.share()),
  device.adopt(message.any),
  device.adopt(message.token),
  device.adopt(message.any, 'u8'),
  device.adopt(message.unknown, 'f32'),
  device.adopt(message.token, i64),
] as const;
type Adopted = readonly [DeviceArray<'f32'>, DeviceArray, DeviceArray, DeviceArray<'u8'>, DeviceArray<'f32'>, DeviceArray<'i64'>];
holds<Same<typeof adopted, Adopted>>();
// @ts-expect-error a device is no array
device.adopt(device.share());

// Names of devices are checked.
void openDevice('cuda:1');
// @ts-expect-error no such backend
void openDevice('metal');
