// A program's loop over frames that go up, through a kernel and down on three streams: by hand, as a graph and with `overlap`.
import { setTimeout as sleep } from 'node:timers/promises';
import { download, type Graph, launch, type Operation, overlap, type Recorder, type Stage, upload } from 'millrace';
import { of } from 'rxjs';
import {
  closeLanes,
  FRAME_SIZES,
  frameCount,
  type FrameLane,
  framePeers,
  type FrameSize,
  GPU_PEERS,
  increment,
  LANES,
  lengthOf,
  openLanes,
} from '../suite/lanes.js';
import { LoopDelay } from '../suite/loop-delay.js';
import { inUnit, mapValues, ms, onGpu, type Run } from '../suite/run.js';

const ROUNDS = 7;
/** In one direction, of one measurement. */
const MIB = 3072;
const MOST_FRAMES = 2000;
const PLAIN_ROUNDS = 4;
const PLAIN_MIB = 768;
const MOST_PLAIN_FRAMES = 1000;
/** The first frames of a run of `overlap` make its lanes and their memory. */
const FIRST_FRAMES = 8;

const geometry = (length: number) => ({ grid: Math.ceil(length / 256), block: 256 });

interface Recorded extends Omit<FrameLane, 'stream'> {
  readonly stream: Recorder;
}

export function submitFrame({ stream, x, source, target }: Recorded): Operation {
  stream.copy(x, source);
  stream.launch(increment, geometry(x.length), { x, length: x.length });
  return stream.copy(target, x);
}

/** Page-locked memory that a program fills and looks at in place. */
export async function frames(run: Run): Promise<void> {
  await run.device.compile(increment);
  for (const size of FRAME_SIZES) {
    const count = frameCount(run, size, MIB, MOST_FRAMES);
    const lanes = openLanes(run.device, lengthOf(size), 'tracked');
    const peers = framePeers(run, 'frames', size, count, GPU_PEERS);
    const answers = await run.takeTurns<string>(ROUNDS, {
      'by hand': () => secondsByHand(lanes, count, submitFrame),
      overlap: () => secondsOfOverlap(run, size, count),
      ...peers,
    });
    const { 'by hand': byHand, overlap: overlapped, ...others } = mapValues(answers, (taken) => inUnit(taken, ms));
    run.add(`frames.hand.${size}`, byHand!, others);
    run.add(`frames.overlap.${size}`, overlapped!, { 'by hand': byHand!, ...others });
    await graphs(run, size, count, lanes);
    await closeLanes(lanes);
  }
}

async function graphs(run: Run, size: FrameSize, count: number, lanes: readonly FrameLane[]): Promise<void> {
  const captured = new Map<FrameLane, Graph>(
    lanes.map((lane) => [lane, lane.stream.capture((stream) => void submitFrame({ ...lane, stream }))]),
  );
  await run.compare(`frames.graph.${size}`, {
    rounds: ROUNDS,
    unit: ms,
    ours: () => secondsByHand(lanes, count, (lane) => lane.stream.launch(captured.get(lane)!)),
    peers: onGpu(run, framePeers(run, 'graphs', size, count, GPU_PEERS)),
  });
  await Promise.all(Array.from(captured.values(), (graph) => graph.close()));
}

/** Of one frame. */
export async function secondsByHand(lanes: readonly FrameLane[], count: number, submit: (lane: FrameLane) => Operation): Promise<number[]> {
  const last: Promise<unknown>[] = [];
  const start = performance.now();
  for (let n = 0; n < count; n++) {
    const lane = lanes[n % LANES]!;
    await last[n % LANES];
    if (n >= LANES) checkFrame(n - LANES, lane.target.data);
    lane.source.data[0] = n;
    last[n % LANES] = submit(lane).done;
  }
  await Promise.all(last);
  return [(performance.now() - start) / 1e3 / count];
}

function checkFrame(n: number, data: Float32Array): void {
  if (data[0] !== n + 1) throw new Error(`Frame ${n} is ${data[0]}.`);
}

/** Of one frame, from the time when all lanes are at work. */
async function secondsEachResult<T, R>(
  run: Run,
  count: number,
  item: (n: number) => T,
  stage: Stage<T, R>,
  check: (n: number, result: R) => void,
): Promise<number[]> {
  function* source(): Generator<T> {
    for (let n = 0; n < count + FIRST_FRAMES; n++) yield item(n);
  }
  let n = 0;
  let start = 0;
  for await (const result of overlap(run.device, source(), stage)) {
    check(n, result);
    if (++n === FIRST_FRAMES) start = performance.now();
  }
  return [(performance.now() - start) / 1e3 / count];
}

function secondsOfOverlap(run: Run, size: FrameSize, count: number): Promise<number[]> {
  const length = lengthOf(size);
  return secondsEachResult(
    run,
    count,
    (n) => n,
    async (n, lane) => {
      const [source, target, x] = [lane.pinned(length), lane.pinned(length), lane.empty(length)];
      source.data[0] = n;
      await submitFrame({ stream: lane.stream, source, target, x }).done;
      return target.data[0]!;
    },
    (n, first) => checkFrame(n, Float32Array.of(first)),
  );
}

/** Ordinary arrays: the source's is always the same, and each result is a new one. */
export async function plain(run: Run): Promise<void> {
  await run.device.compile(increment);
  const rest = new LoopDelay();
  await rest.during(() => sleep(run.times(500)));
  for (const size of FRAME_SIZES) {
    const length = lengthOf(size);
    const count = frameCount(run, size, PLAIN_MIB, MOST_PLAIN_FRAMES);
    const array = new Float32Array(length).fill(1);
    const delay = new LoopDelay();
    const pass = () =>
      secondsEachResult(
        run,
        count,
        () => array,
        (item, lane) =>
          of(item).pipe(
            upload(lane),
            launch(lane, increment, geometry(length), (x) => ({ x, length })),
            download(lane),
          ),
        (_, result) => checkFrame(1, result),
      );
    await run.compare(`plain.${size}`, {
      rounds: PLAIN_ROUNDS,
      unit: ms,
      ours: (round) => (round < 0 ? pass() : delay.during(pass)),
      peers: framePeers(run, 'plain', size, count, GPU_PEERS),
    });
    run.add(`plain.delay.${size}`, delay.milliseconds, { 'no load': rest.milliseconds });
  }
}
