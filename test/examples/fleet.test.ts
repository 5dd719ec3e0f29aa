// The fleet example as its users run it: workers on CPU devices, one killed now and then, and results that are those of plain TypeScript.
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { afterAll, expect, test } from 'vitest';
import { openDevice, overlap } from 'millrace';
import { resize, SIDE } from '../../examples/fleet/resize.js';
import { IS_LONG } from '../support/long.js';
import { queueCases } from '../support/queue-servers.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const IMAGES = path.join(ROOT, 'examples/photos/images');
const PICTURES = IS_LONG ? 120 : 40;
const RUN_MS = 180_000;
const out = mkdtempSync(path.join(tmpdir(), 'millrace-fleet-'));
afterAll(() => rmSync(out, { recursive: true }));

const { absent } = queueCases[0]!;

test.skipIf(absent)(
  `${PICTURES} pictures are resized once each while workers are killed${absent ? `: ${absent}` : ''}`,
  { timeout: RUN_MS },
  async () => {
    const main = path.join(ROOT, 'build/js/examples/fleet/main.js');
    const args = ['--device', 'cpu', '--pictures', `${PICTURES}`, '--kill-every-ms', '300', '--out', out];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [main, ...args], { cwd: ROOT, timeout: RUN_MS });
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n').at(-1)).toMatch(
      new RegExp(`^${PICTURES} of ${PICTURES} pictures, each once, 0 dead letters, [1-9]\\d* kills$`),
    );
    expect(readdirSync(out).length).toBeGreaterThan(3);
    const { width, height } = await sharp(path.join(out, 'astronaut.png.jpg')).metadata();
    expect([width, height]).toEqual([SIDE, SIDE]);
  },
);

test('a resized picture is the mean of its boxes', async () => {
  await using device = await openDevice('cpu');
  const file = path.join(IMAGES, 'chelsea.png');
  for await (const jpeg of overlap(device, [file], resize)) {
    const [made, expected] = await Promise.all([
      sharp(jpeg).raw().toBuffer({ resolveWithObject: true }),
      sharp(file).resize(SIDE, undefined, { kernel: 'linear' }).raw().toBuffer(),
    ]);
    expect([made.info.width, made.data.length]).toEqual([SIDE, expected.length]);
    const error = made.data.reduce((sum, byte, at) => sum + Math.abs(byte - expected[at]!), 0) / expected.length;
    // Means of brightness; another filter and the JPEG differ by some steps of 255.
    expect(error).toBeLessThan(6);
  }
});
