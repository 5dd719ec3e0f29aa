// `npx millrace top`: its facts, its text, and what it does to a terminal.
import { execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { openDevice } from 'millrace';
import { serveTimeline } from 'millrace/timeline';
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

const runtime = mkdtempSync(path.join(tmpdir(), 'millrace-top-'));
afterAll(() => rmSync(runtime, { recursive: true, force: true }));

function top(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve) => {
    // No program of another test.
    const all = { ...process.env, MILLRACE_NVML: nvml, XDG_RUNTIME_DIR: runtime, ...env };
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
  const facts: TopFacts = { at: '2026-01-02T03:04:05.000Z', gpus: [gpu], programs: [], unreached: [] };

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
      /^millrace top {2}\d\d:\d\d:\d\d {2}2 GPUs, 0 programs\n\nGPU .*SLOWED BY\n0 +40 % .*sw-power-cap sw-thermal-slowdown other\n1 +41 % .*\n$/,
    );
    const { gpus } = JSON.parse((await top(['--json'], { MILLRACE_FAKE_NVML: 'mig' })).stdout) as TopFacts;
    expect(gpus!.map(({ uuid, isSlice }) => `${uuid!.slice(0, 3)} ${isSlice}`)).toEqual(['GPU false', 'MIG true', 'MIG true', 'GPU false']);
  });

  test('without NVML, says why and ends with 1', async () => {
    const { code, stdout } = await top([], { MILLRACE_NVML: '/nonexistent' });
    expect(code).toBe(1);
    expect(stdout).toMatch(/no GPU is monitored, 0 programs\n\n.*cannot be\s+opened[^]*NVIDIA_DRIVER_CAPABILITIES/);
    expect(JSON.parse((await top(['--json'], { MILLRACE_NVML: '/nonexistent' })).stdout)).toMatchObject({ reason: expect.any(String) });
  });

  test.skipIf(!existsSync(SCRIPT)).each([
    ['q', {}],
    ['\u0003', { NO_COLOR: '1' }],
  ])('on a terminal, it draws again until a key ends it, and leaves the terminal as it was (%j)', async (key, variables) => {
    // Node draws in one colour where CI is set, also on a terminal.
    const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...inherited } = process.env;
    const env: NodeJS.ProcessEnv = { ...inherited, XDG_RUNTIME_DIR: runtime, MILLRACE_NVML: nvml, TERM: 'xterm', ...variables };
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

describe('programs that serve a live view', () => {
  test('are found by a file that only the user may read, which goes when the view ends', async () => {
    process.env['XDG_RUNTIME_DIR'] = runtime;
    await using device = await openDevice('cpu');
    const server = await serveTimeline(device);
    const folder = path.join(runtime, 'millrace');
    const [file] = readdirSync(folder);
    expect([folder, path.join(folder, file!)].map((one) => (statSync(one).mode & 0o777).toString(8))).toEqual(['700', '600']);

    const stream = device.createStream({ label: 'busy stream' });
    let goOn = (): void => undefined;
    const gate = new Promise<void>((resolve) => void (goOn = resolve));
    const held = stream.hold(() => gate, { label: 'slow', timeoutMs: 20_000 });
    // The file of a program that was killed is in the way of nobody.
    writeFileSync(path.join(folder, '4194304-1.served.json'), JSON.stringify({ pid: 4_194_304, url: 'http://127.0.0.1:1/x/' }));
    const { code, stdout } = await top([], { MILLRACE_NVML: '/nonexistent' });
    expect(code).toBe(0);
    expect(stdout).toContain('1 program\n');
    expect(stdout).toMatch(new RegExp(`, process ${process.pid}\n  cpu:0 open, \\d+ operations?/s, 1 pending\n`));
    expect(stdout).toMatch(
      / {4}STREAM +PENDING {2}NOW +WAITS FOR\n {4}busy stream +1 {2}slow +stream busy stream is at host slow, held by a function\n/,
    );
    expect(readdirSync(folder)).toEqual([file]);

    // A folder that others may enter is not used.
    chmodSync(folder, 0o755);
    expect((JSON.parse((await top(['--json'])).stdout) as TopFacts).programs).toEqual([]);
    const { stdout: connected } = await top(['--json', '--connect', server.url]);
    expect((JSON.parse(connected) as TopFacts).programs).toMatchObject([{ pid: process.pid, devices: [{ device: 'cpu:0', pending: 1 }] }]);
    chmodSync(folder, 0o700);
    goOn();
    await held.done;
    await server.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('--connect to what is no address is refused', async () => {
    const { code, stderr } = await top(['--connect', 'nothing']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('is no address of a live view') });
  });

  test('--connect to what tells nothing says why, and ends with 1', async () => {
    const { code, stdout } = await top(['--once', '--connect', 'http://127.0.0.1:1/token/']);
    expect(code).toBe(1);
    expect(stdout.replaceAll('\n', ' ')).toMatch(/http:\/\/127\.0\.0\.1:1\/token\/ tells nothing: .*\S\./);
  });
});
