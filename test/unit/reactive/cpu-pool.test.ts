import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
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
    // Each round the thread is idle for a moment; asleep in piscina's default way it would never tick.
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

  it('has a thread for each core unless told otherwise, and closes once', async () => {
    const pool = createCpuPool(stages);
    expect(pool.threads).toBeGreaterThan(0);
    expect(pool.close()).toBe(pool.close());
    await pool.close();
  });
});
