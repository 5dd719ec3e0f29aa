// Compilers and their temporary folder do not outlive the device, the thread or the process that started them. At most as many
// compilers run at once as there are cores.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runChild } from '../support/child.js';
import { linesOf, runProgram, type Ending } from './child.js';
import { copyingCompiler } from './copying-compiler.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-compilers-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'test-'));
});

/** A script that answers `--version` as g++ and runs `body` otherwise. */
function compiler(body: string): string {
  const path = join(folder, 'cxx');
  writeFileSync(path, `#!/bin/sh\n[ "$1" = --version ] && echo "g++ (Some) 1.2.3" && exit\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** An environment with a temporary folder of its own and an empty cache. */
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
/** Waits until the condition holds. The time is only an upper bound. */
async function until(isSo: () => boolean): Promise<boolean> {
  for (const end = Date.now() + 10_000; !isSo() && Date.now() < end; ) {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
  return isSo();
}

describe('a compiler that never ends', () => {
  // The script ignores SIGTERM, does not end with its input, and has a child of its own.
  const ENDLESS = `trap '' TERM\nsleep 1000 &\nprintf '%s\\n%s\\n' $$ $! > "$PIDS.new"; mv "$PIDS.new" "$PIDS"; wait; wait; sleep 1000`;
  const run = async (how: string, kill?: NodeJS.Signals): Promise<Ending & { env: Record<string, string> }> => {
    const own = surroundings('');
    const env: Record<string, string> = { ...own, MILLRACE_CXX: compiler(`PIDS=${own['PIDS']}\n${ENDLESS}`) };
    const ending = await runProgram('compiling', [how], { env, ...(kill && { kill: { when: 'compiling', signal: kill } }) });
    return { ...ending, env };
  };
  // A failing test leaves the processes running.
  afterEach(() => {
    for (const pid of pidsOf({ PIDS: join(folder, 'pids') })) if (!isGone(pid)) process.kill(Number(pid), 'SIGKILL');
  });
  const pidsOf = (env: Record<string, string>): string[] => readFileSync(env['PIDS']!, 'utf8').trim().split('\n');

  test.each([
    ['exit', 7],
    ['throw', 1],
  ])('ends with its process (%s), and its folder is removed', async (how, code) => {
    const { env, ...ending } = await run(how);
    expect(ending).toMatchObject({ code, signal: null });
    expect(pidsOf(env)).toHaveLength(2);
    expect(pidsOf(env).filter((pid) => !isGone(pid))).toEqual([]);
    expect(readdirSync(env['TMPDIR']!)).toEqual([]);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)('ends when %s kills its process, and its folder is removed', async (signal) => {
    const { env, ...ending } = await run('wait', signal);
    expect(ending).toMatchObject({ signal });
    expect(pidsOf(env)).toHaveLength(2);
    expect(await until(() => pidsOf(env).every(isGone))).toBe(true);
    expect(await until(() => readdirSync(env['TMPDIR']!).length === 0)).toBe(true);
  });

  test.each(['destroy', 'terminate'])('ends with its device (%s), its folder is removed, and no zombie is left', async (how) => {
    const ending = await run(how);
    expect(ending).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(linesOf(ending).at(-1)!)).toEqual({ running: [], children: [], folders: [] });
  });
});

test.each([
  ['nothing left', 0, ['1 4']],
  ['exit', 7, ['1 4']],
  ['throw', 1, ['1 4']],
  ['terminate', 0, ['1', '0']],
])('a temporary folder that holds a kernel is removed although the device is not closed (%s)', async (how, code, lines) => {
  const env: Record<string, string> = { ...surroundings('g++'), MILLRACE_CACHE_DIR: '/dev/null/below' };
  const ending = await runProgram('no-cache', [how], { env });
  expect(ending).toMatchObject({ code, signal: null });
  expect(linesOf(ending)).toEqual(lines);
  expect(await until(() => readdirSync(env['TMPDIR']!).length === 0)).toBe(true);
});

test('two devices that build many kernels run at most one compiler per core at once', async () => {
  const log = join(folder, 'log');
  const cxx = copyingCompiler(folder, `echo + >> ${log}; sleep 0.2`, `echo - >> ${log}`);
  const ending = await runProgram('many-kernels', ['12', 'cpu:0,cpu:1', '7'], {
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

test('a folder that others may write to is warned of once, however many devices meet it', async () => {
  const open = join(folder, 'open');
  mkdirSync(open);
  chmodSync(open, 0o777);
  const code = `import { inout, i32, kernel, openDevice } from 'millrace';
    const one = kernel('one', { x: inout(i32) }, ({ x }, { i }) => { x[i] = 1; });
    const devices = await Promise.all(['cpu:0', 'cpu:1'].map((id) => openDevice(id)));
    for (const device of devices) await device.compile(one);
    for (const device of devices) await device.close();
    console.log('closed');`;
  const { stdout, stderr } = await runChild(code, { MILLRACE_CACHE_DIR: join(open, 'cache'), MILLRACE_CPU_DEVICES: '2' });
  expect([stdout, stderr.match(/Built kernels are not kept in /g)]).toEqual(['closed\n', ['Built kernels are not kept in ']]);
});
