// What the device makes of three streams whose frames go up, through a kernel and down while nothing is awaited.
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

export async function streams(run: Run): Promise<void> {
  await run.device.compile(spin);
  for (const size of FRAME_SIZES) await framesOf(run, size);
}

/** Seconds of a frame: only up, only down, up and kernel and down, up and down. Peers answer them in this order. */
function partsOf([up, down, three, two]: readonly number[]): Readonly<Record<'up' | 'down' | 'three' | 'two', number>> {
  return { up: up!, down: down!, three: three!, two: two! };
}
type Parts = ReturnType<typeof partsOf>;

async function framesOf(run: Run, size: FrameSize): Promise<void> {
  const count = frameCount(run, size, MIB, MOST_FRAMES);
  const explicit = await Frames.open(run, size, 'explicit');
  const tracked = await Frames.open(run, size, 'tracked');
  const {
    explicit: ofExplicit,
    tracked: ofTracked,
    ...peers
  } = await run.takeTurns<string>(ROUNDS, {
    explicit: () => explicit.parts(count),
    tracked: () => tracked.parts(count),
    ...framePeers(run, 'streams', size, count, GPU_PEERS),
  });
  const add = (id: string, ours: Answers, value: (parts: Parts) => number): void => {
    const values = (answers: Answers): Values => ('absent' in answers ? answers : answers.map((round) => value(partsOf(round))));
    run.add(`streams.${id}.${size}`, values(ours), mapValues(peers, values));
  };
  add('frame', ofExplicit!, ({ two }) => ms(two));
  if (run.isGpu) {
    for (const [ordering, ours] of Object.entries({ explicit: ofExplicit!, tracked: ofTracked! })) {
      add(`three.${ordering}`, ours, ({ up, down, three }) => Math.max(up, down) / three);
      add(`two.${ordering}`, ours, ({ up, down, two }) => Math.max(up, down) / two);
    }
  }
  await explicit.close();
  await tracked.close();
}

interface SpunLane extends FrameLane {
  /** What the kernel writes. */
  readonly spun: DeviceArray<'f32'>;
}

class Frames {
  readonly #run: Run;
  readonly #lanes: readonly SpunLane[];
  #steps = 10_000;

  private constructor(run: Run, size: FrameSize, ordering: 'tracked' | 'explicit') {
    this.#run = run;
    this.#lanes = openLanes(run.device, lengthOf(size), ordering).map((lane) => ({ ...lane, spun: lane.stream.zeros(1) }));
  }

  /** With a kernel that takes as long as a copy. */
  static async open(run: Run, size: FrameSize, ordering: 'tracked' | 'explicit'): Promise<Frames> {
    const frames = new Frames(run, size, ordering);
    const up = await frames.#timed(60, frames.#up);
    for (let round = 0; round < 4; round++) {
      // Kernels of several streams run side by side, so the time of a kernel is that of one after another, on one stream.
      const alone = await frames.#timed(20, () => frames.#spin(frames.#lanes[0]!));
      frames.#steps = Math.max(1, Math.round((frames.#steps * up) / alone));
    }
    return frames;
  }

  async parts(count: number): Promise<number[]> {
    return [
      await this.#timed(count, this.#up),
      await this.#timed(count, this.#down),
      await this.#timed(count, this.#up, this.#spin, this.#down),
      await this.#timed(count, this.#up, this.#down),
    ];
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
