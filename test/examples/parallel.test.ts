// The example of data-parallel training: two devices of one process, and two processes, learn the same.
import { execFile } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../build/js/examples/parallel/main.js', import.meta.url));
const RUN_MS = 60_000;

function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { timeout: RUN_MS, env: { ...process.env, ...env } }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    );
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

test('two devices of one process, also by a graph, and two processes, learn the same', { timeout: 2 * RUN_MS }, async () => {
  const one = await run(['cpu:0', 'cpu:1'], { MILLRACE_CPU_DEVICES: '2' });
  expect(one.stderr).toBe('');
  const lines = one.stdout.trim().split('\n');
  expect(lines).toHaveLength(2);
  const told = lines.map((line) => /^rank (\d) {2}cpu:\d {2}loss (\S+) -> (\S+) {2}parameters (\w+)$/.exec(line)!);
  for (const [, rank, before, after] of told) expect([rank, Number(after) < Number(before) / 1000]).toEqual([expect.any(String), true]);
  const [first, second] = told as [RegExpExecArray, RegExpExecArray];
  expect(second[4]).toBe(first[4]);
  const graph = await run(['cpu:0', 'cpu:1', '--graph'], { MILLRACE_CPU_DEVICES: '2' });
  expect(graph).toEqual(one);
  const port = String(await freePort());
  const ranks = await Promise.all(
    ['0', '1'].map((rank) => run(['--joined', 'cpu'], { RANK: rank, WORLD_SIZE: '2', MASTER_ADDR: '127.0.0.1', MASTER_PORT: port })),
  );
  for (const { stdout, stderr } of ranks) expect([stderr, stdout.trim().endsWith(`parameters ${first[4]!}`)]).toEqual(['', true]);
});
