// What this machine has and lacks for this package.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { UnavailableError } from './core/base/errors.js';
import { checkPackage } from './native/addon-place.js';
import { notStarted } from './workers/device-worker-handle.js';
import type { Finding } from './workers/machine-report.js';

export type { Finding } from './workers/machine-report.js';

/** What `diagnostics` resolves to. */
export interface Diagnostics {
  /** In the order in which `npx millrace doctor` prints them. */
  readonly findings: readonly Finding[];
}

/**
 * Looks at the system, the addon, the driver, GPUs, compilers, folders and limits: `wp.print_diagnostics()`, `cupy.show_config()`. Opens no
 * device, and takes about 0.3 s in a thread of its own. Never rejects for what it finds: a missing part is a finding with a
 * remedy. Rejects with UnavailableError if no thread can be started.
 * @example for (const { name, status, value } of (await diagnostics()).findings) console.log(name, status, value);
 */
export async function diagnostics(): Promise<Diagnostics> {
  try {
    checkPackage();
  } catch (error) {
    const { message, help } = error as UnavailableError;
    const [value = message] = message.split('\n');
    return { findings: [{ name: 'millrace', status: 'error', value, remedy: help.join(' ') }] };
  }
  const ended = new AbortController();
  let worker: Worker | undefined;
  try {
    worker = new Worker(new URL('./workers/machine-report.cjs', import.meta.url));
    // A thread that begins and ends without a word lacks descriptors or memory.
    const code = 'ERR_WORKER_INIT_FAILED';
    worker.once('exit', (status) => ended.abort(Object.assign(new Error(`it ended with exit code ${status}`), { code })));
    const [findings] = (await once(worker, 'message', { signal: ended.signal })) as [readonly Finding[]];
    return { findings };
  } catch (error) {
    throw notStarted(ended.signal.aborted ? ended.signal.reason : error, 'thread of diagnostics()');
  } finally {
    await worker?.terminate();
  }
}
