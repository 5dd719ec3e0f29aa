// What runs on the pool's threads: decoding and encoding. Pixels are read from and written to pinned memory in place;
// only sizes and names travel in the messages.
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import sharp from 'sharp';
import { now, type Interval } from './timeline.js';

// The pool is the parallelism; libvips need not split each picture once more.
sharp.concurrency(1);
sharp.cache(false);

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The picture's size as it will be shown: cameras write it lying down and say how to turn it. */
export async function measure(file: string): Promise<Size> {
  const { autoOrient } = await sharp(file).metadata();
  return { width: autoOrient.width, height: autoOrient.height };
}

export interface DecodeTask extends Size {
  readonly file: string;
  /** Receives width * height * 3 bytes of RGB. */
  readonly into: Uint8Array;
}

export async function decode({ file, width, height, into }: DecodeTask): Promise<Interval> {
  const startMs = now();
  const { data, info } = await sharp(file)
    .autoOrient()
    .flatten({ background: 'white' })
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true });
  if (info.width !== width || info.height !== height || info.channels !== 3) {
    throw new Error(
      `the picture is ${String(info.width)} x ${String(info.height)} x ${String(info.channels)} where ${String(width)} x ${String(height)} x 3 was announced`,
    );
  }
  into.set(data);
  return { startMs, endMs: now() };
}

export interface PublishTask extends Size {
  readonly folder: string;
  readonly name: string;
  readonly blurred: Uint8Array;
  readonly sharp: Uint8Array;
  readonly edges: Uint8Array;
  readonly bins: Uint32Array;
}

let written = 0;

/** Writes the results of one photo under temporary names and renames them when all are whole; else none stays. */
export async function publish(task: PublishTask): Promise<Interval> {
  const startMs = now();
  const { folder, name, width, height } = task;
  const files: { readonly temporary: string; readonly final: string }[] = [];
  const place = (suffix: string): string => {
    const temporary = join(folder, `.${name}.${suffix}.${String(process.pid)}-${String(threadId)}-${String(written++)}.tmp`);
    files.push({ temporary, final: join(folder, `${name}.${suffix}`) });
    return temporary;
  };
  const rgb = { width, height, channels: 3 } as const;
  const grey = { width, height, channels: 1 } as const;
  const outcomes = await Promise.allSettled([
    writePng(place('blur.png'), task.blurred, rgb),
    writePng(place('sharp.png'), task.sharp, rgb),
    writePng(place('edges.png'), task.edges, grey),
    writePng(place('histogram.png'), drawHistogram(task.bins), { width: HISTOGRAM.width, height: HISTOGRAM.height, channels: 1 }),
    writeFile(place('histogram.json'), `${JSON.stringify(Array.from(task.bins))}\n`),
  ]);
  try {
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    for (const { temporary, final } of files) await rename(temporary, final);
  } catch (error) {
    await Promise.allSettled(files.map(({ temporary }) => rm(temporary, { force: true })));
    throw error;
  }
  return { startMs, endMs: now() };
}

async function writePng(file: string, pixels: Uint8Array, raw: Size & { readonly channels: 1 | 3 }): Promise<void> {
  const image = sharp(pixels, { raw }).toColourspace(raw.channels === 1 ? 'b-w' : 'srgb');
  // Level 3: photos hardly get smaller above it. Through memory, because a full disk is told in words by the file system
  // and not by the encoder.
  await writeFile(file, await image.png({ compressionLevel: 3 }).toBuffer());
}

const HISTOGRAM = { width: 256, height: 128 } as const;

/** Dark bars on white; the highest bin fills the height. */
function drawHistogram(bins: Uint32Array): Uint8Array {
  const { width, height } = HISTOGRAM;
  const most = Math.max(1, ...bins);
  const pixels = new Uint8Array(width * height).fill(255);
  bins.forEach((count, x) => {
    const top = height - Math.round((count / most) * height);
    for (let y = top; y < height; y++) pixels[y * width + x] = 48;
  });
  return pixels;
}
