// The photos example as its users run it: a process of its own, on the CPU device.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BLUR_RADIUS, gaussian, SHARPEN_AMOUNT } from '../../examples/photos/kernels.js';
import { filterPicture, type Picture } from '../../examples/photos/reference.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAIN = join(ROOT, 'build/js/examples/photos/main.js');
const IMAGES = join(ROOT, 'examples/photos/images');
/** The first run compiles six kernels. */
const RUN_MS = 120_000;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function photos(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, '--device', 'cpu', ...args], { timeout: RUN_MS }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}

async function readRgb(file: string): Promise<Picture> {
  const { data, info } = await sharp(file).toColourspace('srgb').removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, rgb: data };
}

async function readGrey(file: string): Promise<Buffer> {
  return sharp(file).toColourspace('b-w').raw().toBuffer();
}

function largestDifference(a: Uint8Array, b: Uint8Array): number {
  expect(a.length).toBe(b.length);
  return a.reduce((most, value, at) => Math.max(most, Math.abs(value - (b[at] ?? 0))), 0);
}

const SUFFIXES = ['blur.png', 'edges.png', 'histogram.json', 'histogram.png', 'sharp.png'] as const;

let scratch: string;
beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error('The examples are not compiled: node scripts/build.mjs --with-examples');
  scratch = await mkdtemp(join(tmpdir(), 'millrace-photos-'));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

describe('the photos example', () => {
  // Two of them differ only in the extension, so their results keep it.
  const RESULTS = { 'camera.png': 'camera', 'chelsea.jpg': 'chelsea.jpg', 'chelsea.png': 'chelsea.png', 'coffee.png': 'coffee' };
  let folder: string;
  let out: string;
  let ended: Ended;
  beforeAll(async () => {
    folder = join(scratch, 'four');
    out = join(scratch, 'all');
    await mkdir(folder);
    for (const name of ['camera.png', 'chelsea.png', 'coffee.png']) await copyFile(join(IMAGES, name), join(folder, name));
    await sharp(join(IMAGES, 'chelsea.png')).toFile(join(folder, 'chelsea.jpg'));
    ended = await photos('--in', folder, '--out', out, '--repeat', '2', '--timeline', join(out, 'timeline.json'));
  }, RUN_MS);

  it('writes five results for every photo, whatever its format, and nothing else', async () => {
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const expected = [...Object.values(RESULTS).flatMap((name) => SUFFIXES.map((suffix) => `${name}.${suffix}`)), 'timeline.json'];
    expect((await readdir(out)).toSorted()).toEqual(expected.toSorted());
  });

  it.each(Object.entries(RESULTS))(
    'agrees with the reference: %s',
    async (file, name) => {
      const picture = await readRgb(join(folder, file));
      const wanted = filterPicture(picture, gaussian(BLUR_RADIUS), SHARPEN_AMOUNT);
      const result = (suffix: string): string => join(out, `${name}.${suffix}`);
      const blurred = await readRgb(result('blur.png'));
      expect([blurred.width, blurred.height]).toEqual([picture.width, picture.height]);
      expect(largestDifference(blurred.rgb, wanted.blurred)).toBeLessThanOrEqual(1);
      expect(largestDifference((await readRgb(result('sharp.png'))).rgb, wanted.sharp)).toBeLessThanOrEqual(1);
      expect(largestDifference(await readGrey(result('edges.png')), wanted.edges)).toBeLessThanOrEqual(1);
      expect(JSON.parse(await readFile(result('histogram.json'), 'utf8'))).toEqual([...wanted.bins]);
    },
    RUN_MS,
  );

  it('ends with a table', () => {
    expect(ended.stdout).toMatch(/images\s+│ 8 written, 0 skipped/);
    expect(ended.stdout).toMatch(/speed\s+│ \d+\.\d megapixels\/s/);
    expect(ended.stdout).toMatch(/device\s+│ cpu/);
    expect(ended.stdout).toMatch(/overlap\s+│ \d+ % of the ideal, bound by \w+/);
    expect(ended.stdout).toMatch(/event-loop delay p99\s+│ \d+\.\d\d ms/);
  });

  it('writes a timeline in which three lanes overlap', async () => {
    const trace = JSON.parse(await readFile(join(out, 'timeline.json'), 'utf8')) as {
      readonly traceEvents: readonly {
        readonly ph: string;
        readonly name: string;
        readonly pid: number;
        readonly tid: number;
        readonly ts: number;
        readonly dur: number;
        readonly args?: { readonly name?: string };
      }[];
    };
    const spans = trace.traceEvents.filter(({ ph }) => ph === 'X');
    for (const name of ['decode', 'encode', 'blurRows', 'blurColumns', 'sharpen', 'brightness', 'edges', 'histogram'])
      expect(spans.filter((span) => span.name === name).length).toBe(8);
    const lanes = trace.traceEvents.filter(({ name, args }) => name === 'thread_name' && /^lane \d on /.test(args?.name ?? ''));
    expect(lanes).toHaveLength(3);
    expect(spans.every(({ ts, dur }) => ts >= 0 && dur >= 0)).toBe(true);
    const items = spans.filter(({ name }) => name.startsWith('item '));
    expect(new Set(items.map(({ name }) => name)).size).toBe(8);
    expect(items.some((a) => items.some((b) => a.tid !== b.tid && a.ts < b.ts + b.dur && b.ts < a.ts + a.dur))).toBe(true);
  });
});

