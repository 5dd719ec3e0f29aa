// The lessons of examples/kernels, on the CPU device, and on a GPU where there is one.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { checkWithNvcc, hasNvcc } from '../support/nvcc.js';
import { listDevices, openDevice, type Device, type DeviceName, type Kernel } from 'millrace';
import { LESSONS } from '../../examples/kernels/catalog.js';
import { compare, FORMS, type Outcome } from '../../examples/kernels/lesson.js';

const FOLDER = path.resolve(import.meta.dirname, '../../examples/kernels');
const PROGRAMS = path.resolve(import.meta.dirname, '../../build/js/examples/kernels');
const PARTS = new Set(['catalog.ts', 'lesson.ts', 'main.ts']);
/** The first run compiles kernels. */
const RUN_MS = 60_000;
/** Of kernel, form, difference and time. */
const LINE = /^[a-z-]+(?:, [a-z]+)? +(?:TypeScript|CUDA C\+\+) +largest difference +(?:0|\d\.\de-\d+) +\d+\.\d{3} ms$/;

const isRequired = process.env['MILLRACE_TEST_CUDA'] === '1';
const hasGpu = (await listDevices()).some(({ id }) => id === 'cuda:0');

let out: string;
beforeAll(async () => {
  out = await mkdtemp(path.join(tmpdir(), 'millrace-kernels-'));
});
afterAll(() => rm(out, { recursive: true, force: true }));

test('every lesson is in the catalog and in the README, and is short', async () => {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.ts') && !PARTS.has(file));
  expect(LESSONS.map(({ name }) => name).toSorted()).toEqual(files.map((file) => file.slice(0, -3)).toSorted());
  const readme = await readFile(path.join(FOLDER, 'README.md'), 'utf8');
  for (const { name } of LESSONS) expect(readme).toContain(`| [${name}](${name}.ts) |`);
  for (const file of files) expect((await readFile(path.join(FOLDER, file), 'utf8')).split('\n').length, file).toBeLessThan(150);
});

test('a result that is too far away, is no number, or is too short is refused', () => {
  const told = { kernel: 'some', form: 'TypeScript', ms: 1 } as const;
  expect(compare(told, [1, 2.25, 3], [1, 2, 3.5], 0.5)).toEqual({ ...told, difference: 0.5 });
  expect(() => compare(told, [1, 2.25], [1, 2], 0.2)).toThrow(/element 1 is 2.25, not 2/);
  expect(() => compare(told, [1, Number.NaN], [1, 2], 0.2)).toThrow(/element 1 is NaN/);
  expect(() => compare(told, [1], [1, 2], 0.2)).toThrow(/1 elements, not 2/);
});

test.skipIf(!hasNvcc)(
  `nvcc takes ${IS_LONG ? 'every text' : 'every third text'} (skipped where there is no nvcc)`,
  { timeout: 300_000 },
  async () => {
    const texts: string[] = [];
    for (const { name } of LESSONS) {
      const exported = Object.values((await import(`../../examples/kernels/${name}.ts`)) as Record<string, unknown>);
      const kernels = exported.filter((one): one is Kernel => typeof one === 'object' && one !== null && 'source' in one);
      // Each as often as there are forms.
      const names = kernels.map((kernel) => kernel.name);
      expect(names.toSorted(), name).toEqual([...new Set(names)].flatMap((one) => FORMS.map(() => one)).toSorted());
      texts.push(...kernels.map(({ source }) => source));
    }
    expect(texts.length).toBeGreaterThanOrEqual(LESSONS.length * FORMS.length);
    checkWithNvcc(
      texts.filter((_, at) => IS_LONG || at % 3 === 0),
      ['-w'],
    );
  },
);

describe('as programs', () => {
  const run = (file: string, ...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [path.join(PROGRAMS, file), ...args, '--out', out]);

  test('a lesson runs alone', { timeout: RUN_MS }, async () => {
    const { stdout } = await run('saxpy.js', '--device', 'cpu');
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(FORMS.length);
    for (const line of lines) expect(line).toMatch(LINE);
  });

  test('the runner runs the ones that are named, on the device that is named', { timeout: RUN_MS }, async () => {
    const { stdout } = await run('main.js', '--device', 'cpu', 'histogram', 'saxpy');
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.split(/  +/)[0])).toEqual([
      'saxpy',
      'saxpy',
      'histogram, global',
      'histogram, global',
      'histogram, shared',
      'histogram, shared',
    ]);
    for (const line of lines) expect(line).toMatch(LINE);
  });

  test('the runner refuses lessons and devices that do not exist', { timeout: RUN_MS }, async () => {
    const wrong = [run('main.js', '--device', 'cpu', 'no-such'), run('main.js', '--device', 'cuda:4000', 'saxpy')];
    await Promise.all(wrong.map((each) => expect(each).rejects.toMatchObject({ code: 1 })));
  });
});

runOn('cpu');

if (hasGpu) runOn('cuda:0');
else {
  test('the lessons on a GPU', (context) => {
    expect(isRequired, 'MILLRACE_TEST_CUDA is 1, and no GPU is listed').toBe(false);
    context.skip('this machine has no GPU');
  });
}

function runOn(name: DeviceName | 'cpu'): void {
  describe(name, () => {
    let device: Device;
    beforeAll(async () => {
      device = await openDevice(name);
    });
    afterAll(() => device.close());

    for (const lesson of LESSONS) {
      test(lesson.name, { timeout: RUN_MS }, async () => {
        const outcomes = await lesson.run(device, out);
        const kernels = new Set(outcomes.map(({ kernel }) => kernel));
        for (const kernel of kernels) {
          expect(kernel).toMatch(new RegExp(`^${lesson.name}(?:, |$)`));
          expect(outcomes.filter((outcome) => outcome.kernel === kernel).map(({ form }) => form)).toEqual(FORMS);
        }
        expect(outcomes.every(({ ms }: Outcome) => ms > 0)).toBe(true);
        await device.synchronize({ timeoutMs: RUN_MS });
      });
    }

    test('the picture is one of the Mandelbrot set', async () => {
      const { data, info } = await sharp(path.join(out, 'mandelbrot.png')).raw().toBuffer({ resolveWithObject: true });
      expect(info).toMatchObject({ width: 960, height: 640, channels: 3 });
      const sumAt = (re: number, im: number): number => {
        const at = 3 * (Math.round((im + 1.2) / (2.4 / 640)) * info.width + Math.round((re + 2.55) / (2.4 / 640)));
        return data[at]! + data[at + 1]! + data[at + 2]!;
      };
      for (const inside of [0, -1, -0.12, 0.2]) expect(sumAt(inside, 0)).toBe(0);
      for (const outside of [0.5, 1, -2.3]) expect(sumAt(outside, 0)).toBeGreaterThan(0);
      expect(sumAt(-0.12, 0.74)).toBe(0); // the bulb on top
    });
  });
}
