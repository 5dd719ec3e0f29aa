// Operations on arrays: until the result is there, alone and of several in a row, and what a call costs the calling thread.
import type { DeviceArray } from 'millrace';
import { add, argmax, argsort, astype, cumsum, exp, fft, generator, matmul, rfft, sort, sum, topk } from 'millrace/ops';
import { IN_A_ROW, isShort, OPERATIONS } from '../suite/rows.js';
import { ms, type Run, secondsEach, secondsOf, type Side, us } from '../suite/run.js';

const ROUNDS = 7;
const BURST = 200;
/** Calls after which V8 has compiled what they need, and what came with them. */
const WARM_CALLS = 10_000;
const LARGEST = 100;
/** Products of other types than f32. */
const TYPES = { matmulHalf: 'f16', matmulBrain: 'bf16', matmulDouble: 'f64' } as const;
/** Of the operands of a size; the others are vectors. Complex numbers have a last axis of their two parts. */
const SHAPES: Readonly<Record<string, (size: number) => readonly number[]>> = {
  matmul: (size) => [size, size],
  matmulHalf: (size) => [size, size],
  matmulBrain: (size) => [size, size],
  matmulDouble: (size) => [size, size],
  fft: (size) => [size, 2],
  fftRows: (size) => [1000, size / 1000, 2],
  fftPlane: (size) => [size, size, 2],
};

export async function operations(run: Run): Promise<void> {
  const { device } = run;
  const { stream } = device;
  const numbers = generator(1);
  const peers = (request: string): Readonly<Record<string, Side>> => (run.isGpu ? { CuPy: request, PyTorch: request } : { NumPy: request });
  {
    using x = numbers.uniform(1000, { device });
    const ours = async (): Promise<number[]> => {
      await device.synchronize();
      return [secondsEach(BURST, () => add(x, x)[Symbol.dispose]())];
    };
    const sides = { rounds: ROUNDS, unit: us, ours, peers: peers(`operation.call add 1000 ${BURST}`) };
    await run.compare('operation.first', sides);
    for (let calls = 0; calls < WARM_CALLS; calls += BURST) await ours();
    await run.compare('operation.call', sides);
  }
  for (const [name, { sizes }] of Object.entries(OPERATIONS)) {
    for (const size of sizes) {
      const isLarge = !isShort(size);
      // Seconds each on a processor.
      const type = name in TYPES ? TYPES[name as keyof typeof TYPES] : undefined;
      if ((isLarge || (type !== undefined && type !== 'f64')) && !run.isGpu) continue;
      const square = [size, size];
      const shape = SHAPES[name]?.(size) ?? [size];
      using x = numbers.uniform(shape, { device });
      using y = numbers.uniform(name === 'matmul' ? square : 1, { device });
      using cast = astype(type === undefined ? y : x, type ?? 'f32');
      const rows = size % 1000 === 0 && shape.length === 1 ? x.reshape([1000, size / 1000]) : x;
      const calls: Readonly<Record<string, () => DeviceArray>> = {
        add: () => add(x, x),
        exp: () => exp(x),
        sum: () => sum(x),
        columns: () => sum(rows, { axis: 0 }),
        argmax: () => argmax(x),
        cumsum: () => cumsum(x),
        sort: () => sort(x),
        argsort: () => argsort(x),
        topk: () => {
          const { values, indices } = topk(x, LARGEST);
          indices[Symbol.dispose]();
          return values;
        },
        matmul: () => matmul(x, y),
        matmulHalf: () => matmul(cast, cast),
        matmulBrain: () => matmul(cast, cast),
        matmulDouble: () => matmul(cast, cast),
        fft: () => fft(x),
        fftRows: () => fft(x),
        fftPlane: () => fft(x, { axis: [0, 1] }),
        rfft: () => rfft(x),
      };
      const row = async (): Promise<number> => {
        for (let n = 0; n < IN_A_ROW; n++) calls[name]!()[Symbol.dispose]();
        await stream.record().done;
        return IN_A_ROW;
      };
      // V8 compiles what a call needs after some hundred of them.
      const until = performance.now() + run.times(200);
      while (performance.now() < until) await row();
      const count = run.times(isLarge ? 3 : 10);
      const alone = (): Promise<number[]> =>
        secondsOf(count, async () => {
          using result = calls[name]!();
          await stream.record().done;
          return result.length;
        });
      await run.compare(`operation.${name}.${size}`, {
        rounds: ROUNDS,
        unit: ms,
        ours: alone,
        peers: peers(`operation ${name} ${size} ${count}`),
      });
      const times = run.isGpu && !isLarge ? 3 : 1;
      const ours = async (): Promise<number[]> => (await secondsOf(times, row)).map((seconds) => seconds / IN_A_ROW);
      await run.compare(`operation.row.${name}.${size}`, {
        rounds: ROUNDS,
        unit: ms,
        ours,
        peers: peers(`operation.row ${name} ${size} ${times} ${IN_A_ROW}`),
      });
    }
  }
}
