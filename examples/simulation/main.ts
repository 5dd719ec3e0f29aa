// Waves on a membrane: a graph of 20 steps, launched until all steps are done. See README.md beside this file.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { openDevice, type Device } from 'millrace';
import { KERNELS } from './kernels.js';
import { checksum, Membrane, OPERATIONS, PERIOD, weather, type Values } from './membrane.js';
import { Refusal, run as runProgram } from '../command-line.js';
import { type Options, readOptions } from './options.js';

/** What one way of running all steps took. */
interface Run {
  /** Milliseconds that the calling thread was busy submitting. */
  readonly callMs: number;
  /** Milliseconds until the device had finished. */
  readonly wholeMs: number;
  readonly sum: string;
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  const { steps, size, out } = options;
  await mkdir(out, { recursive: true }).catch((error: Error) => {
    throw new Refusal(`The folder ${out} cannot be made: ${error.message}`);
  });
  await using device = await openDevice(options.device);
  await device.compile(...KERNELS);
  using membrane = new Membrane(device, size);
  await using graph = membrane.capture();
  const { stream } = device;
  const periods = weather(steps / PERIOD, size);
  const oneByOne = (values: Values): void => membrane.submit(stream, values);
  const replay = (values: Values): void => void stream.launch(graph, values);

  // Each way once without a clock: first calls compile JavaScript.
  for (const way of [oneByOne, replay]) await run(device, membrane, periods.slice(0, 50), way);
  const launched = await run(device, membrane, periods, oneByOne);
  const replayed = await run(device, membrane, periods, replay);
  print(options, device, launched, replayed);

  membrane.reset();
  await show(membrane, periods, replay, options);
  const shown = checksum(await membrane.heights());
  console.log(`frames         ${options.frames} in ${out}`);
  if (launched.sum !== replayed.sum || shown !== replayed.sum) {
    process.stderr.write(`The heights differ: ${launched.sum} one by one, ${replayed.sum} by graph, ${shown} with frames.\n`);
    return 1;
  }
  console.log(`checksum       ${shown}, the same one by one and by graph`);
  return 0;
}

async function run(device: Device, membrane: Membrane, periods: readonly Values[], submit: (values: Values) => void): Promise<Run> {
  membrane.reset();
  await device.synchronize();
  const start = performance.now();
  for (const values of periods) submit(values);
  const callMs = performance.now() - start;
  await device.synchronize();
  const wholeMs = performance.now() - start;
  return { callMs, wholeMs, sum: checksum(await membrane.heights()) };
}

/** The run once more, with pictures. A picture is encoded while the device computes the periods up to the next one. */
async function show(
  membrane: Membrane,
  periods: readonly Values[],
  submit: (values: Values) => void,
  { frames, size, out }: Options,
): Promise<void> {
  let writing: Promise<unknown> = Promise.resolve();
  for (let frame = 0; frame < frames; frame++) {
    const [from, to] = [frame, frame + 1].map((n) => Math.floor((n * periods.length) / frames));
    for (const values of periods.slice(from, to)) submit(values);
    const pixels = membrane.picture();
    await writing;
    const raw = { width: size, height: size, channels: 3 } as const;
    const file = join(out, `frame-${String(frame).padStart(4, '0')}.png`);
    const image = sharp(await pixels, { raw });
    writing = image.png().toFile(file);
  }
  await writing;
  if (frames === 0) periods.forEach(submit);
}

function print({ steps, size }: Options, device: Device, launched: Run, replayed: Run): void {
  const row = (what: string, { callMs, wholeMs }: Run): string =>
    `${what.padEnd(15)}${callMs.toFixed(1).padStart(11)} ms${wholeMs.toFixed(1).padStart(14)} ms`;
  const times = (a: number, b: number): string => `${(a / b).toFixed(1)} times`;
  console.log(`device         ${device.info.id} (${device.info.name})`);
  console.log(`membrane       ${size} x ${size}, ${steps} steps, ${OPERATIONS} operations a graph`);
  console.log('               calling thread   until finished');
  console.log(row('one by one', launched));
  console.log(row('by graph', replayed));
  const [call, whole] = [times(launched.callMs, replayed.callMs), times(launched.wholeMs, replayed.wholeMs)];
  console.log(`one by one needs ${call} the time of the calling thread, and ${whole} the whole time`);
}

await runProgram(main);
