// A worker thread that ends while a compilation runs on Node's thread pool, again and again: what completes it finds an
// environment that runs no JavaScript any more.
import { createRequire } from 'node:module';
import { Worker, isMainThread } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';

const [addon, rounds] = process.argv.slice(2);
const { compileNvrtc } = createRequire(import.meta.url)(addon);

if (isMainThread) {
  for (let round = 0; round < Number(rounds); round++) {
    const worker = new Worker(fileURLToPath(import.meta.url), { argv: [addon] });
    await new Promise((resolve) => worker.once('exit', resolve));
  }
  console.log(`ended ${rounds} times`);
} else {
  // It rejects where there is no NVRTC; either way it is under way when the thread ends.
  for (let n = 0; n < 4; n++) compileNvrtc('extern "C" __global__ void k() {}', 'k.cu', [], [], [], []).catch(() => undefined);
  process.exit();
}
