// `millrace demo`: a pipeline of uploads, kernels and downloads, first one item after the other, then overlapped.
import { lastValueFrom, of, toArray } from 'rxjs';
import { download, f32, i32, inout, kernel, launch, openDevice, overlap, upload } from '../index.js';

const ITEMS = 64;
const LENGTH = 1 << 18;
const STEPS = 200;

export async function demo(print: (line: string) => void): Promise<number> {
  const logistic = kernel('logistic', { x: inout(f32), steps: i32 }, ({ x, steps }, { i }) => {
    let value = x[i]!;
    for (let step = 0; step < steps; step++) value = 3.7 * value * (1 - value);
    x[i] = value;
  });
  await using device = await openDevice();
  await device.compile(logistic);
  const items = Array.from({ length: ITEMS }, (_, at) => new Float32Array(LENGTH).fill((at + 1) / (ITEMS + 1)));
  print(`${device.info.name}: ${ITEMS} items of ${(LENGTH * 4) / 2 ** 20} MiB, each uploaded, computed and downloaded.`);

  const run = async (depth: number): Promise<{ readonly ms: number; readonly sum: number }> => {
    const start = performance.now();
    const results$ = overlap(device, items, { depth }, (item, lane) =>
      of(item).pipe(
        upload(lane),
        launch(lane, logistic, LENGTH, (x) => ({ x, steps: STEPS })),
        download(lane),
      ),
    );
    const results = await lastValueFrom(results$.pipe(toArray()));
    return { ms: performance.now() - start, sum: results.reduce((sum, result) => sum + result[0]!, 0) };
  };
  await run(1);
  const alone = await run(1);
  const overlapped = await run(4);
  print(`one after the other   ${alone.ms.toFixed(1).padStart(8)} ms`);
  print(`overlapped, depth 4   ${overlapped.ms.toFixed(1).padStart(8)} ms   ${(alone.ms / overlapped.ms).toFixed(2)} times as fast`);
  const isSame = alone.sum === overlapped.sum;
  print(isSame ? 'Both have the same results.' : `The results differ: ${alone.sum} and ${overlapped.sum}.`);
  return isSame ? 0 : 1;
}
