// Memory that exists already is page-locked where it is, and let go of again. And a launch with all that CUDA's has: grid,
// block, shared memory, stream.
import assert from 'node:assert/strict';
import { cudaKernel, f32, inout, type Device } from 'millrace';

const reverseInBlock = cudaKernel(
  'reverse_in_block',
  { x: inout(f32) },
  `extern "C" __global__ void reverse_in_block(float* x) {
  extern __shared__ float tile[];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  x[i] = tile[blockDim.x - 1 - threadIdx.x];
}`,
);

export async function run([device]: readonly [Device]): Promise<void> {
  const data = new Float32Array(new SharedArrayBuffer(4 * 256));
  data.forEach((_, n) => (data[n] = n));

  const stream = device.createStream();
  using x = stream.empty(256);
  {
    using pinned = device.pin(data);
    stream.copy(x, pinned);
    stream.launch(reverseInBlock, { grid: 4, block: 64, sharedBytes: 64 * 4 }, { x });
    stream.copy(pinned, x);
    using event = stream.record();
    await event.done;
    assert.ok(event.isComplete);
  }
  assert.deepEqual([data[0], data[63], data[64], data[255]], [63, 0, 127, 192]);

  // Unlocked again, and an ordinary array over shared memory as before.
  await device.synchronize();
  data.fill(0);
  assert.equal(await x.item(0), 63);
  await stream.close();
}
