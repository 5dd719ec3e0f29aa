import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { AbortError, ArgumentError, cpuTasks, createCpuPool, StateError, UnavailableError } from 'millrace';
import { move } from 'piscina';

interface Stages {
  addOne(data: Uint8Array): number;
  idleTicks(): Promise<number>;
  echo<T>(value: T): T;
  thrown(kind: string): never;
  spin(begun: Int32Array): never;
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-pool-'));
const stages = join(folder, 'stages.mjs');
writeFileSync(
  stages,
  `import { threadId } from 'node:worker_threads';
import { readFileSync } from 'node:fs';
import { ArgumentError, StateError } from ${JSON.stringify(import.meta.resolve('millrace'))};
let ticks = 0;
setInterval(() => ticks++, 1).unref();
export function addOne(data) { data.forEach((value, at) => { data[at] = value + 1; }); return threadId; }
export function idleTicks() { return ticks; }
export function echo(value) { return value; }
export const throws = {
  own() { throw Object.assign(new (class Own extends RangeError { name = 'Own'; })('own', { cause: new TypeError('why') }), { code: 'E_OWN', call() {} }); },
  library() { throw new StateError('ERR_MILLRACE_STATE', 'state', { stream: 'a' }); },
  argument() { throw new ArgumentError('ERR_MILLRACE_ARGUMENT', 'argument', { argument: 'n', value: () => 1, limit: 3 }); },
  exception() { throw new DOMException('exception', 'NotFoundError'); },
  all() { return Promise.any([Promise.reject(new RangeError('one')), Promise.reject(2)]); },
  file() { return readFileSync('absent'); },
  nothing() { return Promise.reject(null); },
  text() { throw 'text'; },
  call() { throw () => 1; },
  result() { return { deep: [{ call: () => 1 }] }; },
  symbol() { return Symbol('result'); },
  detached() { const buffer = new ArrayBuffer(8); structuredClone(buffer, { transfer: [buffer] }); return buffer; },
  late() { return new Promise(() => setTimeout(() => { throw new DOMException('late', 'NotFoundError'); })); },
  lateNothing() { return new Promise(() => setTimeout(() => { throw undefined; })); },
};
export function thrown(kind) { return throws[kind](); }
export default { one: 1 };
export function spin(begun) { Atomics.store(begun, 0, 1); for (;;); }
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

  it('rejects with what a task throws, and with what ends its thread', async () => {
    await using pool = createCpuPool(stages, { threads: 1 });
    const thrown = (kind: string): Promise<unknown> =>
      cpuTasks<Stages>(pool)
        .run('thrown', kind)
        .then(
          (value) => expect.unreachable(`${kind} resolved with ${String(value)}`),
          (error: unknown) => error,
        );
    const own = await thrown('own');
    expect(own).toBeInstanceOf(RangeError);
    expect(own).toMatchObject({ name: 'Own', message: 'own', code: 'E_OWN', stack: expect.stringContaining('stages.mjs') });
    const { cause } = own as Error;
    expect(cause).toBeInstanceOf(TypeError);
    expect(cause).toMatchObject({ message: 'why', stack: expect.stringContaining('stages.mjs') });
    const library = await thrown('library');
    expect(library).toBeInstanceOf(StateError);
    expect(library).not.toBeInstanceOf(UnavailableError);
    expect(library).toMatchObject({ name: 'StateError', code: 'ERR_MILLRACE_STATE', message: 'state', stream: 'a' });
    expect(await thrown('argument')).toBeInstanceOf(ArgumentError);
    expect(await thrown('argument')).toMatchObject({ argument: 'n', limit: 3 });
    expect(await thrown('exception')).toBeInstanceOf(DOMException);
    expect(await thrown('exception')).toMatchObject({ name: 'NotFoundError', code: 8, stack: expect.stringContaining('stages.mjs') });
    const all = await thrown('all');
    expect(all).toBeInstanceOf(AggregateError);
    expect((all as AggregateError).errors).toEqual([new RangeError('one'), 2]);
    expect(await thrown('file')).toMatchObject({ code: 'ENOENT', syscall: 'open', path: 'absent' });
    expect(await thrown('nothing')).toBeNull();
    expect(await thrown('text')).toBe('text');
    expect(await thrown('call')).toMatchObject({ message: expect.stringContaining('() => 1') });
    for (const kind of ['result', 'symbol', 'detached']) {
      expect(await thrown(kind)).toBeInstanceOf(DOMException);
      expect(await thrown(kind)).toMatchObject({ name: 'DataCloneError', message: expect.stringContaining("The result of 'thrown'") });
    }
    expect(await thrown('late')).toMatchObject({ name: 'NotFoundError', message: 'late' });
    expect(await thrown('lateNothing')).toMatchObject({ message: 'undefined' });
    await expect(pool.run(() => 1, { name: 'echo' })).rejects.toMatchObject({ name: 'DataCloneError' });
  });

  it('runs the tasks that wait when others are aborted', async () => {
    await using pool = createCpuPool(stages, { threads: 1 });
    const tasks = cpuTasks<Stages>(pool);
    const [running, waiting] = [new AbortController(), new AbortController()];
    const begun = new Int32Array(new SharedArrayBuffer(4));
    const ends = [
      tasks.run('spin', begun, { signal: running.signal }),
      tasks.run('spin', begun, { signal: waiting.signal }),
      tasks.run('spin', begun, { signal: AbortSignal.abort('before') }),
    ].map((task) => task.catch((error: unknown) => error));
    const last = tasks.run('echo', 4);
    while (Atomics.load(begun, 0) === 0) await new Promise(setImmediate);
    waiting.abort('second');
    running.abort('first');
    expect(await last).toBe(4);
    const errors = await Promise.all(ends);
    expect(errors.map((error) => error instanceof AbortError)).toEqual([true, true, true]);
    expect(errors.map((error) => (error as Error).cause)).toEqual(['first', 'second', 'before']);
    const signal = { aborted: true } as unknown as AbortSignal;
    await expect(tasks.run('echo', 4, { signal })).rejects.toMatchObject({ argument: 'signal' });
  });

  it('transfers what was moved', async () => {
    await using pool = createCpuPool(stages, { threads: 1 });
    const bytes = new Uint8Array([1, 2, 3]);
    expect(await pool.run(move(bytes), { name: 'echo' })).toEqual(new Uint8Array([1, 2, 3]));
    expect(bytes.byteLength).toBe(0);
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

  it('keeps an idle thread while the time of fake timers moves on', async () => {
    vi.useFakeTimers();
    try {
      await using pool = createCpuPool(stages, { threads: 1 });
      const first = await pool.run(new Uint8Array(1), { name: 'addOne' });
      for (let n = 0; n < 3; n++) {
        vi.advanceTimersByTime(60_000);
        expect(await pool.run(new Uint8Array(1), { name: 'addOne' })).toBe(first);
      }
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('calls no inherited function of a module', async () => {
    await using pool = createCpuPool(stages, { threads: 1 });
    for (const name of ['absent', 'one', 'toString', 'constructor', '__proto__', 'hasOwnProperty'])
      await expect(pool.run(1, { name })).rejects.toMatchObject({ name: 'ArgumentError', message: expect.stringContaining(`'${name}'`) });
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
