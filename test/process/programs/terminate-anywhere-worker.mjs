// A worker of terminate-anywhere.mjs. Node 20 aborts the process when a worker is terminated just as it begins to evaluate a module with a
// top-level await, so this module has none.
import { createRequire } from 'node:module';
import { workerData } from 'node:worker_threads';

const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Goes through the phases, and says where it is in `shared[0]`. */
async function live({ spec, only, nth, shared, names, workingMs, addon }) {
  const enter = (phase) => {
    Atomics.store(shared, 0, names.indexOf(phase));
    Atomics.notify(shared, 0);
  };
  enter(only === 'addon' ? 'addon' : 'loading');
  if (only === 'addon') {
    createRequire(import.meta.url)(addon);
    return;
  }
  const { cudaKernel, inout, openDevice, u32 } = await import('millrace');
  const { checkDevice, ONE, spin } = await import('./work.mjs');
  const text = (round) => `extern "C" __global__ void fresh(unsigned* x) { x[0] = ${nth}u + ${round}u; }`;
  for (let round = 0; ; round++) {
    // Referenced until the device has closed, which frees them. Then they are garbage, about which nobody is warned.
    const arrays = [];
    enter('opening');
    const device = await openDevice(spec);
    if (only === 'building') {
      enter('building');
      await device.compile(cudaKernel('fresh', { x: inout(u32) }, text(round * 1_000_000)));
    } else {
      await checkDevice(device);
      const turns = spec.startsWith('cuda') ? 500_000 : 50_000;
      for (const stream of [device.createStream(), device.createStream()]) {
        const x = stream.zeros(1, 'u32');
        const out = device.pinned(1, 'u32');
        for (let n = 0; n < 400; n++) stream.launch(spin, ONE, { x, turns });
        stream.copy(out, x);
        arrays.push(x, out);
      }
      enter('working');
      // As long as the owner may wait for; the work goes on meanwhile.
      if (only === 'working') await after(2 * workingMs);
    }
    enter('closing');
    if ((nth + round) % 2 === 0) await device.close();
    else await device.destroy();
    arrays.length = 0;
    globalThis.gc?.();
  }
}

void live(workerData);
