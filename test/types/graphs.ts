// What the types of captures and graphs promise. Checked by the compiler alone, as surface.ts is. Never run.
import {
  type CaptureError,
  f32,
  i64,
  inout,
  input,
  kernel,
  output,
  type u32,
  u8,
  type ArraySlot,
  type CaptureOptions,
  type CaptureReason,
  type Device,
  type DeviceArray,
  type Graph,
  type GraphEdge,
  type GraphNode,
  type GraphNodeKind,
  type NodeTime,
  type GraphSlots,
  type In,
  type GraphValues,
  type Operation,
  type Recorder,
  type ScalarSlot,
  type Stream,
} from 'millrace';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<T extends true>(): T;

declare const device: Device;
declare const stream: Stream;
const floats = device.zeros(4);
const bytes = device.zeros(4, 'u8');
const saxpy = kernel('saxpy', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => {
  y[i] = a * x[i]! + y[i]!;
});

// A capture without parameters is a graph without values.
const plain = stream.capture((s) => s.launch(saxpy, 4, { a: 2, x: floats, y: floats }));
holds<Same<typeof plain, Graph>>();
holds<Same<ReturnType<typeof plain.launch>, Operation>>();
plain.launch();
stream.launch(plain);
stream.capture((s) => void s.fill(floats, 1), { label: 'fill', strict: true, mode: 'relaxed' });
// @ts-expect-error it takes no values
plain.launch({ a: 1 });
// @ts-expect-error it takes no values
stream.launch(plain, { a: 1 });
// @ts-expect-error no such option
stream.capture((s) => void s.fill(floats, 1), { stric: true });
// @ts-expect-error no such mode
stream.capture((s) => void s.fill(floats, 1), { mode: 'lax' });

// Each parameter is a slot of its type in the function, and a value of its type at a launch.
const step = stream.capture({ dt: f32, n: i64, x: input(f32), y: inout(f32), out: output(u8, 2) }, (s, slots) => {
  holds<Same<typeof slots.dt, ScalarSlot<'f32'>>>();
  holds<Same<typeof slots.n, ScalarSlot<'i64'>>>();
  holds<Same<typeof slots.x, ArraySlot<'f32', 'in'>>>();
  holds<Same<typeof slots.y, ArraySlot<'f32', 'inout'>>>();
  holds<Same<typeof slots.out, ArraySlot<'u8', 'out'>>>();
  s.launch(saxpy, 4, { a: slots.dt, x: slots.x, y: slots.y });
  s.launch(saxpy, 4, { a: 1, x: slots.y, y: floats });
  // @ts-expect-error the kernel writes y, and x is declared by input
  s.launch(saxpy, 4, { a: 1, x: slots.x, y: slots.x });
  // @ts-expect-error n is i64
  s.launch(saxpy, 4, { a: slots.n, x: slots.x, y: slots.y });
  // @ts-expect-error out is u8
  s.launch(saxpy, 4, { a: 1, x: slots.out, y: slots.y });
  // @ts-expect-error a scalar is no array
  s.launch(saxpy, 4, { a: 1, x: slots.dt, y: slots.y });
  // @ts-expect-error an array is no scalar
  s.launch(saxpy, 4, { a: slots.x, x: slots.x, y: slots.y });
  // @ts-expect-error there is no such parameter
  s.launch(saxpy, 4, { a: slots.dx, x: slots.x, y: slots.y });
  s.fill(slots.y, 1);
  s.fill(slots.y, slots.dt);
  s.fill(floats, slots.dt);
  s.copy(floats, slots.x);
  s.copy(slots.y, slots.x, { count: 4 });
  // @ts-expect-error x is declared by input
  s.fill(slots.x, 1);
  // @ts-expect-error n is i64
  s.fill(floats, slots.n);
  // @ts-expect-error x is declared by input
  s.copy(slots.x, floats);
  // @ts-expect-error out is declared by output
  s.copy(bytes, slots.out);
  // @ts-expect-error out is u8
  s.copy(slots.out, floats);
  // @ts-expect-error a scalar is no array
  s.copy(floats, slots.dt);
});
const values = { dt: 0.1, n: 7n, x: floats, y: floats, out: bytes };
step.launch(values);
stream.launch(step, values);
stream.launch(step, { ...values, n: 7 });
// @ts-expect-error the values are missing
step.launch();
// @ts-expect-error the values are missing
stream.launch(step);
// @ts-expect-error x is missing
stream.launch(step, { dt: 0.1, n: 7n, y: floats, out: bytes });
// @ts-expect-error there is no parameter z
stream.launch(step, { dt: 0.1, n: 7n, x: floats, y: floats, out: bytes, z: 1 });
// @ts-expect-error dt is a number
step.launch({ ...values, dt: 'fast' });
// @ts-expect-error dt is a scalar
step.launch({ ...values, dt: floats });
// @ts-expect-error x is f32
step.launch({ ...values, x: bytes });
// @ts-expect-error x is an array
step.launch({ ...values, x: 1 });
// @ts-expect-error a typed array is no device array
step.launch({ ...values, x: new Float32Array(4) });
// @ts-expect-error a dtype's name is no parameter
stream.capture({ dt: 'f32' }, () => undefined);

