// The pipeline: decode on the pool, upload, filter on the device, download, encode on the pool; three photos at a time.
import { overlap, u32, u8 } from 'millrace';
import type { CpuTasks, Device, DeviceArray, Lane, Overlapped, PinnedArray } from 'millrace';
import type * as cpuStages from './cpu-stages.js';
import type { PublishTask } from './cpu-stages.js';
import { BINS, BLUR_RADIUS, blurColumns, blurRows, brightness, edges, gaussian, histogram, SHARPEN_AMOUNT, sharpen } from './kernels.js';
import { messageOf, Refusal } from '../command-line.js';
import { now, type Timeline } from './timeline.js';

export const LANES = 3;
export const KERNELS = [brightness, blurRows, blurColumns, edges, sharpen, histogram] as const;

export interface Photo {
  readonly file: string;
  /** What its results are called, before `.blur.png` and the like. */
  readonly name: string;
}

export type Outcome =
  | { readonly kind: 'written'; readonly photo: Photo; readonly pixels: number }
  | { readonly kind: 'skipped'; readonly photo: Photo; readonly reason: string };

export interface Tools {
  readonly cpu: CpuTasks<typeof cpuStages>;
  readonly outFolder: string;
  readonly timeline: Timeline;
  readonly signal: AbortSignal;
}

export function processPhotos(device: Device, photos: Iterable<Photo>, tools: Tools): Overlapped<Outcome> {
  const weights = device.from(gaussian(BLUR_RADIUS));
  return overlap(device, photos, { depth: LANES, signal: tools.signal }, async (photo, lane): Promise<Outcome> => {
    const decoded = await decode(photo, lane, tools);
    if (typeof decoded === 'string') return { kind: 'skipped', photo, reason: decoded };
    const [height, bytesPerRow] = decoded.shape as readonly [number, number];
    const width = bytesPerRow / 3;
    const filtered = await filter(photo, lane, decoded, weights, tools.timeline);
    await publish(photo, lane, { folder: tools.outFolder, name: photo.name, width, height, ...filtered }, tools);
    return { kind: 'written', photo, pixels: width * height };
  });
}

/** The photo in pinned memory of its turn, or why it cannot be read. */
async function decode(photo: Photo, lane: Lane, { cpu, timeline }: Tools): Promise<PinnedArray<'u8'> | string> {
  try {
    const { width, height } = await cpu.run('measure', photo.file);
    const pixels = lane.pinned([height, width * 3], u8);
    timeline.add(
      lane.index,
      'decode',
      photo.name,
      await lane.time('decode', cpu.run('decode', { file: photo.file, width, height, into: pixels.data })),
    );
    return pixels;
  } catch (error) {
    lane.signal.throwIfAborted();
    return messageOf(error);
  }
}

async function publish(photo: Photo, lane: Lane, task: PublishTask, { cpu, timeline }: Tools): Promise<void> {
  try {
    timeline.add(lane.index, 'encode', photo.name, await lane.time('encode', cpu.run('publish', task)));
  } catch (error) {
    throw new Refusal(`The results of ${photo.file} cannot be written: ${messageOf(error)}`);
  }
}

interface Results {
  readonly blurred: Uint8Array;
  readonly sharp: Uint8Array;
  readonly edges: Uint8Array;
  readonly bins: Uint32Array;
}

/** Submits the whole chain at once and waits only for its end. The arrays belong to this photo's turn on the lane. */
async function filter(
  photo: Photo,
  lane: Lane,
  pixels: PinnedArray<'u8'>,
  weights: DeviceArray<'f32'>,
  timeline: Timeline,
): Promise<Results> {
  const { stream } = lane;
  const [height, bytesPerRow] = pixels.shape as readonly [number, number];
  const colour = [height, bytesPerRow] as const;
  const plain = [height, bytesPerRow / 3] as const;
  const rgb = lane.empty(colour, u8);
  const grey = lane.empty(plain, u8);
  const rows = lane.empty(colour);
  const smooth = lane.empty(colour);
  const blurred = lane.empty(colour, u8);
  const sharp = lane.empty(colour, u8);
  const gradient = lane.empty(plain, u8);
  const bins = lane.empty(BINS, u32);

  const startMs = now();
  const uploaded = stream.copy(rgb, pixels);
  stream.launch(blurRows, colour, { rgb, weights, radius: BLUR_RADIUS, rows });
  stream.launch(blurColumns, colour, { rows, weights, radius: BLUR_RADIUS, smooth, blurred });
  stream.launch(sharpen, rgb.length, { rgb, smooth, sharp, amount: SHARPEN_AMOUNT, count: rgb.length });
  stream.launch(brightness, plain, { rgb, grey });
  stream.launch(edges, plain, { grey, gradient });
  stream.fill(bins, 0);
  const computed = stream.launch(histogram, { grid: Math.ceil(grey.length / 8192), block: 256 }, { grey, bins, count: grey.length });

  const results = {
    blurred: lane.pinned(colour, u8),
    sharp: lane.pinned(colour, u8),
    edges: lane.pinned(plain, u8),
    bins: lane.pinned(BINS, u32),
  };
  stream.copy(results.blurred, blurred);
  stream.copy(results.sharp, sharp);
  stream.copy(results.edges, gradient);
  const downloaded = stream.copy(results.bins, bins);

  const [atUpload, atKernels, atDownload] = await Promise.all([
    uploaded.done.then(now),
    computed.done.then(now),
    downloaded.done.then(now),
  ]);
  // A stream works in order: each part begins when the one before it has ended.
  timeline.add(lane.index, 'upload', photo.name, { startMs, endMs: atUpload });
  timeline.add(lane.index, 'kernels', photo.name, { startMs: atUpload, endMs: atKernels });
  timeline.add(lane.index, 'download', photo.name, { startMs: atKernels, endMs: atDownload });
  return { blurred: results.blurred.data, sharp: results.sharp.data, edges: results.edges.data, bins: results.bins.data };
}
