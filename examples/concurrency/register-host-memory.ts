// Memory that exists already is page-locked where it is, and let go of again. And a launch with all that CUDA's has: grid,
// block, shared memory, stream.
import assert from 'node:assert/strict';
import { cudaKernel, f32, inout, type Device } from 'millrace';

/** Each thread keeps its number in a place of the block's shared memory; barriers are for GPUs, so none reads another's. */
const squareInBlock = cudaKernel(
  'square_in_block',
  { x: inout(f32) },
  `extern "C" __global__ void square_in_block(float* x) {
  extern __shared__ float tile[];
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = x[i];
  x[i] = tile[threadIdx.x] * tile[threadIdx.x];
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
    const launch = stream.launch(squareInBlock, { grid: 4, block: 64, sharedBytes: 64 * 4 }, { x });
    stream.copy(pinned, x);
    using event = stream.record();
    await event.done;
    await launch.done;
    assert.ok(event.isComplete);
  }
  assert.deepEqual([data[0], data[63], data[64], data[255]], [0, 63 ** 2, 64 ** 2, 255 ** 2]);

  // Unlocked again, and an ordinary array over shared memory as before.
  await device.synchronize();
  data.fill(0);
  assert.equal(await x.item(2), 4);
  await stream.close();
}
