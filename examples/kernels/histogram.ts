// How often does each byte occur? Many threads count into few bins, so they must add atomically.
//
// First a thread a byte and one set of bins: right, and slow where many threads meet at one bin, since their additions
// happen one after the other. Then every block counts into bins of its own, in shared memory, and adds these to the
// common ones at the end: 256 additions a block instead of one a byte. Its threads take bytes a whole grid apart, so that
// a few blocks serve an array of any length.
import { cudaKernel, i32, inout, input, kernel, u32, u8, type Device } from 'millrace';
import { compare, FORMS, type Outcome, runAlone, someNumbers, timed } from './lesson.js';

export const BINS = 256;

export const histogram = kernel('histogram', { data: input(u8), bins: inout(u32) }, ({ data, bins }, { i, atomicAdd }) => {
  atomicAdd(bins, data[i]!, 1);
});

export const histogramShared = kernel(
  'histogram_shared',
  { data: input(u8), bins: inout(u32) },
  ({ data, bins }, { threadIdx, globalIdx, blockDim, gridDim, shared, syncthreads, atomicAdd, count }) => {
    const own = shared(u32, count);
    for (let bin = threadIdx.x; bin < count; bin += blockDim.x) own[bin] = 0;
    syncthreads();
    for (let at = globalIdx.x; at < data.length; at += gridDim.x * blockDim.x) atomicAdd(own, data[at]!, 1);
    syncthreads();
    for (let bin = threadIdx.x; bin < count; bin += blockDim.x) atomicAdd(bins, bin, own[bin]!);
  },
  { constants: { count: BINS } },
);

export const histogramText = cudaKernel(
  'histogram',
  { data: input(u8), bins: inout(u32), n: i32 },
  `extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[data[i]], 1u);
}`,
);

export const histogramSharedText = cudaKernel(
  'histogram_shared',
  { data: input(u8), bins: inout(u32), n: i32 },
  `#define BINS ${BINS}
extern "C" __global__ void histogram_shared(const unsigned char* data, unsigned* bins, int n) {
  __shared__ unsigned own[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) own[bin] = 0;
  __syncthreads();
  for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x) atomicAdd(&own[data[at]], 1u);
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) atomicAdd(&bins[bin], own[bin]);
}`,
);

export function reference(data: Uint8Array): Uint32Array {
  const bins = new Uint32Array(BINS);
  for (const value of data) bins[value]!++;
  return bins;
}

export async function run(device: Device): Promise<readonly Outcome[]> {
  const n = 1_000_003;
  const bytes = Uint8Array.from(someNumbers(n), (value) => BINS * value ** 2); // low values are the most
  const expected = reference(bytes);
  const few = { grid: 64, block: 256 };
  await Promise.all([histogram, histogramShared, histogramText, histogramSharedText].map((one) => device.compile(one)));

  const outcomes: Outcome[] = [];
  using data = device.from(bytes);
  for (const where of ['global', 'shared'] as const) {
    for (const form of FORMS) {
      using bins = device.zeros(BINS, 'u32');
      const { stream } = device;
      const ms = await timed(device, () => {
        if (where === 'global' && form === 'TypeScript') stream.launch(histogram, n, { data, bins });
        else if (where === 'global') stream.launch(histogramText, { threads: n, block: 256 }, { data, bins, n });
        else if (form === 'TypeScript') stream.launch(histogramShared, few, { data, bins });
        else stream.launch(histogramSharedText, few, { data, bins, n });
      });
      outcomes.push(compare({ kernel: `histogram, ${where}`, form, ms }, await bins.read(), expected, 0));
    }
  }
  return outcomes;
}

await runAlone(import.meta.url, run);
