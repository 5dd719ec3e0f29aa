// What the calling thread pays for a launch, by what the stream keeps of its order, and the rate of launches that follow each other.
import { empty, ONE, saxpyOne } from '../suite/kernels.js';
import { runNative } from '../suite/native.js';
import { onGpu, type Run, secondsEach, us } from '../suite/run.js';

const ROUNDS = 60;
const LAUNCHES = 1000;
const SUSTAINED_ROUNDS = 7;

export async function launches(run: Run): Promise<void> {
  const { device } = run;
  const tracked = device.createStream({ ordering: 'tracked' });
  const explicit = device.createStream({ ordering: 'explicit' });
  // No array is used on two streams, which would order them.
  using x = tracked.ones(1);
  using y = tracked.zeros(1);
  using otherX = explicit.ones(1);
  using otherY = explicit.zeros(1);
  await device.compile(empty, saxpyOne);
  const burst = async (submit: () => void): Promise<number[]> => {
    await device.synchronize();
    const seconds = secondsEach(LAUNCHES, submit);
    await device.synchronize();
    return [seconds];
  };
  const [ofTracked, ofExplicit] = [
    { a: 2, x, y },
    { a: 2, x: otherX, y: otherY },
  ];
  const request = `burst ${LAUNCHES}`;
  const order: number[] = [];
  const explicitUs: number[] = [];
  await run.compare('burst.tracked', {
    rounds: ROUNDS,
    unit: us,
    ours: async (round) => {
      const [one] = await burst(() => void tracked.launch(saxpyOne, ONE, ofTracked));
      const [other] = await burst(() => void explicit.launch(saxpyOne, ONE, ofExplicit));
      if (round >= 0) order.push(us(one! - other!));
      if (round >= 0) explicitUs.push(us(other!));
      return [one!];
    },
    peers: onGpu(run, { 'C++ driver': request, CuPy: request, PyTorch: request, 'cuda.core': request }),
  });
  run.add('burst.explicit', explicitUs);
  run.add('burst.order', order);
  await run.compare('burst.empty', { rounds: ROUNDS, unit: us, ours: () => burst(() => void explicit.launch(empty, ONE, {})) });

  const count = run.times(run.isGpu ? 30_000 : 200_000);
  const backendAlone = (): number[] => {
    const [{ backend }] = runNative('backend_launch', ['cpu', '0', String(count)]) as [{ backend: { sustainedNs: number } }];
    return [backend.sustainedNs / 1e9];
  };
  const sustained = `sustained ${count}`;
  await run.compare('sustained', {
    rounds: SUSTAINED_ROUNDS,
    unit: us,
    ours: async () => {
      const start = performance.now();
      for (let n = 0; n < count; n++) explicit.launch(empty, ONE, {});
      await explicit.synchronize();
      return [(performance.now() - start) / 1e3 / count];
    },
    peers: run.isGpu
      ? { 'C++ driver': sustained, CuPy: sustained, PyTorch: sustained, 'cuda.core': sustained }
      : { 'backend alone': backendAlone },
  });
  await Promise.all([tracked.close(), explicit.close()]);
}
