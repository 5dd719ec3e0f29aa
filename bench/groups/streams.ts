// What the device makes of three streams, or of many, whose frames go up, through a kernel and down while nothing is awaited.
import type { DeviceArray } from 'millrace';
import {
  closeLanes,
  FRAME_SIZES,
  frameCount,
  type FrameLane,
  framePeers,
  type FrameSize,
  GPU_PEERS,
  lengthOf,
  openLanes,
} from '../suite/lanes.js';
import { ONE, spin } from '../suite/kernels.js';
import { type Answers, mapValues, ms, type Run, type Values } from '../suite/run.js';

const ROUNDS = 5;
/** In one direction, of one timed part. */
const MIB = 1920;
const MOST_FRAMES = 1000;
const MANY = 32;
const SIZE_OF_MANY = '4';

export async function streams(run: Run): Promise<void> {
  await run.device.compile(spin);
  for (const size of FRAME_SIZES) await framesOf(run, size);
  if (run.isGpu) await manyStreams(run);
}

/** Frames of many streams, in the same way. */
async function manyStreams(run: Run): Promise<void> {
  const count = frameCount(run, SIZE_OF_MANY, MIB, MOST_FRAMES);
  const frames = new Frames(run, SIZE_OF_MANY, 'tracked', MANY);
  await frames.calibrate();
  const { tracked, ...peers } = await run.takeTurns<string>(ROUNDS, {
    tracked: () => frames.parts(count),
    'C++ driver': `many ${Number(SIZE_OF_MANY) * 1024} ${count} ${MANY}`,
  });
  addShares(run, `${MANY}.tracked.${SIZE_OF_MANY}`, tracked!, peers);
  await frames.close();
}

/** The share of the longest part, with the kernel and without it. */
function addShares(run: Run, id: string, ours: Answers, peers: Readonly<Record<string, Answers>>): void {
  const add = (part: string, value: (frame: Frame) => number): void => {
    const values = (answers: Answers): Values => ('absent' in answers ? answers : answers.map((round) => value(partsOf(round))));
    run.add(`streams.${part}.${id}`, values(ours), mapValues(peers, values));
  };
  add('three', ({ up, down, three, kernel }) => Math.max(up, down, kernel) / three);
  add('two', ({ up, down, two }) => Math.max(up, down) / two);
}

/** Seconds of a frame: only up, only down, up and kernel and down, up and down, only the kernel. Peers answer them in this order. */
function partsOf([up, down, three, two, kernel]: readonly number[]): Readonly<Record<'up' | 'down' | 'three' | 'two' | 'kernel', number>> {
  return { up: up!, down: down!, three: three!, two: two!, kernel: kernel! };
}

async function framesOf(run: Run, size: FrameSize): Promise<void> {
  const count = frameCount(run, size, MIB, MOST_FRAMES);
  const explicit = new Frames(run, size, 'explicit');
  const tracked = new Frames(run, size, 'tracked');
  if (run.isGpu) await shares(run, size, count, { explicit, tracked });
  else {
    await run.compare(`streams.frame.${size}`, {
      rounds: ROUNDS,
      unit: ms,
      ours: async () => [await explicit.two(count)],
      peers: framePeers(run, 'both', size, count, []),
    });
  }
  await explicit.close();
  await tracked.close();
}

type Frame = ReturnType<typeof partsOf>;

async function shares(run: Run, size: FrameSize, count: number, frames: Readonly<Record<'explicit' | 'tracked', Frames>>): Promise<void> {
  for (const each of Object.values(frames)) await each.calibrate();
  const { explicit, tracked, ...peers } = await run.takeTurns<string>(ROUNDS, {
    explicit: () => frames.explicit.parts(count),
    tracked: () => frames.tracked.parts(count),
    ...framePeers(run, 'streams', size, count, GPU_PEERS),
  });
  const frame = (answers: Answers): Values => ('absent' in answers ? answers : answers.map((round) => ms(partsOf(round).two)));
  run.add(`streams.frame.${size}`, frame(explicit!), mapValues(peers, frame));
  for (const [ordering, ours] of Object.entries({ explicit: explicit!, tracked: tracked! }))
    addShares(run, `${ordering}.${size}`, ours, peers);
}

interface SpunLane extends FrameLane {
  /** What the kernel writes. */
  readonly spun: DeviceArray<'f32'>;
}

class Frames {
  readonly #run: Run;
  readonly #lanes: readonly SpunLane[];
  #steps = 10_000;

  constructor(run: Run, size: FrameSize, ordering: 'tracked' | 'explicit', lanes?: number) {
    this.#run = run;
    this.#lanes = openLanes(run.device, lengthOf(size), ordering, lanes).map((lane) => ({ ...lane, spun: lane.stream.zeros(1) }));
  }

  /** Makes the kernel take as long as a copy. */
  async calibrate(): Promise<void> {
    let up = Infinity;
    // The first copies take longer.
    for (let round = 0; round < 3; round++) up = Math.min(up, await this.#timed(60, this.#up));
    for (let round = 0; round < 4; round++) this.#steps = Math.max(1, Math.round((this.#steps * up) / (await this.#kernel())));
  }

  async parts(count: number): Promise<number[]> {
    return [
      await this.#timed(count, this.#up),
      await this.#timed(count, this.#down),
      await this.#timed(count, this.#up, this.#spin, this.#down),
      await this.two(count),
      await this.#kernel(),
    ];
  }

  two(count: number): Promise<number> {
    return this.#timed(count, this.#up, this.#down);
  }

  /** Kernels of several streams run side by side, so the time of a kernel is that of one after another, on one stream. */
  #kernel(): Promise<number> {
    return this.#timed(20, () => this.#spin(this.#lanes[0]!));
  }

  async close(): Promise<void> {
    for (const { spun } of this.#lanes) spun[Symbol.dispose]();
    await closeLanes(this.#lanes);
  }

  readonly #up = ({ stream, x, source }: FrameLane): void => void stream.copy(x, source);
  readonly #down = ({ stream, x, target }: FrameLane): void => void stream.copy(target, x);
  readonly #spin = ({ stream, spun }: SpunLane): void => void stream.launch(spin, ONE, { x: spun, steps: this.#steps });

  async #timed(count: number, ...steps: readonly ((lane: SpunLane) => void)[]): Promise<number> {
    const { device } = this.#run;
    await device.synchronize();
    const start = performance.now();
    for (let n = 0; n < count; n++) for (const step of steps) step(this.#lanes[n % this.#lanes.length]!);
    await device.synchronize();
    return (performance.now() - start) / 1e3 / count;
  }
}
