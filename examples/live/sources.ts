// Where frames come from: a fluid, a clip that is made here, or ffmpeg.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Device, overlap } from 'millrace';
import { Refusal } from '../command-line.js';
import { Fluid, type Force, MOST_FORCES } from './fluid.js';
import { DEFAULTS, emptyFrame, type Frame, pixelsOf, type Settings } from './frames.js';
import { edges } from './kernels.js';

export interface SourceOptions {
  readonly width: number;
  readonly height: number;
  readonly fps: number;
}

/** What viewers steer, all together. */
export class Steering {
  settings: Settings = DEFAULTS;
  #forces: Force[] = [];

  set(settings: Partial<Settings>): void {
    this.settings = { ...this.settings, ...settings };
  }

  push(force: Force): void {
    this.#forces.push(force);
    if (this.#forces.length > MOST_FORCES) this.#forces.shift();
  }

  /** The forces since the last frame. */
  take(): Force[] {
    const forces = this.#forces;
    this.#forces = [];
    return forces;
  }
}

export type Source = (device: Device, opts: SourceOptions, steering: Steering, signal: AbortSignal) => AsyncIterable<Frame>;

/** `fluid`, `clip`, or `ffmpeg:` and what ffmpeg is to read. */
export function sourceOf(name: string): Source {
  if (name === 'fluid') return fluidFrames;
  if (name === 'clip') return (device, opts, steering, signal) => edgesOf(device, opts, steering, clip(opts, signal));
  if (name.startsWith('ffmpeg:') && name.length > 'ffmpeg:'.length)
    return (device, opts, steering, signal) => edgesOf(device, opts, steering, ffmpeg(name.slice('ffmpeg:'.length), opts, signal));
  throw new Refusal(`--source ${name} is none of fluid, clip and ffmpeg:FILE.`);
}

/** Comes `fps` times a second, or later if the caller takes longer. */
async function* ticks(fps: number, signal: AbortSignal): AsyncGenerator<number> {
  let nextMs = performance.now();
  for (let number = 0; !signal.aborted; number++) {
    yield number;
    nextMs = Math.max(nextMs + 1000 / fps, performance.now());
    await delay(nextMs - performance.now(), undefined, { signal }).catch(() => undefined);
  }
}

async function* fluidFrames(device: Device, opts: SourceOptions, steering: Steering, signal: AbortSignal): AsyncGenerator<Frame> {
  const { width, height, fps } = opts;
  await using fluid = new Fluid(device, width, height);
  for await (const number of ticks(fps, signal)) {
    const frame = emptyFrame(number, width, height);
    const forces = steering.take().map(([x, y, dx, dy]) => [x * width, y * height, dx * width, dy * height] as const);
    const { force, keep } = steering.settings;
    await fluid.step(forces, force, keep, pixelsOf(frame));
    yield frame;
  }
}

/** Grey pictures through the filter, three at a time. A slow reader delays the source. */
async function* edgesOf(
  device: Device,
  { width, height }: SourceOptions,
  steering: Steering,
  pictures: AsyncIterable<Uint8Array>,
): AsyncGenerator<Frame> {
  let number = 0;
  const results = overlap(device, pictures, { depth: 3 }, async (grey, lane) => {
    const frame = emptyFrame(number++, width, height);
    const shape = [height, width];
    const picture = lane.from(grey, { shape });
    const edge = lane.empty(shape, 'u8');
    lane.stream.launch(edges, shape, { picture, edge, gain: steering.settings.gain });
    await edge.read({ into: pixelsOf(frame) });
    return frame;
  });
  yield* results;
}

/** Three discs that go around, in front of stripes. */
async function* clip({ width, height, fps }: SourceOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const number of ticks(fps, signal)) {
    const grey = new Uint8Array(width * height);
    for (let at = 0; at < grey.length; at++) grey[at] = ((at % width) + number) % 64 < 32 ? 60 : 90;
    for (let disc = 0; disc < 3; disc++) {
      const angle = number / 30 + (disc * 2 * Math.PI) / 3;
      const [x, y, radius] = [(0.5 + 0.3 * Math.cos(angle)) * width, (0.5 + 0.3 * Math.sin(angle)) * height, height / 8];
      for (let row = Math.ceil(y - radius); row <= y + radius; row++) {
        const half = Math.sqrt(radius ** 2 - (row - y) ** 2);
        if (row >= 0 && row < height)
          grey.fill(150 + 40 * disc, row * width + Math.max(0, Math.ceil(x - half)), row * width + Math.min(width, Math.floor(x + half)));
      }
    }
    yield grey;
  }
}

/** The pictures that ffmpeg makes of a file or a camera. It runs no further ahead than its pipe is long. */
export async function* ffmpeg(input: string, { width, height, fps }: SourceOptions, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const isCamera = input.startsWith('/dev/');
  const from = isCamera ? ['-f', 'v4l2', '-i', input] : ['-re', '-stream_loop', '-1', '-i', input];
  const to = ['-vf', `scale=${width}:${height},fps=${fps}`, '-f', 'rawvideo', '-pix_fmt', 'gray', 'pipe:1'];
  const child = spawn('ffmpeg', ['-loglevel', 'error', '-nostdin', ...from, ...to], { stdio: ['ignore', 'pipe', 'inherit'], signal });
  const ended = once(child, 'exit');
  ended.catch(() => undefined);
  let picture = new Uint8Array(width * height);
  let filled = 0;
  try {
    await once(child, 'spawn');
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; ) {
        const part = chunk.subarray(at, at + picture.length - filled);
        picture.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled < picture.length) continue;
        yield picture;
        picture = new Uint8Array(width * height);
        filled = 0;
      }
    }
    const [code] = (await ended) as [number | null];
    if (code !== 0) throw new Refusal(`ffmpeg ended with ${code}: it could not read ${input}.`);
  } catch (error) {
    if (signal.aborted) return;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new Refusal('ffmpeg is not installed: apt-get install -y ffmpeg, or --source clip.');
    throw error;
  } finally {
    child.kill();
  }
}
