// Runs owner-worker.mjs and resolves with its first message, or rejects with its error.
import { Worker } from 'node:worker_threads';

export function startOwner(spec, mode) {
  const worker = new Worker(new URL('./owner-worker.mjs', import.meta.url), { workerData: { spec, mode } });
  const message = new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`The worker ended early (code ${code}).`)));
  });
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  return { worker, message, exited };
}
