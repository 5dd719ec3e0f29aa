// A foreign library in the middle of a stream: a kernel before it, a kernel after it, and no wait of the host in between. The library is
// cuBLAS or cuFFT in a real program. Here it is what every machine has: the CUDA driver on a GPU, libc on the CPU device, where addresses are
// host addresses. An FFI package calls it; any one that takes addresses as bigints will do.
import assert from 'node:assert/strict';
import koffi from 'koffi';
import type { Device } from 'millrace';
import { addTo } from './kernels.js';

/** Copies bytes, in the order of the stream. */
type Copy = (stream: bigint, to: bigint, from: bigint, bytes: number) => void;

function libraryOf(device: Device): Copy {
  if (device.info.backend === 'cpu') {
    const memcpy = koffi.load('libc.so.6').func('void *memcpy(uintptr_t to, uintptr_t from, size_t bytes)');
    return (_stream, to, from, bytes) => void memcpy(to, from, bytes);
  }
  const driver = koffi.load(process.env['MILLRACE_CUDA_DRIVER'] ?? 'libcuda.so.1');
  const memcpy = driver.func('int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, uintptr_t stream)');
  return (stream, to, from, bytes) => assert.equal(memcpy(to, from, bytes, stream), 0);
}

export async function run([device]: readonly [Device]): Promise<void> {
  const n = 4096;
  await device.compile(addTo);
  const copy = libraryOf(device);
  const stream = device.createStream({ label: 'work' });
  using x = stream.zeros(n);
  using y = stream.zeros(n);

  for (let iteration = 1; iteration <= 3; iteration++) {
    stream.launch(addTo, n, { x, value: 1 });
    // The arrays order this among streams, as the arguments of a launch do. `pointers` has their names.
    stream.external({ reads: { x }, writes: { y }, label: 'memcpy' }, (raw) =>
      copy(raw.stream, raw.pointers.y, raw.pointers.x, x.byteLength),
    );
    stream.launch(addTo, n, { x: y, value: 0.5 });
    assert.ok((await y.read()).every((value) => value === iteration + 0.5));
  }
  await stream.close();
}
