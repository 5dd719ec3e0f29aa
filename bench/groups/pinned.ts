// Copies of page-locked memory, by the clock of the host and by events of the device.
import { elapsed } from 'millrace';
import { gigabytesPerSecond, onGpu, type Run, secondsOf } from '../suite/run.js';

const ROUNDS = 7;

export async function pinned(run: Run): Promise<void> {
  const { device } = run;
  const stream = device.createStream({ ordering: 'explicit' });
  for (const mib of [1, 256]) {
    const bytes = mib * 2 ** 20;
    const count = mib === 1 ? 50 : 3;
    using array = stream.empty(bytes / 4);
    using memory = device.pinned(bytes / 4);
    memory.data.fill(1);
    for (const direction of ['up', 'down'] as const) {
      const copy = () => (direction === 'up' ? stream.copy(array, memory) : stream.copy(memory, array));
      const byEvents = async (): Promise<number[]> => {
        const seconds: number[] = [];
        for (let n = 0; n < count; n++) {
          using start = stream.record({ timing: true });
          copy();
          using end = stream.record({ timing: true });
          seconds.push((await elapsed(start, end)) / 1e3);
        }
        return seconds;
      };
      for (const clock of ['wall', 'events'] as const) {
        const request = `pinned ${direction} ${mib} ${clock} ${count}`;
        await run.compare(`pinned.${clock === 'wall' ? '' : 'events.'}${direction}.${mib}`, {
          rounds: ROUNDS,
          unit: gigabytesPerSecond(bytes),
          ours: () => (clock === 'wall' ? secondsOf(count, () => copy().done) : byEvents()),
          peers: onGpu(run, { 'C++ driver': request, CuPy: request, PyTorch: request }),
        });
      }
    }
  }
  await stream.close();
}
