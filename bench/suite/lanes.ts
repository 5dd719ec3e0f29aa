// Lanes of frames: three streams, each with page-locked memory for a frame in both directions and an array on the device.
import { cudaKernel, type Device, type DeviceArray, f32, i32, inout, type PinnedArray, type Stream } from 'millrace';
import type { Run, Side } from './run.js';

/** In MiB, as the ids of rows have them. */
export const FRAME_SIZES = ['0.25', '4', '16', '64'] as const;
export type FrameSize = (typeof FRAME_SIZES)[number];

export const increment = cudaKernel(
  'increment',
  { x: inout(f32), length: i32 },
  `extern "C" __global__ void increment(float* x, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < length) x[i] += 1;
  }`,
);

export interface FrameLane {
  readonly stream: Stream;
  readonly source: PinnedArray<'f32'>;
  readonly target: PinnedArray<'f32'>;
  readonly x: DeviceArray<'f32'>;
}

export const LANES = 3;

export function openLanes(device: Device, length: number, ordering: 'tracked' | 'explicit', count: number = LANES): FrameLane[] {
  return Array.from({ length: count }, () => {
    const stream = device.createStream({ ordering });
    return { stream, source: device.pinned(length), target: device.pinned(length), x: stream.zeros(length) };
  });
}

export async function closeLanes(lanes: readonly FrameLane[]): Promise<void> {
  for (const { stream, source, target, x } of lanes) {
    for (const array of [source, target, x]) array[Symbol.dispose]();
    await stream.close();
  }
}

export const lengthOf = (size: FrameSize): number => Number(size) * 2 ** 18;

/** So many frames that `mib` move in one direction; less on the CPU device, and at most `most`. */
export function frameCount(run: Run, size: FrameSize, mib: number, most: number): number {
  const moved = (run.isGpu ? mib : mib / 6) / Number(size);
  return Math.max(2 * LANES, run.times(Math.min(most, Math.round(moved))));
}

/** The peers that have the request, each asked for `count` frames: on a GPU those named, on the CPU device threads of C++. */
export function framePeers(run: Run, what: string, size: FrameSize, count: number, names: readonly string[]): Record<string, Side> {
  const request = `${what} ${Number(size) * 1024} ${count}`;
  const present = run.isGpu ? names : ['C++ threads'];
  return Object.fromEntries(present.map((name) => [name, request]));
}

export const GPU_PEERS = ['C++ driver', 'CuPy', 'PyTorch'] as const;
