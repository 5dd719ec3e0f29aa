// Teaches a network to read digits. See README.md beside this file.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cpuTasks, createCpuPool, type Device, openDevice } from 'millrace';
import { recordTimeline } from 'millrace/timeline';
import type * as cpuStages from './cpu-stages.js';
import { readDigits } from './data.js';
import { KERNELS } from './kernels.js';
import { Refusal, run } from '../command-line.js';
import { type Options, readOptions } from './options.js';
import { confusionMatrix, lossCurve } from './plots.js';
import { CLASSES } from './shape.js';
import { Trainer } from './train.js';

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  const { out } = options;
  await mkdir(out, { recursive: true }).catch((error: Error) => {
    throw new Refusal(`The folder ${out} cannot be made: ${error.message}`);
  });
  await using device = await openDevice(options.device);
  await device.compile(...KERNELS);
  await using pool = createCpuPool(new URL('./cpu-stages.js', import.meta.url));
  const cpu = cpuTasks<typeof cpuStages>(pool);
  using sets = await readDigits(device, cpu, options.data, options.sheets).catch((error: Error) => {
    throw new Refusal(`The digits in ${options.data} cannot be read: ${error.message}`);
  });
  const { training, test } = sets;
  await using trainer = new Trainer(device, training, cpu, options);
  console.log(`device      ${device.info.id} (${device.info.name})`);
  console.log(`digits      ${training.labels.length} to learn from, ${test.labels.length} for the test`);

  const file = join(out, 'checkpoint.f32');
  if (options.isResumed) trainer.restore(await readNumbers(file));
  else if (!(await compare(device, trainer, options))) return 1;

  if (trainer.epoch >= options.epochs) throw new Refusal(`The checkpoint has ${trainer.epoch} epochs already.`);
  while (trainer.epoch < options.epochs) {
    const start = performance.now();
    const epoch = await trainer.trainEpoch();
    const ms = performance.now() - start;
    const counts = await trainer.confusion(test);
    // After each epoch, so that an interrupted run leaves what it did.
    await writeWhole(file, await trainer.checkpoint());
    await writeWhole(join(out, 'loss.svg'), lossCurve(trainer.losses, trainer.stepsOfEpoch));
    await writeWhole(join(out, 'confusion.svg'), confusionMatrix(counts));
    await writeWhole(join(out, 'digits.f32'), await trainer.parameters());
    const loss = epoch.reduce((sum, value) => sum + value, 0) / epoch.length;
    console.log(
      `epoch ${String(trainer.epoch).padStart(2)}    loss ${loss.toFixed(4)}   right ${accuracy(counts)} %   ${ms.toFixed(0)} ms`,
    );
  }
  console.log(`results     ${out}: loss.svg, confusion.svg, digits.f32`);
  return 0;
}

/** The first epoch, without and with overlap, after one that is not counted. All must learn the same, bit for bit. False if they do not. */
async function compare(device: Device, trainer: Trainer, { out }: Options): Promise<boolean> {
  const start = await trainer.checkpoint();
  const runs: { readonly ms: number; readonly parameters: string }[] = [];
  // The first run is not counted: its calls compile.
  for (const name of ['', 'serial', 'overlapped']) {
    trainer.restore(start);
    using recording = name === '' ? undefined : recordTimeline(device);
    const startMs = performance.now();
    await trainer.trainEpoch(name === 'overlapped');
    const ms = performance.now() - startMs;
    await recording?.stop();
    if (recording) await writeWhole(join(out, `${name}.html`), recording.toHtml());
    runs.push({ ms, parameters: Buffer.from((await trainer.parameters()).buffer).toString('base64') });
  }
  trainer.restore(start);
  const [, serial, overlapped] = runs;
  console.log(
    `an epoch    ${serial!.ms.toFixed(0)} ms one after the other, ${overlapped!.ms.toFixed(0)} ms overlapped (${out}/serial.html, overlapped.html)`,
  );
  if (new Set(runs.map(({ parameters }) => parameters)).size === 1) return true;
  process.stderr.write('The parameters differ with and without overlap.\n');
  return false;
}

function accuracy(counts: Int32Array): string {
  const right = counts.reduce((sum, count, at) => sum + (at % (CLASSES + 1) === 0 ? count : 0), 0);
  return ((100 * right) / counts.reduce((sum, count) => sum + count, 0)).toFixed(2);
}

async function readNumbers(file: string): Promise<Float32Array> {
  const bytes = await readFile(file).catch((error: Error) => {
    throw new Refusal(`The checkpoint cannot be read: ${error.message}`);
  });
  return new Float32Array(Uint8Array.from(bytes).buffer);
}

async function writeWhole(file: string, content: string | Uint8Array | Float32Array): Promise<void> {
  await writeFile(`${file}.tmp`, content);
  await rename(`${file}.tmp`, file);
}

await run(main);
