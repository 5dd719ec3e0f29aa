// Copies of ordinary typed arrays to a device and back: as users write them first, handed over, and borrowed.
import { firstRuns } from './first-runs.js';
import { gigabytesPerSecond, onGpu, type Run, type Side } from '../suite/run.js';
import type { NativeKernels } from '../kernels/native.js';

const MIB = 256;
const BYTES = MIB * 2 ** 20;
const ROUNDS = 7;

export async function arrays(run: Run, native: NativeKernels | undefined): Promise<void> {
  const { device } = run;
  const { stream } = device;
  const unit = gigabytesPerSecond(BYTES);
  using dst = device.empty(BYTES / 4);
  const fresh = (): Float32Array<ArrayBuffer> => new Float32Array(BYTES / 4).fill(1);
  const seconds = async (submit: () => { readonly done: PromiseLike<unknown> }): Promise<number[]> => {
    await device.synchronize();
    const start = performance.now();
    await submit().done;
    return [(performance.now() - start) / 1e3];
  };
  const python = (request: string): Readonly<Record<string, Side>> => ({ CuPy: request, PyTorch: request });
  /** The copy that C++ makes within host memory, which is all that a copy to the CPU device is. */
  const inHost: Readonly<Record<string, Side>> =
    native === undefined ? {} : { 'C++ with OpenMP': async () => [(await native.measure('copy', BYTES / 4, 2)).ms / 1e3] };
  const peersOf = (request: string) => (run.isGpu ? { ...python(request), 'C++ driver': request.split(' new')[0]! } : inHost);

  const { upSeconds } = await firstRuns(run);
  for (const [mib, { ours, peers }] of upSeconds) {
    const speed = gigabytesPerSecond(mib * 2 ** 20);
    const others = Object.entries(peers).map(([name, one]) => [name, Array.isArray(one) ? one.map(speed) : one] as const);
    run.add(`up.first.${mib}`, ours.map(speed), Object.fromEntries(others));
  }

  let data = fresh();
  const held: number[] = [];
  const ours = async (round: number): Promise<number[]> => {
    data = fresh();
    return seconds(() => {
      const start = performance.now();
      const copy = stream.copy(dst, data);
      if (round >= 0) held.push(((performance.now() - start) * 32) / MIB);
      return copy;
    });
  };
  await run.compare('up.new.256', { rounds: ROUNDS, unit, ours, peers: peersOf(`up ${MIB} new`) });
  run.add('up.held', held);
  const again = { rounds: ROUNDS, unit, peers: onGpu(run, python(`up ${MIB} same`)) };
  await run.compare('up.again.256', {
    ...again,
    ours: () => seconds(() => stream.copy(dst, data)),
    ...(run.isGpu ? {} : { peers: inHost }),
  });
  const transfer = async (): Promise<number[]> => {
    const given = fresh();
    return seconds(() => stream.copy(dst, given, { transfer: true }));
  };
  await run.compare('up.transfer.256', { rounds: ROUNDS, unit, ours: transfer });
  const shared = new Float32Array(new SharedArrayBuffer(BYTES)).fill(1);
  await run.compare('up.shared.256', { rounds: ROUNDS, unit, ours: () => seconds(() => stream.copy(dst, shared)) });
  await run.compare('down.new.256', {
    rounds: ROUNDS,
    unit,
    ours: () => seconds(() => ({ done: dst.read() })),
    peers: onGpu(run, python(`down ${MIB} new`)),
  });
  await run.compare('down.into.256', {
    rounds: ROUNDS,
    unit,
    ours: () => seconds(() => ({ done: dst.read({ into: data }) })),
    peers: run.isGpu ? python(`down ${MIB} same`) : inHost,
  });
}
