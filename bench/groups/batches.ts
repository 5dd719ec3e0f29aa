// Many small copies from page-locked memory: as one batch, copy by copy, and by the driver alone.
import type { CopyPair } from 'millrace';
import { onGpu, type Run, us } from '../suite/run.js';

const COUNT = 64;
const ROUNDS = 9;
const REPEATS = 20;

export async function batches(run: Run): Promise<void> {
  const { device } = run;
  const stream = device.createStream({ ordering: 'explicit' });
  for (const kib of [4, 64, 1024]) {
    const length = kib * 256;
    using array = stream.empty(COUNT * length);
    using memory = device.pinned(COUNT * length);
    memory.data.fill(1);
    const part = (n: number): readonly [start: number, end: number] => [n * length, (n + 1) * length];
    const pairs = Array.from({ length: COUNT }, (_, n): CopyPair => [array.subarray(...part(n)), memory.subarray(...part(n))]);
    const repeats = run.times(REPEATS);
    /** Seconds of a batch, until the calls have returned and until all is done. */
    const timed = async (submit: () => { readonly done: Promise<unknown> }): Promise<[call: number, done: number]> => {
      const sums: [number, number] = [0, 0];
      for (let n = 0; n < repeats; n++) {
        const start = performance.now();
        const { done } = submit();
        sums[0] += performance.now() - start;
        await done;
        sums[1] += performance.now() - start;
      }
      return [sums[0] / 1e3 / repeats, sums[1] / 1e3 / repeats];
    };
    const batched = () => timed(() => stream.copyBatch(pairs));
    const single = () => timed(() => pairs.map(([dst, src]) => stream.copy(dst as never, src as never)).at(-1)!);
    const answers = await run.takeTurns<string>(ROUNDS, {
      batched,
      'copy by copy': single,
      ...onGpu(run, { 'C++ driver': `batch ${kib} ${COUNT} ${repeats}` }),
    });
    const { batched: ours, ...others } = answers;
    for (const [at, name] of ['call', 'done'].entries()) {
      const values = (all: typeof ours) => ('absent' in all! ? all : all!.map((round) => us(round[at]!)));
      run.add(`batch.${name}.${kib}`, values(ours), Object.fromEntries(Object.entries(others).map(([side, all]) => [side, values(all)])));
    }
  }
  await stream.close();
}
