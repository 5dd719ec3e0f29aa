// Kernels of the CPU device against loops in C++ with OpenMP. bench/kernels.ts has more kernels in more forms, and those of GPUs.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Case, CASES } from '../kernels/cases.js';
import type { NativeKernels } from '../kernels/native.js';
import { ms, type Run } from '../suite/run.js';

const NAMES = ['saxpy', 'matmul', 'reduction'];
const FORMS = [
  ['checked', 'typescript'],
  ['CUDA text', 'cuda'],
] as const;
/** Each side launches for this long, twice: the first launches find the caches full of the other side's data. */
const SIDE_MS = 10;
/** Threads of OpenMP look for more work for so long. */
const SPIN_MS = 30;
/** Of f32 sums in another order. */
const TOLERANCE = 1e-3;

export async function kernels(run: Run, native: NativeKernels | undefined): Promise<void> {
  if (native === undefined) return;
  for (const one of CASES.filter(({ name }) => NAMES.includes(name))) await measure(run, native, one);
}

async function measure(run: Run, native: NativeKernels, { name, size, prepare }: Case): Promise<void> {
  const { device } = run;
  const n = size.cpu;
  const stream = device.createStream({ ordering: 'explicit' });
  const { arrays, forms, reset, sum } = prepare(stream, n);
  await stream.synchronize();
  const expected = await native.measure(name, n, 1);
  const launches = Math.ceil(SIDE_MS / expected.ms);
  for (const [form, id] of FORMS) {
    const { kernel, launch } = forms[form];
    await device.compile(kernel);
    reset?.();
    launch();
    await stream.synchronize();
    const got = await sum();
    if (!(Math.abs(got - expected.sum) <= TOLERANCE * Math.abs(expected.sum)))
      throw new Error(`${name} (${form}) gives ${got}, the C++ loop ${expected.sum}.`);
    const some = async (): Promise<number> => {
      const start = performance.now();
      for (let k = 0; k < launches; k++) launch();
      await stream.synchronize();
      return (performance.now() - start) / 1e3 / launches;
    };
    await run.compare(`kernel.${name}.${id}`, {
      rounds: 15,
      unit: ms,
      ours: async () => {
        await some();
        return [await some()];
      },
      peers: {
        'C++ with OpenMP': async () => {
          const answer = await native.measure(name, n, launches);
          await sleep(SPIN_MS);
          return [answer.ms / 1e3];
        },
      },
    });
  }
  await stream.close();
  for (const array of arrays) array[Symbol.dispose]();
}
