// The training example as its users run it: it learns, the same with and without overlap, and nearly the same on the other backend; and it goes on from a
// checkpoint as if nothing had been.
import { FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cpuTasks, createCpuPool, type DeviceName, listDevices, openDevice } from 'millrace';
import type * as cpuStages from '../../examples/training/cpu-stages.js';
import { readDigits } from '../../examples/training/data.js';
import { PARAMETERS } from '../../examples/training/network.js';
import { readOptions } from '../../examples/training/options.js';
import { PIXELS, SHEET } from '../../examples/training/shape.js';
import { Trainer } from '../../examples/training/train.js';

const BUILT = new URL('../../build/js/examples/training/', import.meta.url);
const MAIN = fileURLToPath(new URL('main.js', BUILT));
const DATA = fileURLToPath(new URL('../../examples/training/data', import.meta.url));
const RUN_MS = 120_000;

let scratch: string;
beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error('The examples are not compiled: node scripts/build.mjs --with-examples');
  scratch = await mkdtemp(join(tmpdir(), 'millrace-training-'));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function training(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, '--data', DATA, ...args], { timeout: RUN_MS }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}

const numbers = async (file: string): Promise<Float32Array> => new Float32Array(Uint8Array.from(await readFile(file)).buffer);
const rightOf = ({ stdout }: Ended): number[] => [...stdout.matchAll(/right (\d+\.\d+) %/g)].map(([, percent]) => Number(percent));

test('learns from real digits, draws what came of it, the same without overlap, and goes on from a checkpoint as if nothing had been', {
  timeout: RUN_MS,
}, async () => {
  const [out, resumed] = [join(scratch, 'whole'), join(scratch, 'resumed')];
  // The halves of the seed are numbers of the checkpoint.
  const seed = 7 + 2 ** 20;
  const run = (to: string, ...args: readonly string[]): Promise<Ended> =>
    training('--device', 'cpu', '--sheets', '1', '--epochs', '2', '--seed', `${seed}`, '--out', to, ...args);
  const ended = await run(out);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toMatch(/^digits {6}500 to learn from, 2000 for the test$/m);
  expect(ended.stdout).toMatch(/^an epoch {4}\d+ ms one after the other, \d+ ms overlapped/m);
  expect(rightOf(ended).at(-1)).toBeGreaterThan(35);
  for (const [name, width] of [
    ['loss.svg', 760],
    ['confusion.svg', 530],
  ] as const) {
    expect((await sharp(join(out, name)).png().toBuffer({ resolveWithObject: true })).info.width).toBe(width);
  }
  expect(await readFile(join(out, 'confusion.svg'), 'utf8')).toContain(
    `of 2000 digits are read rightly (${rightOf(ended).at(-1)!.toFixed(2)} %)`,
  );
  for (const name of ['serial.html', 'overlapped.html'])
    expect((await readFile(join(out, name), 'utf8')).slice(0, 15)).toMatch(/^<!doctype html>/i);
  expect((await numbers(join(out, 'digits.f32'))).length).toBe(PARAMETERS);

  await using device = await openDevice('cpu');
  await using pool = createCpuPool(new URL('cpu-stages.js', BUILT));
  const cpu = cpuTasks<typeof cpuStages>(pool);
  using sets = await readDigits(device, cpu, DATA, 1);
  await using trainer = new Trainer(device, sets.training, cpu, { seed });
  await trainer.trainEpoch();
  const checkpoint = await trainer.checkpoint();
  expect(() => trainer.restore(checkpoint.subarray(0, -1))).toThrow('The checkpoint has');
  await mkdir(resumed);
  await writeFile(join(resumed, 'checkpoint.f32'), checkpoint);
  for (const [data, own, message] of [
    [sets.training, 2, `The checkpoint is of --seed ${seed}, not 2.`],
    [sets.test, seed, 'The checkpoint is of --sheets 1, not 4.'],
  ] as const) {
    await using other = new Trainer(device, data, cpu, { seed: own });
    expect(() => other.restore(checkpoint)).toThrow(message);
  }
  const late = await run(resumed, '--resume', '--epochs', '1');
  expect(late).toMatchObject({ code: 1, stderr: 'The checkpoint has 1 epochs already.\n' });
  expect(await run(resumed, '--resume')).toMatchObject({ code: 0 });
  for (const name of ['digits.f32', 'loss.svg', 'confusion.svg', 'checkpoint.f32']) {
    expect((await readFile(join(resumed, name))).equals(await readFile(join(out, name)))).toBe(true);
  }
});

