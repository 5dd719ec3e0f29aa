// Compilers are processes, and have a folder: neither outlives the device, the thread or the process that started them. And
// there are never more of them than cores.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { linesOf, runProgram, type Ending } from './child.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-compilers-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'test-'));
});

/** A program that says that it is g++, and then does this. */
function compiler(body: string): string {
  const path = join(folder, 'cxx');
  writeFileSync(path, `#!/bin/sh\n[ "$1" = --version ] && echo "g++ (Some) 1.2.3" && exit\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** A folder for temporary ones, and nothing in the cache. */
function surroundings(cxx: string): Record<string, string> {
  const temporary = mkdtempSync(join(folder, 'tmp-'));
  return { MILLRACE_CXX: cxx, MILLRACE_CACHE_DIR: join(folder, 'cache'), TMPDIR: temporary, PIDS: join(folder, 'pids') };
}

function isGone(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').startsWith('Z');
  } catch {
    return true;
  }
}
/** Until it is so: time is only an upper bound. */
async function until(isSo: () => boolean): Promise<boolean> {
  for (const end = Date.now() + 10_000; !isSo() && Date.now() < end; ) {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
  return isSo();
}

describe('a compiler that never ends', () => {
  // Ends neither by its input nor by SIGTERM, and has started another.
  const ENDLESS = `trap '' TERM\nsleep 1000 &\nprintf '%s\\n%s\\n' $$ $! > "$PIDS.new"; mv "$PIDS.new" "$PIDS"; wait; wait; sleep 1000`;
  const run = async (how: string, kill?: NodeJS.Signals): Promise<Ending & { env: Record<string, string> }> => {
    const own = surroundings('');
    const env: Record<string, string> = { ...own, MILLRACE_CXX: compiler(`PIDS=${own['PIDS']}\n${ENDLESS}`) };
    const ending = await runProgram('compiling', [how], { env, ...(kill && { kill: { when: 'compiling', signal: kill } }) });
    return { ...ending, env };
  };
  // A test that fails leaves them.
  afterEach(() => {
    for (const pid of pidsOf({ PIDS: join(folder, 'pids') })) if (!isGone(pid)) process.kill(Number(pid), 'SIGKILL');
  });
  const pidsOf = (env: Record<string, string>): string[] => readFileSync(env['PIDS']!, 'utf8').trim().split('\n');

  test.each([
    ['exit', 7],
    ['throw', 1],
  ])('does not outlive its process (%s), nor does its folder', async (how, code) => {
    const { env, ...ending } = await run(how);
    expect(ending).toMatchObject({ code, signal: null });
    expect(pidsOf(env)).toHaveLength(2);
    expect(pidsOf(env).filter((pid) => !isGone(pid))).toEqual([]);
    expect(readdirSync(env['TMPDIR']!)).toEqual([]);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('does not outlive a process that %s ends, nor does its folder', async (signal) => {
    const { env, ...ending } = await run('wait', signal);
    expect(ending).toMatchObject({ signal });
    expect(pidsOf(env)).toHaveLength(2);
    expect(await until(() => pidsOf(env).every(isGone))).toBe(true);
    expect(await until(() => readdirSync(env['TMPDIR']!).length === 0)).toBe(true);
  });

  test.each(['destroy', 'terminate'])(
    'does not outlive its device (%s), nor does its folder, nor a process that nobody waited for',
    async (how) => {
      const ending = await run(how);
      expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(JSON.parse(linesOf(ending).at(-1)!)).toEqual({ running: [], children: [], folders: [] });
    },
  );
});

test('two devices with many new kernels run no more compilers at once than there are cores', async () => {
  const log = join(folder, 'log');
  const cxx = compiler(`echo + >> ${log}\ng++ "$@"\nstatus=$?\necho - >> ${log}\nexit $status`);
  const ending = await runProgram('many-kernels', ['12', 'cpu:0,cpu:1'], {
    env: { ...surroundings(cxx), MILLRACE_CPU_DEVICES: '2' },
    timeoutMs: 100_000,
  });
  expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(linesOf(ending)).toEqual(['24 of 24']);
  let [now, most] = [0, 0];
  for (const sign of readFileSync(log, 'utf8').trim().split('\n')) most = Math.max(most, (now += sign === '+' ? 1 : -1));
  expect(now).toBe(0);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(availableParallelism());
}, 110_000);
