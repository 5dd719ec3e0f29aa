import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { ArgumentError, StateError, UnavailableError } from '../../../src/core/base/errors.js';
import { cpuTasks } from '../../../src/reactive/index.js';
import { createCpuPool } from '../../../src/workers/cpu-pool.js';

interface Stages {
  addOne(data: Uint8Array): number;
  idleTicks(): Promise<number>;
  fail(): never;
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-pool-'));
const stages = join(folder, 'stages.mjs');
writeFileSync(
  stages,
  `import { threadId } from 'node:worker_threads';
let ticks = 0;
setInterval(() => ticks++, 1).unref();
export function addOne(data) { data.forEach((value, at) => { data[at] = value + 1; }); return threadId; }
export function idleTicks() { return ticks; }
export function fail() { throw new RangeError('out of range'); }
`,
);
afterAll(() => rmSync(folder, { recursive: true }));

describe('a pool of CPU threads', () => {
  it('works on shared memory in place', async () => {
    await using pool = createCpuPool(pathToFileURL(stages), { threads: 1 });
    const data = new Uint8Array(new SharedArrayBuffer(64), 16, 4).fill(7);
    const threadId = await cpuTasks<Stages>(pool).run('addOne', data);
    expect(threadId).toBeGreaterThan(0);
    expect([...data]).toEqual([8, 8, 8, 8]);
  });

  it('leaves the event loops of idle threads running', async () => {
    await using pool = createCpuPool(stages, { threads: 1 });
    const tasks = cpuTasks<Stages>(pool);
    const before = await tasks.run('idleTicks', undefined);
    let after = before;
    // The thread is idle briefly in each round. With piscina's default it would then sleep and never tick.
    for (let round = 0; round < 200 && after === before; round++) {
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
      after = await tasks.run('idleTicks', undefined);
    }
    expect(after).toBeGreaterThan(before);
  });

  it('rejects with what a task throws', async () => {
    await using pool = createCpuPool(stages, { threads: 1 });
    await expect(cpuTasks<Stages>(pool).run('fail', undefined)).rejects.toThrow('out of range');
  });

  it('rejects tasks while the module does not exist, and runs them once it does', async () => {
    const absent = join(folder, 'later.mjs');
    await using pool = createCpuPool(absent, { threads: 1 });
    const tasks = cpuTasks<{ one(value: number): number }>(pool);
    for (let time = 0; time < 2; time++) {
      const error: unknown = await tasks.run('one', 1).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error).toMatchObject({ code: 'ERR_MILLRACE_UNAVAILABLE', message: expect.stringMatching(/later\.mjs.*ENOENT/) });
    }
    writeFileSync(absent, 'export const one = () => 1;');
    expect(await tasks.run('one', 1)).toBe(1);
  });

  it('rejects a task of a module that does not load', async () => {
    const broken = join(folder, 'broken.mjs');
    writeFileSync(broken, 'throw new RangeError("while it loads");');
    await using pool = createCpuPool(broken, { threads: 1 });
    await expect(pool.run(1, { name: 'one' })).rejects.toThrow('while it loads');
  });

  it('rejects tasks after close', async () => {
    const pool = createCpuPool(stages, { threads: 1 });
    const last = pool.run(new Uint8Array(1), { name: 'addOne' });
    const closed = pool.close();
    const error: unknown = await pool.run(new Uint8Array(1), { name: 'addOne' }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StateError);
    expect(await last).toBeGreaterThan(0);
    await closed;
  });

  it('warns when a thread fails between tasks, and keeps working', async () => {
    const failing = join(folder, 'failing.mjs');
    const code = 'export function one() { setTimeout(() => { throw new RangeError("alone"); }); return 1; }';
    writeFileSync(failing, code);
    await using pool = createCpuPool(failing, { threads: 1 });
    const warned = new Promise<Error>((resolve) => {
      process.once('warning', resolve);
    });
    expect(await pool.run(1, { name: 'one' })).toBe(1);
    expect((await warned).message).toContain('alone');
    expect(await pool.run(1, { name: 'one' })).toBe(1);
  });

  it('throws for a bad filename and a bad number of threads', () => {
    for (const filename of ['', 7, new URL('https://example.org/a.js'), undefined]) {
      expect(() => createCpuPool(filename as string)).toThrow(ArgumentError);
    }
    for (const threads of [0, -1, 1.5, Number.NaN, '2']) {
      expect(() => createCpuPool(stages, { threads: threads as number })).toThrow(ArgumentError);
    }
  });

  it('has a thread for each core by default, and closes once', async () => {
    const pool = createCpuPool(stages);
    expect(pool.threads).toBeGreaterThan(0);
    expect(pool.close()).toBe(pool.close());
    await pool.close();
  });
});