const [gpu] = (await listDevices()).filter(({ backend }) => backend === 'cuda');
test.skipIf(gpu === undefined)(
  `learns nearly the same by the other backend${gpu === undefined ? `: ${FAKE_DRIVER_MISSING}` : ''}`,
  { timeout: RUN_MS },
  async () => {
    await using pool = createCpuPool(new URL('cpu-stages.js', BUILT));
    const cpu = cpuTasks<typeof cpuStages>(pool);
    const learn = async (name: DeviceName) => {
      await using device = await openDevice(name);
      using sets = await readDigits(device, cpu, DATA, 1);
      await using trainer = new Trainer(device, sets.training, cpu, { seed: 1 });
      return { losses: await trainer.trainEpoch(), parameters: await trainer.parameters() };
    };
    const [one, other] = [await learn('cpu'), await learn(gpu!.id)];
    // On average: Adam moves a parameter whose gradient is nearly nothing as far as any other, to either side.
    const difference = (a: Float32Array, b: Float32Array): number =>
      a.reduce((sum, value, at) => sum + Math.abs(value - b[at]!), 0) / a.length;
    expect(difference(one.losses, other.losses)).toBeLessThan(0.005);
    expect(difference(one.parameters, other.parameters)).toBeLessThan(0.001);
    expect(one.losses.at(-1)).toBeLessThan(one.losses[0]!);
  },
);

describe('the parts of the training example', () => {
  test('decode the digits that the labels name, and change each one only a little', async () => {
    await using device = await openDevice('cpu');
    await using pool = createCpuPool(new URL('cpu-stages.js', BUILT));
    const cpu = cpuTasks<typeof cpuStages>(pool);
    using sets = await readDigits(device, cpu, DATA, 2);
    const { training: set, test: tests } = sets;
    expect([set.labels.length, set.digits.length, tests.labels.length]).toEqual([2 * SHEET, 2 * SHEET * PIXELS, 4 * SHEET]);
    // The digits of one sheet are no shuffle of another: zeros are hollow, ones are not.
    const middle = (digit: number): number => {
      const at = [...set.labels.keys()].filter((n) => set.labels[n] === digit);
      return at.reduce((sum, n) => sum + set.digits.data[n * PIXELS + 14 * 28 + 14]!, 0) / at.length;
    };
    expect([middle(0) < 60, middle(1) > 150]).toEqual([true, true]);
    using into = device.pinned(2 * PIXELS, 'u8');
    await cpu.run('makeBatch', { digits: set.digits.data, numbers: [3, 3], seed: 5, into: into.data });
    const light = (pixels: Uint8Array): number => pixels.reduce((sum, value) => sum + value, 0);
    const [one, other] = [into.data.slice(0, PIXELS), into.data.slice(PIXELS)];
    expect(one).not.toEqual(other);
    for (const changed of [one, other]) expect(light(changed) / light(set.digits.data.slice(3 * PIXELS, 4 * PIXELS))).toBeCloseTo(1, 0);
  });

  test('refuse what they do not understand', async () => {
    for (const [args, message] of [
      [['--epochs', '0'], '--epochs 0 is not a whole number from 1 to 1000.'],
      [['--sheets', 'all'], '--sheets all is not a whole number from 1 to 16.'],
    ] as const)
      expect(() => readOptions(args)).toThrow(message);
    const refused = [
      [['--colour'], "Unknown option '--colour'"],
      [['--device', 'tpu:0'], /^The device \('tpu:0'\) is none of [^\n]*\n$/],
      [['--device', 'cpu', '--data', '/none'], 'The digits in /none cannot be read'],
      [['--device', 'cpu', '--resume', '--out', join(scratch, 'never')], 'The checkpoint cannot be read'],
    ] as const;
    const ended = await Promise.all(refused.map(([args]) => training(...args)));
    for (const [at, [, message]] of refused.entries()) {
      const { code, stderr } = ended[at]!;
      expect([code, stderr]).toEqual([1, typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message)]);
    }
  });
});
