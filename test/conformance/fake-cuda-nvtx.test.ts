// Names for NVTX tools: a small tool of the native tests writes what it is told.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { afterAll, describe, expect, test } from 'vitest';

const TOOL = join(dirname(FAKE_DRIVER ?? ''), 'libnvtx_recorder.so');

const PROGRAM = `
  import { f32, inout, kernel, launch, openDevice, overlap } from 'millrace';
  import { lastValueFrom, mergeMap, of } from 'rxjs';
  const twice = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 2 * x[i]; });
  const device = await openDevice(process.argv[1]);
  const x = device.zeros([64]);
  device.stream.launch(twice, 64, { x });
  device.stream.launch(twice, { threads: 64, label: 'the second' }, { x });
  await device.stream.copy(new Float32Array(64), x, { label: 'back' }).done;
  const values$ = overlap(device, [1], { depth: 1 }, (value, lane) =>
    of(lane.full([8], value)).pipe(launch(lane, twice, 8, (y) => ({ x: y })), mergeMap((y) => lane.time('read back', y.read()))));
  console.log((await lastValueFrom(values$))[0]);
  await device.close();`;

describe.skipIf(FAKE_DRIVER === undefined)(`NVTX${FAKE_DRIVER === undefined ? `: ${FAKE_DRIVER_MISSING}` : ''}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-nvtx-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const run = (device: string, env: Readonly<Record<string, string>>): Promise<{ stdout: string; stderr: string }> => {
    const args = ['--input-type=module', '-e', PROGRAM, device];
    return promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env }, cwd: import.meta.dirname });
  };

  for (const device of ['cpu:0', 'cuda:0']) {
    test(`S1238 a tool gets a range for each operation, and for items and stages, on ${device}`, { timeout: 60_000 }, async () => {
      const file = join(folder, device.replace(':', ''));
      const { stdout, stderr } = await run(device, { NVTX_INJECTION64_PATH: TOOL, MILLRACE_TEST_NVTX: file });
      expect([stdout, stderr]).toEqual(['2\n', '']);
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
      expect(lines[0]).toBe('domain 0 millrace');
      const pushed = lines.flatMap((line) => /^push 0 (.*)$/.exec(line)?.[1] ?? []);
      for (const name of ['twice', 'the second', 'back', 'fill', 'alloc', 'copy']) expect(pushed).toContain(name);
      // None is inside of another one, and each is closed.
      expect(lines.filter((line) => line.startsWith('push'))).toHaveLength(pushed.length);
      expect(lines.filter((line) => line === 'pop 0 ')).toHaveLength(pushed.length);
      const begun = lines.flatMap((line) => /^start (\d+) (.*)$/.exec(line)?.slice(1) ?? []);
      expect(begun).toContain('item on lane 0');
      expect(begun).toContain('read back on lane 0');
      const ended = new Set(lines.flatMap((line) => /^end (\d+) $/.exec(line)?.[1] ?? []));
      expect(ended).toEqual(new Set(begun.filter((word) => /^\d+$/.test(word))));
    });
  }

  test('S1238 a library that does not work is a warning, and the program runs', { timeout: 60_000 }, async () => {
    const missing = await run('cpu:0', { NVTX_INJECTION64_PATH: '/nonexistent/tool.so' });
    expect(missing.stdout).toBe('2\n');
    expect(missing.stderr).toMatch(
      /\[MILLRACE_NVTX\] MillraceWarning: The tool that NVTX_INJECTION64_PATH names gets no names .*\/nonexistent\/tool\.so/,
    );
    // Without its variable, this tool refuses.
    const refused = await run('cpu:0', { NVTX_INJECTION64_PATH: TOOL });
    expect(refused.stdout).toBe('2\n');
    expect(refused.stderr).toContain('libnvtx_recorder.so refused to begin');
  });
});
