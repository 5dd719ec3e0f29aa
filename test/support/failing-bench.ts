// What random programs with failing kernels run on: devices, streams, arrays, and the calls of kernels and graphs.
import { BoundsError, i32, inout, input, LaunchError } from 'millrace';
import type { Device, DeviceArray, Graph, In, InOut, Kernel, Operation, PinnedArray, Scalar, Stream } from 'millrace';
import { GRAPH_ROOT, usesOfGraph } from './failure-graphs.js';
import { indexIn, isWhole, LENGTH, type KernelCall, type Part, usedPart } from './failure-model.js';
import { FAILING_KERNELS } from './failing-kernels.js';
import { ARRAYS, PINNED, SLOT_X, SLOT_Y, STREAMS, TRACKED, type GraphSpec } from './failing-programs.js';

/** Indices of the failures of step n begin here. */
const FAR = 5000;
const APART = 2 * LENGTH;
/** An index outside every array, which names the step. */
export const farOf = (root: number): number => FAR + APART * root;
/** The step whose kernel failed with this error; undefined for another error. */
export function rootOf(error: unknown): number | undefined {
  if (error instanceof BoundsError) return Math.floor((error.index - FAR) / APART);
  if (!(error instanceof LaunchError)) return undefined;
  const thread = /thread \((\d+), 0, 0\)/.exec(error.message)?.[1];
  return thread === undefined ? undefined : Number(thread);
}

export type GraphParams = { readonly x: In<'i32'>; readonly y: InOut<'i32'>; readonly by: Scalar<'i32'> };
export type AnyArray = DeviceArray<'i32'>;

/** Streams and arrays for all programs. */
export interface FailingBench {
  readonly devices: readonly Device[];
  readonly streams: readonly Stream[];
  readonly arrays: AnyArray[];
  readonly pinned: readonly PinnedArray<'i32'>[];
  /** One array for each stream, which nothing else uses. */
  readonly scratch: readonly AnyArray[];
  close(): Promise<void>;
}

export async function makeFailingBench(devices: readonly Device[]): Promise<FailingBench> {
  const kernels = Object.values(FAILING_KERNELS).map(([kernel]) => kernel);
  await Promise.all(devices.map((device) => device.compile(...kernels)));
  const streams = devices.flatMap((device) =>
    Array.from({ length: STREAMS }, (_, n) => device.createStream({ ordering: n < TRACKED ? 'tracked' : 'explicit' })),
  );
  const arrays = devices.flatMap((device) => Array.from({ length: ARRAYS }, () => device.zeros(LENGTH, 'i32')));
  const pinned = Array.from({ length: PINNED }, () => devices[0]!.pinned(LENGTH, 'i32'));
  const scratch = streams.map((stream) => stream.zeros(1, 'i32'));
  // Failures that no code awaits are expected.
  const errors = devices.map((device) => device.errors$.subscribe(() => undefined));
  await Promise.all(devices.map((device) => device.synchronize()));
  const close = async (): Promise<void> => {
    await Promise.all(streams.map((stream) => stream.close()));
    for (const one of [...arrays, ...pinned, ...scratch]) one[Symbol.dispose]();
    for (const one of errors) one.unsubscribe();
  };
  return { devices, streams, arrays, pinned, scratch, close };
}

export function partOf(array: AnyArray, part: Part): AnyArray {
  if (isWhole(part)) return array;
  const end = indexIn(part, part.count - 1) + 1;
  return part.stride === 1 ? array.subarray(part.start, end) : array.view([part.start, end, part.stride]);
}

/** Launches a kernel of a program; `by`: what makes it fail. */
export function launchOf(stream: Stream, call: KernelCall, of: (which: number) => unknown, by: unknown, far: number): Operation {
  const part = (which: number): object => (which >= SLOT_X ? (of(which) as object) : partOf(of(which) as AnyArray, call.part));
  const [kernel, args] = FAILING_KERNELS[call.name];
  const { k, limit, isBad } = call;
  const given = args({
    x: part(call.x),
    y: part(call.y),
    z: part(call.z),
    k,
    count: call.part.count,
    limit,
    by: by as object,
    far,
    isBad,
  });
  const threads = call.name === 'half' ? usedPart(call).count : call.part.count;
  return stream.launch(kernel as Kernel, threads, given as never);
}

/** Captures a graph of a program. */
export function captureOf(
  bench: FailingBench,
  spec: GraphSpec,
  flat: GraphSpec,
  graphOf: (which: number) => Graph<GraphParams>,
): Graph<GraphParams> {
  const { device, nodes } = spec;
  const { reads, writes } = usesOfGraph(flat);
  const params = { ...(reads.has(SLOT_X) && { x: input(i32) }), ...(writes.has(SLOT_Y) && { y: inout(i32) }), by: i32 };
  const { arrays, streams } = bench;
  return streams[device * STREAMS]!.capture(
    params as never,
    ((stream: Stream, slots: object) => {
      const { x, y, by } = slots as { x: unknown; y: unknown; by: unknown };
      const of = (which: number): unknown => (which === SLOT_X ? x : which === SLOT_Y ? y : arrays[which]!);
      for (const node of nodes) {
        if (node.kind === 'embed') stream.launch(graphOf(node.graph), { by: 0 } as never);
        else if (node.kind === 'launch') launchOf(stream, node.call, of, by, farOf(GRAPH_ROOT));
        else if (node.kind === 'fill') stream.fill(partOf(arrays[node.to]!, node.part), node.value);
        else stream.copy(partOf(arrays[node.to]!, node.part), partOf(arrays[node.from]!, node.fromPart));
      }
    }) as never,
  ) as unknown as Graph<GraphParams>;
}
