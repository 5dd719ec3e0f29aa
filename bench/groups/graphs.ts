// What graphs cost and save: a launch on the calling thread, a node of a chain of empty kernels, and a diamond of four kernels of 5 ms.
import type { Device, Graph, Recorder } from 'millrace';
import { empty, ONE, spin } from '../suite/kernels.js';
import { runNative } from '../suite/native.js';
import { figureOf } from '../suite/report.js';
import { ms, type Run, secondsEach, us } from '../suite/run.js';

const LENGTHS = [1, 100, 1000] as const;
const BURST = 1000;
const DIAMOND_MS = 5;

interface NativeFigures {
  readonly nodes: number;
  readonly backend: { readonly issueNs: number; readonly nodeNs: number };
  readonly driver?: { readonly issueNs: number; readonly nodeNs: number };
}

const chain = (stream: Recorder, length: number): void => {
  for (let n = 0; n < length; n++) stream.launch(empty, ONE, {});
};

export async function graphs(run: Run): Promise<void> {
  const { device } = run;
  await device.compile(empty, spin);
  const stream = device.createStream({ ordering: 'explicit' });
  const captured = LENGTHS.map((length) => ({ length, graph: stream.capture((s) => chain(s, length)) }));
  for (const { length, graph } of captured) {
    // A thousand launches of the longest graph take a GPU half a second.
    const [rounds, burst] = run.isGpu && length === 1000 ? [20, BURST / 5] : [40, BURST];
    await run.compare(`graph.launch.${length}`, {
      rounds,
      unit: us,
      ours: async () => {
        const seconds = secondsEach(burst, () => void stream.launch(graph));
        await device.synchronize();
        return [seconds];
      },
    });
  }
  await nodes(run, captured);
  await Promise.all(captured.map(({ graph }) => graph.close()));
  await stream.close();
  await diamond(run);
}

/** The time of a node while launches follow each other, until the device has finished. */
async function nodes(run: Run, captured: readonly { readonly length: number; readonly graph: Graph }[]): Promise<void> {
  const { device, isGpu } = run;
  const stream = device.createStream({ ordering: 'explicit' });
  const count = run.times(isGpu ? 100_000 : 200_000);
  const ours = new Map<number, number[]>();
  const native = new Map<string, number[]>();
  const oneByOne: number[] = [];
  const push = <K>(lists: Map<K, number[]>, key: K, value: number): void => void lists.set(key, [...(lists.get(key) ?? []), value]);
  const timed = async (submit: () => void): Promise<number> => {
    const start = performance.now();
    submit();
    await stream.synchronize();
    return ((performance.now() - start) * 1e6) / count;
  };
  for (let round = -1; round < run.times(7); round++) {
    for (const { length, graph } of captured.slice(1)) {
      const ns = await timed(() => {
        for (let n = 0; n < count / length; n++) stream.launch(graph);
      });
      if (round >= 0) push(ours, length, ns);
    }
    const ns = await timed(() => chain(stream, count / 10));
    if (round >= 0) oneByOne.push(ns * 10);
    if (round < 0) continue;
    for (const one of runNative('graph_replay', [isGpu ? 'cuda' : 'cpu', run.ordinal, String(count)]) as NativeFigures[]) {
      push(native, `backend alone ${one.nodes}`, one.backend.nodeNs);
      if (one.driver !== undefined) push(native, `C++ driver ${one.nodes}`, one.driver.nodeNs);
    }
  }
  for (const [length, values] of ours) {
    run.add(`graph.node.${length}`, values, {
      ...(isGpu ? { 'C++ driver': native.get(`C++ driver ${length}`)! } : {}),
      'backend alone': native.get(`backend alone ${length}`)!,
      'launched one by one': oneByOne,
    });
  }
  await stream.close();
}

/** The number of steps with which `spin` takes DIAMOND_MS. */
async function calibrate(device: Device): Promise<number> {
  using x = device.zeros(1);
  let steps = 100_000;
  for (let round = 0; round < 5; round++) {
    const taken: number[] = [];
    for (let n = 0; n < 5; n++) {
      const start = performance.now();
      await device.stream.launch(spin, ONE, { x, steps }).done;
      taken.push(performance.now() - start);
    }
    steps = Math.round((steps * DIAMOND_MS) / figureOf(taken).min);
  }
  return steps;
}

/** Four kernels, of which the two in the middle may run at the same time: 15 ms with two threads, 20 with one. */
async function diamond(run: Run): Promise<void> {
  const { device } = run;
  const [left, right] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
  using results = left.zeros(4);
  const parts = Array.from({ length: 4 }, (_, at) => results.subarray(at, at + 1));
  const steps = await calibrate(device);
  const submit = (s: Recorder): void => {
    const one = (stream: Recorder, at: number): void => void stream.launch(spin, ONE, { x: parts[at]!, steps });
    one(s, 0);
    right.waitStream(left);
    one(s, 1);
    one(right, 2);
    s.waitStream(right);
    one(s, 3);
  };
  const graph = left.capture(submit);
  const timed = async (body: () => void): Promise<number[]> => {
    const start = performance.now();
    body();
    await left.synchronize();
    return [(performance.now() - start) / 1e3];
  };
  await run.compare('graph.diamond', {
    rounds: 15,
    unit: ms,
    ours: () => timed(() => void left.launch(graph)),
    peers: { 'launched one by one': () => timed(() => submit(left)) },
  });
  await graph.close();
  await Promise.all([left.close(), right.close()]);
}
