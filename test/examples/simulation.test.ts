// The simulation example as its users run it: a process of its own, on the CPU device and on a GPU if there is one. Its heights are
// compared with those of plain TypeScript, bit for bit.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listDevices, openDevice } from 'millrace';
import { DROP_RADIUS, SPEED2 } from '../../examples/simulation/kernels.js';
import { checksum, Membrane, PERIOD, weather, type Values } from '../../examples/simulation/membrane.js';

const MAIN = fileURLToPath(new URL('../../build/js/examples/simulation/main.js', import.meta.url));
/** The first run compiles three kernels. */
const RUN_MS = 60_000;
const STEPS = 400;
const SIZE = 48;
const FRAMES = 5;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function simulation(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, ...args], { timeout: RUN_MS }, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}

const { fround } = Math;

/** The heights after these periods, every operation rounded to f32 as in the kernels. */
function reference(periods: readonly Values[], size: number): Float32Array {
  let [now, before] = [new Float32Array(size * size), new Float32Array(size * size)];
  for (const { damping, row, column, strength } of periods) {
    for (let di = -DROP_RADIUS; di <= DROP_RADIUS; di++) {
      for (let dj = -DROP_RADIUS; dj <= DROP_RADIUS; dj++) {
        const inside = DROP_RADIUS ** 2 - di ** 2 - dj ** 2;
        const [y, x] = [row + di, column + dj];
        if (inside <= 0 || y < 1 || x < 1 || y > size - 2 || x > size - 2) continue;
        const dent = fround(fround(fround(strength) * inside) * inside);
        for (const heights of [now, before]) heights[y * size + x]! -= dent;
      }
    }
    const kept = fround(1 - fround(damping));
    for (let step = 0; step < PERIOD; step++) {
      for (let y = 1; y < size - 1; y++) {
        for (let x = 1; x < size - 1; x++) {
          const at = y * size + x;
          const here = now[at]!;
          const beside = [now[at - size]!, now[at + size]!, now[at - 1]!, now[at + 1]!].reduce((sum, height) => fround(sum + height));
          const pull = fround(beside - 4 * here);
          const moved = fround(here + fround(kept * fround(here - before[at]!)));
          before[at] = fround(moved + fround(fround(SPEED2) * pull));
        }
      }
      [now, before] = [before, now];
    }
  }
  return now;
}

const periods = weather(STEPS / PERIOD, SIZE);
const expected = reference(periods, SIZE);

let scratch: string;
beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error('The examples are not compiled: node scripts/build.mjs --with-examples');
  scratch = await mkdtemp(join(tmpdir(), 'millrace-simulation-'));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);
if (gpus.length === 0) {
  it('the simulation on a GPU', (context) => {
    expect(process.env['MILLRACE_TEST_CUDA'], 'MILLRACE_TEST_CUDA is 1, and no GPU is listed').not.toBe('1');
    context.skip('this machine has no GPU');
  });
}

describe.each(['cpu', ...gpus.slice(0, 1)] as const)('the simulation example on %s', (name) => {
  it('gives the heights of plain TypeScript, bit for bit, and writes the frames', { timeout: RUN_MS }, async () => {
    const out = join(scratch, name.replace(':', '-'));
    const args = ['--device', name, '--steps', `${STEPS}`, '--size', `${SIZE}`, '--frames', `${FRAMES}`, '--out', out];
    const ended = await simulation(...args);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toMatch(/^one by one +\d+\.\d ms +\d+\.\d ms\nby graph +\d+\.\d ms +\d+\.\d ms$/m);
    expect(ended.stdout).toContain(`checksum       ${checksum(expected)}, the same one by one and by graph\n`);
    expect((await readdir(out)).toSorted()).toEqual(Array.from({ length: FRAMES }, (_, n) => `frame-000${n}.png`));
    const pictures = await Promise.all(
      Array.from({ length: FRAMES }, (_, n) =>
        sharp(join(out, `frame-000${n}.png`))
          .raw()
          .toBuffer({ resolveWithObject: true }),
      ),
    );
    for (const { info } of pictures) expect(info).toMatchObject({ width: SIZE, height: SIZE, channels: 3 });
    expect(new Set(pictures.map(({ data }) => data.toString('base64'))).size).toBe(FRAMES);
  });

  it('gives the same heights one by one and by graph, also by turns', { timeout: RUN_MS }, async () => {
    await using device = await openDevice(name);
    using membrane = new Membrane(device, SIZE);
    await using graph = membrane.capture();
    const oneByOne = (values: Values): void => membrane.submit(device.stream, values);
    const byGraph = (values: Values): void => void device.stream.launch(graph, values);
    for (const ways of [[oneByOne], [byGraph], [oneByOne, byGraph]]) {
      membrane.reset();
      periods.forEach((values, n) => ways[n % ways.length]!(values));
      expect(await membrane.heights()).toEqual(expected);
    }
  });
});

describe('the simulation example in trouble', () => {
  it('refuses options that it does not understand', async () => {
    for (const [args, message] of [
      [['--steps', '30'], '--steps 30 is not a multiple of 20, the steps of the graph.\n'],
      [['--steps', '0'], '--steps 0 is not a whole number from 20 to 100000000.\n'],
      [['--size', '8'], '--size 8 is not a whole number from 24 to 4096.\n'],
      [['--size', 'large'], '--size large is not a whole number from 24 to 4096.\n'],
      [['--steps', '40', '--frames', '3'], '--frames 3 is not a whole number from 0 to 2.\n'],
      [['--colour'], "Unknown option '--colour'"],
    ] as const) {
      const { code, stdout, stderr } = await simulation(...args, '--out', join(scratch, 'never'));
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(message);
    }
    expect(existsSync(join(scratch, 'never'))).toBe(false);
  });

  it('lists its options on request', async () => {
    expect(await simulation('--help')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: simulation/), stderr: '' });
  });

  it('refuses a device that there is none of', async () => {
    const { code, stderr } = await simulation('--device', 'tpu:0', '--out', join(scratch, 'no-device'));
    expect(code).toBe(1);
    expect(stderr).toContain('tpu:0');
  });
});
