// A machine with a driver and without NVIDIA's libraries.
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { expect, test } from 'vitest';
import { openDevice } from 'millrace';
import { fft, matmul } from 'millrace/ops';

process.env['MILLRACE_CUBLASLT'] = '/nonexistent';

test('S1125 without the libraries, kernels multiply and transform', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  await using device = await openDevice('cuda:0');
  expect(device.info.libraries).toEqual([]);
  using z = device.from([1, 0, 3, 0], { shape: [2, 2] });
  using spectrum = fft(z);
  expect(await spectrum.read()).toEqual(Float32Array.of(4, 0, -2, 0));
  using a = device.from([1, 2, 3, 4], { shape: [2, 2] });
  using c = matmul(a, a);
  expect(await c.read()).toEqual(Float32Array.of(7, 10, 15, 22));
});
