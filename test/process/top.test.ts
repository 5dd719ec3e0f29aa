// `npx millrace top`: its facts, its text, and what it does to a terminal.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { linesOfTop, type TopFacts, type TopGpu } from '../../dist/cli/top-lines.js';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-driver.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const SCRIPT = '/usr/bin/script';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const nvml = FAKE_DRIVER === undefined ? '' : path.join(path.dirname(FAKE_DRIVER), 'libfake_nvml.so');

function top(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const all = { ...process.env, MILLRACE_NVML: nvml, ...env };
    execFile(process.execPath, [MAIN, 'top', ...args], { env: all }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code as unknown as number), stdout, stderr }),
    );
  });
}

describe('linesOfTop', () => {
  const gpu: TopGpu = {
    index: 0,
    name: 'Card \u001b[31m\n',
    isSlice: false,
    busyPercent: 5,
    throttleReasons: ['gpu-idle', 'hw-slowdown'],
    xidErrors: [{ code: 79, noticedMs: 1 }],
  };
  const facts: TopFacts = { at: '2026-01-02T03:04:05.000Z', gpus: [gpu] };

  test('no line is wider than the terminal, and names cannot control it', () => {
    for (const columns of [1, 10, 40, 60, 200]) {
      for (const line of linesOfTop(facts, columns)) {
        expect(line.length).toBeLessThanOrEqual(columns);
        // oxlint-disable-next-line no-control-regex -- that is what is looked for.
        expect(line).not.toMatch(/[\u0000-\u001f]/);
      }
    }
    expect(linesOfTop(facts, 200).at(-1)).toMatch(/^0 +5 % +- +- +- +- +79 +Card \?\[31m\? +hw-slowdown$/);
  });
});

describe.skipIf(FAKE_DRIVER === undefined)(`top${FAKE_DRIVER === undefined ? `: ${FAKE_DRIVER_MISSING}` : ''}`, () => {
  test('prints all GPUs and their slices once where the output is no terminal', async () => {
    const { code, stdout } = await top([], { CUDA_VISIBLE_DEVICES: '1' });
    expect(code).toBe(0);
    // A pipe has no width, and no colours.
    expect(stdout).toMatch(
      /^millrace top {2}\d\d:\d\d:\d\d {2}2 GPUs\n\nGPU .*SLOWED BY\n0 +40 % .*sw-power-cap sw-thermal-slowdown other\n1 +41 % .*\n$/,
    );
    const { gpus } = JSON.parse((await top(['--json'], { MILLRACE_FAKE_NVML: 'mig' })).stdout) as TopFacts;
    expect(gpus!.map(({ uuid, isSlice }) => `${uuid!.slice(0, 3)} ${isSlice}`)).toEqual(['GPU false', 'MIG true', 'MIG true', 'GPU false']);
  });

  test('without NVML, says why and ends with 1', async () => {
    const { code, stdout } = await top([], { MILLRACE_NVML: '/nonexistent' });
    expect(code).toBe(1);
    expect(stdout).toMatch(/no GPU is monitored\n\n.*cannot be\s+opened[^]*NVIDIA_DRIVER_CAPABILITIES/);
    expect(JSON.parse((await top(['--json'], { MILLRACE_NVML: '/nonexistent' })).stdout)).toMatchObject({ reason: expect.any(String) });
  });

  test.skipIf(!existsSync(SCRIPT)).each([
    ['q', {}],
    ['\u0003', { NO_COLOR: '1' }],
  ])('on a terminal, it draws again until a key ends it, and leaves the terminal as it was (%j)', async (key, variables) => {
    const { NO_COLOR: _, FORCE_COLOR: __, ...inherited } = process.env;
    const env: NodeJS.ProcessEnv = { ...inherited, MILLRACE_NVML: nvml, TERM: 'xterm', ...variables };
    const shown = spawn(SCRIPT, ['-qec', `${process.execPath} ${MAIN} top`, '/dev/null'], { env });
    let out = '';
    const drawn = (): number => out.split('\u001b[H').length - 1;
    shown.stdout.on('data', (bytes: Buffer) => {
      const before = drawn();
      out += bytes.toString();
      if (before < 2 && drawn() >= 2) shown.stdin.write(key);
    });
    const code = await new Promise((resolve) => shown.on('close', resolve));
    expect(code).toBe(0);
    expect(out.startsWith('\u001b[?1049h\u001b[?25l')).toBe(true);
    expect(out.endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
    expect(out.includes('\u001b[1m')).toBe(env['NO_COLOR'] === undefined);
  });
});
