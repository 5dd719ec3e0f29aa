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

/** What each rank says, without the duration. */
const ofRanks = (stdout: string): readonly string[] => stdout.split('\n').filter((line) => line.startsWith('rank '));

test('two devices of one process, also by a graph, one with the parts of both, and two processes learn the same', {
  timeout: 2 * RUN_MS,
}, async () => {
  const one = await run(['cpu:0', 'cpu:1'], { MILLRACE_CPU_DEVICES: '2' });
  expect(one.stderr).toBe('');
  expect(one.stdout).toMatch(/\n\d+\.\d{3} ms a step\n$/);
  const lines = ofRanks(one.stdout);
  expect(lines).toHaveLength(2);
  const told = lines.map((line) => /^rank (\d) {2}cpu:\d {2}loss (\S+) -> (\S+) {2}parameters (\w+)$/.exec(line)!);
  for (const [, rank, before, after] of told) expect([rank, Number(after) < Number(before) / 5]).toEqual([expect.any(String), true]);
  const [first, second] = told as [RegExpExecArray, RegExpExecArray];
  expect(second[4]).toBe(first[4]);
  const graph = await run(['cpu:0', 'cpu:1', '--graph'], { MILLRACE_CPU_DEVICES: '2' });
  expect(ofRanks(graph.stdout)).toEqual(lines);
  const alone = await run(['cpu:0', '--parts', '2'], {});
  expect(alone.stdout).toContain(`parameters ${first[4]!}\n`);
  const port = String(await freePort());
  const ranks = await Promise.all(
    ['0', '1'].map((rank) => run(['--joined', 'cpu'], { RANK: rank, WORLD_SIZE: '2', MASTER_ADDR: '127.0.0.1', MASTER_PORT: port })),
  );
  for (const { stdout, stderr } of ranks) expect([stderr, ofRanks(stdout)[0]?.endsWith(`parameters ${first[4]!}`)]).toEqual(['', true]);
});

test('parts that the devices cannot share are refused', async () => {
  const { stderr } = await run(['cpu:0', 'cpu:1', '--parts', '3'], { MILLRACE_CPU_DEVICES: '2' });
  expect(stderr).toBe('--parts 3 is not a multiple of 2, the number of devices.\n');
});