// The function is synchronous.
// @ts-expect-error an async function
stream.capture(async (s) => void s.fill(floats, 1));
// @ts-expect-error an async function
stream.capture({ a: f32 }, async (s) => void s.fill(floats, 1));
// @ts-expect-error it returns a promise
stream.capture(() => floats.read());
// @ts-expect-error a function, not its value
stream.capture(7);
// @ts-expect-error the function is missing
stream.capture({ a: f32 });

// What the function gets submits, and does not wait.
stream.capture((s) => {
  holds<Same<typeof s, Recorder>>();
  s.record();
  s.host(() => undefined);
  // @ts-expect-error a recorder is not waited for
  void s.synchronize();
  // @ts-expect-error nor asked
  void s.isComplete;
  // @ts-expect-error nor closed
  void s.close();
  // @ts-expect-error and it captures nothing
  s.capture(() => undefined);
});
// A function for both: a stream is a recorder.
const helper = (to: Recorder, y: DeviceArray): Operation => to.fill(y, 1);
helper(stream, floats);
stream.capture((s) => helper(s, floats));

// A graph tells its parts.
holds<Same<typeof step.nodes, readonly GraphNode[]>>();
holds<Same<typeof step.edges, readonly GraphEdge[]>>();
holds<Same<GraphEdge, readonly [from: number, to: number]>>();
holds<Same<GraphNode['kind'], GraphNodeKind>>();
holds<Same<ReturnType<typeof step.toDot>, string>>();
holds<Same<ReturnType<typeof step.toSvg>, Promise<string>>>();
holds<Same<ReturnType<typeof step.upload>, Operation>>();
holds<Same<ReturnType<typeof step.close>, Promise<void>>>();
holds<Same<Awaited<Graph>, Graph>>();
holds<Same<GraphValues<{}>, []>>();
holds<Same<keyof GraphSlots<{ a: typeof f32; b: typeof u32 }>, 'a' | 'b'>>();
holds<Same<CaptureError['reason'], CaptureReason>>();
holds<Same<keyof CaptureOptions, 'label' | 'strict' | 'timing' | 'mode'>>();
holds<Same<Awaited<ReturnType<typeof step.nodeTimes>>, readonly NodeTime[]>>();
// @ts-expect-error nodes are not changed
step.nodes.push({ id: 1 });

// A slot is declared for what kernels do with its array.
const convert = kernel('convert', { from: input(u8), to: output(u8) }, ({ from, to }, { i }) => {
  to[i] = from[i]!;
});
stream.capture({ a: input(u8), b: output(u8), c: inout(u8) }, (s, { a, b, c }) => {
  s.launch(convert, 4, { from: a, to: b });
  s.launch(convert, 4, { from: c, to: c });
  // @ts-expect-error the kernel reads from, and b is declared by output
  s.launch(convert, 4, { from: b, to: c });
  // @ts-expect-error the kernel writes to, and a is declared by input
  s.launch(convert, 4, { from: c, to: a });
});
const anySlot = (slot: ArraySlot<'u8', 'in'>): ArraySlot => slot;
void anySlot;

// A graph is of its parameters, no more and no fewer.
// @ts-expect-error it needs values
const forgotten: Graph = step;
// @ts-expect-error it takes no values
const surplus: Graph<{ dt: typeof f32 }> = plain;
declare const ofTwo: Graph<{ dt: typeof f32; x: In<'f32'> }>;
// @ts-expect-error x would be missing
const ofOne: Graph<{ dt: typeof f32 }> = ofTwo;
void [forgotten, surplus, ofOne];
// @ts-expect-error a third argument means nothing
stream.launch(plain, undefined, {});
// @ts-expect-error a third argument means nothing
stream.launch(step, values, { block: 64 });
// @ts-expect-error a second argument means nothing
step.launch(values, 2);

// A function that takes any graph of some parameters.
const run = (graph: Graph<{ dt: typeof f32 }>): Operation => graph.launch({ dt: 1 });
run(stream.capture({ dt: f32 }, (s, { dt }) => void s.launch(saxpy, 4, { a: dt, x: floats, y: floats })));

// Bodies of conditions are functions that return nothing to wait for, or graphs.
declare const flag: DeviceArray<'i32'>;
stream.captureIf(flag, (s) => s.launch(plain));
stream.captureIf(flag, undefined, (s) => void s.fill(floats, 1));
stream.captureIf(flag, plain, (s) => s.fill(floats, 1));
stream.captureSwitch(flag, [plain, (s) => s.fill(floats, 1), (s) => void s.copy(floats, floats)]);
// @ts-expect-error an async body
stream.captureIf(flag, async () => undefined);
// @ts-expect-error an async body
stream.captureIf(flag, undefined, async () => undefined);
// @ts-expect-error an async body
stream.captureWhile(flag, async () => undefined);
// @ts-expect-error an async body
stream.captureSwitch(flag, [plain, async () => undefined]);
