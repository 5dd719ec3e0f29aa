// What tests of captures and graphs share: refused calls, the order that the edges of a graph state, and memory in use.
import { CaptureError, i32, input, kernel, output, u32, cudaKernel, inout } from 'millrace';
import type { CaptureReason, Device, Graph, GraphNode, In, InOut, Kernel, MemoryStats, Out, Params, Scalar } from 'millrace';
import { thrownBy } from './wait.js';

/** One block of one thread. */
export const ONE: { readonly grid: 1; readonly block: 1 } = { grid: 1, block: 1 };

/** y = y * 1664525 + x + k, element by element: the result depends on every launch and on their order. */
export const weaveKernel: Kernel<{ x: In<'u32'>; y: InOut<'u32'>; k: Scalar<'u32'> }> = cudaKernel(
  'weave',
  { x: input(u32), y: inout(u32), k: u32 },
  `extern "C" __global__ void weave(const unsigned* x, unsigned* y, unsigned k) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = y[i] * 1664525u + x[i] + k;
}`,
);

/** left[0] = left[0] - 1: ends a loop. */
export const countDownKernel: Kernel<{ left: InOut<'i32'> }> = cudaKernel(
  'countDown',
  { left: inout(i32) },
  `extern "C" __global__ void countDown(int* left) {
  left[0] = left[0] - 1;
}`,
);

/** What `weaveKernel` leaves in one element. */
export function woven(x: number, y: number, k: number): number {
  return (Math.imul(y, 1664525) + x + k) >>> 0;
}

/** y[i] = x[i + by], checked: an access outside of x is a BoundsError. */
export const shiftKernel: Kernel<{ x: In<'i32'>; y: Out<'i32'>; by: Scalar<'i32'> }> = kernel(
  'shift',
  { x: input(i32), y: output(i32), by: i32 },
  ({ x, y, by }, { i }) => {
    y[i] = x[i + by]!;
  },
);

/** The CaptureError that a call throws, not the promise that it might return; fails when there is none. */
export function refusalOf(call: () => unknown): CaptureError {
  const error = thrownBy(call);
  if (error instanceof CaptureError) return error;
  throw new Error(`Not a CaptureError: ${error.message}`, { cause: error });
}

/** The reason of that error. */
export function reasonOf(call: () => unknown): CaptureReason {
  return refusalOf(call).reason;
}

/** The nodes that do something: without those that a graph may have for waits, events, allocations and joins. */
export function workOf<P extends Params>({ nodes }: Graph<P>): readonly GraphNode[] {
  return nodes.filter(({ kind }) => kind === 'launch' || kind === 'copy' || kind === 'fill');
}

/** The one node with this label. */
export function nodeOf<P extends Params>({ nodes }: Graph<P>, label: string): GraphNode {
  const found = nodes.filter((node) => node.label === label);
  if (found.length !== 1) throw new Error(`${found.length} nodes have the label ${label}.`);
  return found[0]!;
}

/** Tells whether the edges put the second node after the first, directly or through other nodes. */
export function orderOf<P extends Params>({ nodes, edges }: Graph<P>): (first: GraphNode, second: GraphNode) => boolean {
  const before = new Map<number, Set<number>>();
  for (const { id } of nodes.toSorted((a, b) => a.id - b.id)) {
    const all = new Set<number>();
    for (const [from, to] of edges) {
      if (to !== id) continue;
      all.add(from);
      for (const earlier of before.get(from) ?? []) all.add(earlier);
    }
    before.set(id, all);
  }
  return (first, second) => before.get(second.id)?.has(first.id) === true;
}

/** Every pair of labels that the edges order, as 'a<b', of the nodes that have these labels. */
export function orderedPairs<P extends Params>(graph: Graph<P>, ...labels: readonly string[]): string[] {
  const isBefore = orderOf(graph);
  return labels.flatMap((a) => labels.filter((b) => isBefore(nodeOf(graph, a), nodeOf(graph, b))).map((b) => `${a}<${b}`));
}

/** Bytes that the arrays of the device use, when everything submitted has finished. Frees are told to the pool a moment after they ran. */
export async function usedBytes(device: Device): Promise<number> {
  for (let last = -1; ; ) {
    await device.synchronize();
    const { usedBytes: used } = await device.pool.stats();
    if (used === last) return used;
    last = used;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * Resolves when the device uses at most `bytes` again, as collected arrays of other tests may be freed meanwhile. Frees are told to the pool
 * a moment after they ran. Fails after ten seconds.
 */
export async function usedAgain(device: Device, bytes: number): Promise<void> {
  const end = performance.now() + 10_000;
  for (;;) {
    const used = await usedBytes(device);
    if (used <= bytes) return;
    if (performance.now() > end) throw new Error(`The device uses ${used} bytes, and ${bytes} were expected.`);
  }
}

/** What the pool holds; how much the machine has free is not the device's doing. */
export async function memoryOf(device: Device): Promise<Omit<MemoryStats, 'freeBytes'>> {
  const { freeBytes: _, ...held } = await device.pool.stats();
  return held;
}
