// Communicators of several processes (chapter 15), over loopback.
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { SLOWNESS } from '../support/slowness.js';

const PROGRAM = path.resolve(import.meta.dirname, 'programs/joined.mjs');
/** Long enough for a busy machine to start its processes. */
const JOINING_MS = 20_000 * SLOWNESS;
const KILLS = IS_LONG ? 100 : 3;

interface Rank {
  readonly child: ChildProcess;
  readonly lines: unknown[];
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stderr: string }>;
}

const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started.splice(0)) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

async function start(
  mode: string,
  size: number,
  timeoutMs = JOINING_MS,
  env: (rank: number) => Record<string, string> = () => ({}),
): Promise<Rank[]> {
  const port = await freePort();
  return Array.from({ length: size }, (_, rank) => {
    const child = spawn(process.execPath, [PROGRAM, mode, String(timeoutMs)], {
      env: {
        ...process.env,
        RANK: String(rank),
        WORLD_SIZE: String(size),
        MASTER_ADDR: '127.0.0.1',
        MASTER_PORT: String(port),
        ...env(rank),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    started.push(child);
    const lines: unknown[] = [];
    let [rest, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const all = (rest + text).split('\n');
      rest = all.pop()!;
      lines.push(...all.map((line) => JSON.parse(line) as unknown));
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const ended: Rank['ended'] = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal, stderr })));
    return { child, lines, ended };
  });
}

async function linesOf(ranks: readonly Rank[]): Promise<unknown[][]> {
  for (const [rank, { ended }] of ranks.entries()) {
    const how = await ended;
    expect(how, `rank ${rank}: ${how.stderr}`).toEqual({ code: 0, signal: null, stderr: '' });
  }
  return ranks.map(({ lines }) => lines);
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('15 collectives of several processes', () => {
  test('S1331 each rank gets what it gets in one process', { timeout: 60_000 * SLOWNESS }, async () => {
    const all = await linesOf(await start('all', 3));
    all.forEach((lines, rank) => {
      expect(lines).toEqual([
        [rank, 3],
        [3, 30],
        [2, 2],
        rank === 1 ? [2, 20] : null,
        [1, 10],
        [
          [0, 0],
          [1, 10],
          [2, 20],
        ],
        200 + rank,
        [rank, 100 + rank, 200 + rank],
        [(rank + 2) % 3, 10 * ((rank + 2) % 3)],
        Array.from({ length: 20 }, (_, at) => 3 * at + 3),
        [],
      ]);
    });
  });

  test('S1332 ranks that call something else, and a failed operand, are typed errors on all ranks; the group works on until one aborts', {
    timeout: 60_000 * SLOWNESS,
  }, async () => {
    const all = await linesOf(await start('disagree,poisoned,aborted', 2));
    for (const lines of all) {
      expect(lines.slice(0, 4)).toEqual(
        Array.from({ length: 4 }, () => expect.objectContaining({ name: 'CollectiveError', reason: 'mismatch', ranks: [1] }) as unknown),
      );
      expect(lines[4]).toBe(1);
      expect((lines[0] as { message: string }).message).toContain(
        'rank 0 calls allReduce sum of f32[4], rank 1 calls allReduce sum of f32[5]',
      );
      expect(lines.slice(7)).toEqual([1, expect.objectContaining({ name: 'CollectiveError', reason: 'aborted', ranks: [1] })]);
    }
    const [first, second] = all as [unknown[], unknown[]];
    expect(first[5]).toMatchObject({ name: 'CollectiveError', reason: 'failed', ranks: [1] });
    expect(first[6]).toMatchObject({ name: 'UpstreamError', cause: 'failed' });
    expect(second[5]).toMatchObject({ name: 'UpstreamError' });
  });

  // Side by side: they wait for time to pass.
  describe.concurrent('ranks that others wait for in vain', () => {
    test('S1333 a rank that does not come ends the communicator for all', { timeout: 120_000 * SLOWNESS }, async () => {
      for (const lines of await linesOf(await start('late', 2, 6000 * SLOWNESS)))
        expect(lines).toEqual([expect.objectContaining({ name: 'CollectiveError', reason: 'timeout', ranks: [1] })]);
    });

    test('S1333 ranks that do not join, or do not know the secret, are told', { timeout: 60_000 * SLOWNESS }, async () => {
      const secrets = await start('all', 2, 4000 * SLOWNESS, (rank) => ({ MILLRACE_SECRET: rank === 0 ? 'one' : 'other' }));
      const [first, second] = await linesOf(secrets);
      expect(first).toEqual([expect.objectContaining({ reason: 'timeout' })]);
      expect(second).toEqual([expect.objectContaining({ reason: 'failed', ranks: [1] })]);
      const [alone] = await linesOf(await start('all', 1, 2000 * SLOWNESS, () => ({ WORLD_SIZE: '2' })));
      expect(alone).toEqual([expect.objectContaining({ name: 'CollectiveError', reason: 'timeout' })]);
    });
  });

  test(`S1333 ranks that are killed or stopped at any moment: the others are told and go on (${KILLS} times)`, {
    timeout: (30_000 + KILLS * 30_000) * SLOWNESS,
  }, async () => {
    const size = 3;
    const timeoutMs = 6000 * SLOWNESS;
    for (let kill = 0; kill < KILLS; kill++) {
      const victim = kill < size ? kill : Math.floor(Math.random() * size);
      const signal = kill % 4 === 1 ? 'SIGSTOP' : 'SIGKILL';
      const ranks = await start('loop', size, timeoutMs);
      await until(() => ranks.every(({ lines }) => lines.length > 0));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 50));
      ranks[victim]!.child.kill(signal);
      const living = ranks.filter((_, rank) => rank !== victim);
      const lines = await linesOf(living);
      ranks[victim]!.child.kill('SIGKILL');
      const others = [0, 1, 2].filter((rank) => rank !== victim);
      lines.forEach((told, at) => {
        expect(told[1], `${signal} of rank ${victim}`).toMatchObject({
          name: 'CollectiveError',
          reason: expect.stringMatching(/lost|timeout/) as unknown,
        });
        expect(told[2], `${signal} of rank ${victim}`).toEqual([at, 2, others[0]! + others[1]!]);
      });
    }
  });
});