describe('the photos example in trouble', () => {
  it(
    'skips a corrupt photo, says so, goes on, and exits with 2',
    async () => {
      const folder = join(scratch, 'corrupt');
      const out = join(scratch, 'corrupt-out');
      await mkdir(folder);
      await copyFile(join(IMAGES, 'chelsea.png'), join(folder, 'whole.png'));
      const whole = await readFile(join(IMAGES, 'coffee.png'));
      await writeFile(join(folder, 'broken.png'), whole.subarray(0, whole.length / 2));
      await writeFile(join(folder, 'text.jpg'), 'not a picture');
      await writeFile(join(folder, 'notes.txt'), 'not even called one');
      const { code, stdout, stderr } = await photos(folder, '--out', out);
      expect(code).toBe(2);
      expect(stderr).toMatch(/^Skipped .*broken\.png: .+$/m);
      expect(stderr).toMatch(/^Skipped .*text\.jpg: .+$/m);
      expect(stdout).toContain('1 written, 2 skipped');
      expect((await readdir(out)).toSorted()).toEqual([...SUFFIXES.map((suffix) => `whole.${suffix}`), 'timeline.html'].toSorted());
      expect(await readFile(join(out, 'timeline.html'), 'utf8')).toMatch(/^<!doctype html>/);
    },
    RUN_MS,
  );

  it('refuses an empty folder, a missing one, and makes nothing', async () => {
    const folder = join(scratch, 'empty');
    const out = join(scratch, 'empty-out');
    await mkdir(folder);
    expect(await photos(folder, '--out', out)).toEqual({ code: 1, stdout: '', stderr: `There is no PNG or JPEG in ${folder}.\n` });
    const missing = await photos(join(scratch, 'missing'), '--out', out);
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toMatch(/^The folder .*missing cannot be read: ENOENT/);
    expect(existsSync(out)).toBe(false);
  });

  it('refuses a target that cannot be written to', async () => {
    const file = join(scratch, 'a-file');
    await writeFile(file, '');
    const { code, stdout, stderr } = await photos(IMAGES, '--out', join(file, 'out'));
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^The folder .*a-file\/out cannot be written to: ENOTDIR/);
  });

  it(
    'leaves nothing half-written when a result cannot be put in place',
    async () => {
      const folder = join(scratch, 'one');
      const out = join(scratch, 'one-out');
      await mkdir(folder);
      await copyFile(join(IMAGES, 'chelsea.png'), join(folder, 'cat.png'));
      // A folder stands where the first result should go.
      await mkdir(join(out, 'cat.blur.png', 'in-the-way'), { recursive: true });
      const { code, stderr } = await photos(folder, '--out', out);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^The results of .*cat\.png cannot be written: .*cat\.blur\.png/);
      expect(await readdir(out)).toEqual(['cat.blur.png']);
    },
    RUN_MS,
  );

  it(
    'leaves whole results and nothing else when it is interrupted',
    async () => {
      const out = join(scratch, 'interrupted-out');
      const child = spawn(process.execPath, [MAIN, '--device', 'cpu', '--in', IMAGES, '--out', out, '--repeat', '1000'], {
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      while (child.exitCode === null && !existsSync(join(out, 'chelsea.sharp.png'))) await setTimeout(20);
      child.kill('SIGINT');
      expect(await ended).toEqual([130, null]);
      for (const file of await readdir(out)) {
        expect(file).toMatch(/^\w+\.(?:blur|sharp|edges|histogram)\.(?:png|json)$/);
        if (file.endsWith('.png')) expect((await sharp(join(out, file)).stats()).channels.length).toBeGreaterThan(0);
      }
    },
    RUN_MS,
  );

  it('refuses options it does not understand', async () => {
    const out = join(scratch, 'never');
    for (const [args, message] of [
      [[IMAGES, '--repeat', '0'], '--repeat 0 is not a whole number of at least 1.'],
      [[IMAGES, '--colour'], "Unknown option '--colour'"],
      [[IMAGES, IMAGES], 'Name one folder of photos'],
    ] as const) {
      const { code, stderr } = await photos(...args, '--out', out);
      expect(code).toBe(1);
      expect(stderr).toContain(message);
    }
  });

  it('refuses a device that there is none of', async () => {
    const { code, stderr } = await photos(IMAGES, '--out', join(scratch, 'no-device'), '--device', 'tpu:0');
    expect(code).toBe(1);
    expect(stderr).toContain('tpu:0');
  });
});
