// A folder of photos through an overlapped device pipeline. See README.md beside this file.
import { rename, rm, writeFile } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { cpuTasks, createCpuPool, openDevice, type Device } from 'millrace';
import { type Recording, recordTimeline } from 'millrace/timeline';
import type * as cpuStages from './cpu-stages.js';
import { ensureTargets, listPhotos, readOptions, type Options } from './options.js';
import { KERNELS, processPhotos, type Outcome, type Photo } from './pipeline.js';
import { startProgress } from './progress.js';
import { Help, messageOf, Refusal } from '../command-line.js';
import { formatSummary } from './table.js';
import { Timeline } from './timeline.js';

const EXIT = { done: 0, failed: 1, skipped: 2, interrupted: 130 } as const;

async function main(args: readonly string[], signal: AbortSignal): Promise<number> {
  const options = readOptions(args);
  const photos = await listPhotos(options.inFolder);
  await ensureTargets(options);
  await using device = await orRefuse(openDevice(options.device));
  await orRefuse(device.compile(...KERNELS));
  return await run(device, photos, options, signal);
}

/** No such device, or no compiler for it, is for the user to put right. */
async function orRefuse<T>(made: Promise<T>): Promise<T> {
  try {
    return await made;
  } catch (error) {
    throw new Refusal(messageOf(error));
  }
}

async function run(device: Device, photos: readonly Photo[], options: Options, signal: AbortSignal): Promise<number> {
  await using pool = createCpuPool(new URL('./cpu-stages.js', import.meta.url));
  const timeline = new Timeline();
  using recording = recordTimeline(device);
  const outcomes: Outcome[] = [];
  const tools = { cpu: cpuTasks<typeof cpuStages>(pool), outFolder: options.outFolder, timeline, signal };
  const loopDelay = monitorEventLoopDelay({ resolution: 1 });
  const progress = startProgress(photos.length * options.repeat);
  loopDelay.enable();
  const startMs = performance.now();
  try {
    for await (const outcome of processPhotos(device, repeated(photos, options.repeat), tools)) {
      outcomes.push(outcome);
      progress.step(outcome.photo.name);
    }
  } finally {
    progress.stop();
    loopDelay.disable();
  }
  const wallMs = performance.now() - startMs;

  const skipped = outcomes.filter((outcome) => outcome.kind === 'skipped');
  const written = outcomes.filter((outcome) => outcome.kind === 'written');
  await recording.stop();
  await writeWhole(options.timelineFile, formOf(recording, options.timelineFile));
  const summary = {
    device: device.info,
    written: written.length,
    skipped: skipped.length,
    pixels: written.reduce((sum, { pixels }) => sum + pixels, 0),
    wallMs,
    bottleneck: timeline.bottleneck(),
    loopDelayP99Ms: loopDelay.percentile(99) / 1e6,
  };
  process.stdout.write(`${formatSummary(summary)}\nResults: ${options.outFolder}\nTimeline: ${options.timelineFile}\n`);
  for (const file of new Set(skipped.map(({ photo }) => photo.file))) {
    process.stderr.write(`Skipped ${file}: ${skipped.find(({ photo }) => photo.file === file)?.reason ?? ''}\n`);
  }
  return skipped.length > 0 ? EXIT.skipped : EXIT.done;
}

function* repeated(photos: readonly Photo[], times: number): Generator<Photo> {
  for (let round = 0; round < times; round++) yield* photos;
}

function formOf(recording: Recording, file: string): string | Uint8Array {
  if (file.endsWith('.json')) return recording.toChromeTrace();
  return file.endsWith('.pftrace') ? recording.toPerfetto() : recording.toHtml();
}

async function writeWhole(file: string, text: string | Uint8Array): Promise<void> {
  const temporary = `${file}.${String(process.pid)}.tmp`;
  try {
    await writeFile(temporary, text);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new Refusal(`${file} cannot be written: ${messageOf(error)}`);
  }
}

const interrupt = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort(name));

try {
  process.exitCode = await main(process.argv.slice(2), interrupt.signal);
} catch (error) {
  if (error instanceof Help) {
    process.stdout.write(error.message);
    process.exitCode = EXIT.done;
  } else if (interrupt.signal.aborted) {
    process.stderr.write('Interrupted; what is written is whole.\n');
    process.exitCode = EXIT.interrupted;
  } else {
    process.stderr.write(`${error instanceof Refusal ? error.message : String(error instanceof Error ? error.stack : error)}\n`);
    process.exitCode = EXIT.failed;
  }
}
