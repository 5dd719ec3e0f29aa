// Bursts of tasks of a CPU pool, some aborted, some ending their thread. Nothing but the tasks keeps the process alive.
// Usage: pool-bursts.mjs <seed> <bursts>. Prints each task that broke a rule, then the number of tasks that settled and their kinds.
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

const NORMAL = ['value', 'value', 'pause', 'spin', 'exits after', 'throws after'];
const FAILING = ['throws', 'null', 'exits', 'throws in a timer', 'null in a timer', 'rejects', 'function', 'memory'];
const TASKS_OF_A_BURST = 24;
const pause = (ms) => new Promise((resolve) => void setTimeout(resolve, ms));

export async function task({ n, kind, runs }) {
  Atomics.add(runs, n, 1);
  if (kind === 'pause') await pause(3);
  if (kind === 'spin') for (const since = performance.now(); performance.now() - since < 3; );
  if (kind === 'exits after') setImmediate(() => process.exit(4));
  if (kind === 'throws after')
    setImmediate(() => {
      throw new Error('after');
    });
  if (kind === 'throws') throw new RangeError('in the task');
  if (kind === 'null') throw null;
  if (kind === 'exits') process.exit(3);
  if (kind.endsWith('in a timer'))
    await new Promise(() => {
      setTimeout(() => {
        throw kind.startsWith('null') ? null : new RangeError('in a timer');
      });
    });
  if (kind === 'rejects') {
    void Promise.reject(new RangeError('not handled'));
    await pause(1000);
  }
  if (kind === 'function') return () => n;
  if (kind === 'memory') for (const kept = []; ; ) kept.push(Array.from({ length: 100_000 }, Math.random));
  return n;
}

if (isMainThread) {
  const { createCpuPool } = await import('millrace');
  const [first, bursts] = process.argv.slice(2).map(Number);
  let seed = first;
  const below = (limit) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * limit);
  };
  process.on('warning', () => undefined);
  let [called, settled] = [0, 0];
  const seen = new Set();
  process.on('exit', (code) => console.log(`${settled} of ${called} settled, ${seen.size} kinds, exit code ${code}`));
  for (let burst = 0; burst < bursts; burst++) {
    const pool = createCpuPool(fileURLToPath(import.meta.url), { threads: 1 + below(2) });
    const runs = new Int32Array(new SharedArrayBuffer(4 * TASKS_OF_A_BURST));
    const check = (n, kind, signal, value, ...failure) => {
      settled++;
      seen.add(kind);
      const [error] = failure;
      const isAborted = signal?.aborted && error?.name === 'AbortError';
      // A thread that a task ends later may end during the next one.
      const isEnded = error?.message === 'after' || error?.message?.endsWith('code: 4');
      const isRight =
        isAborted || isEnded || (NORMAL.includes(kind) ? value === n : failure.length === 1 && (kind !== 'null' || error === null));
      if (!isRight || (isAborted ? runs[n] > 1 : runs[n] !== 1))
        console.log(`burst ${burst}: ${n} '${kind}' ran ${runs[n]} times:`, value, error);
    };
    const all = [];
    for (let n = 0; n < TASKS_OF_A_BURST; n++) {
      const kind = below(3) > 0 ? NORMAL[below(NORMAL.length)] : FAILING[below(FAILING.length)];
      const abort = below(3) === 0 ? new AbortController() : undefined;
      const later = [(call) => call(), queueMicrotask, setImmediate, setTimeout][below(4)];
      if (abort) later(() => abort.abort(), below(20));
      called++;
      const signal = abort?.signal;
      all.push(
        pool.run({ n, kind, runs }, { name: 'task', signal }).then(
          (value) => check(n, kind, signal, value),
          (error) => check(n, kind, signal, undefined, error),
        ),
      );
      if (below(4) === 0) await pause(below(6));
    }
    if (below(2) === 0) await pool.close();
    else await Promise.all(all);
  }
}
