// What this machine has and lacks for this package.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Finding } from './workers/machine-report.js';

export type { Finding } from './workers/machine-report.js';

/** What `diagnostics` resolves to. */
export interface Diagnostics {
  /** In the order in which `npx millrace doctor` prints them. */
  readonly findings: readonly Finding[];
}

/**
 * Looks at the system, the addon, the driver, GPUs, compilers, folders and limits: `wp.print_diagnostics()`, `cupy.show_config()`. Opens no
 * device, and takes about 0.3 s in a thread of its own. Never rejects for what it finds: a missing part is a finding with a remedy.
 * @example for (const { name, status, value } of (await diagnostics()).findings) console.log(name, status, value);
 */
export async function diagnostics(): Promise<Diagnostics> {
  const worker = new Worker(new URL('./workers/machine-report.cjs', import.meta.url));
  try {
    const [findings] = (await once(worker, 'message')) as [readonly Finding[]];
    return { findings };
  } finally {
    await worker.terminate();
  }
}
