// A machine with a driver and without NVIDIA's libraries.
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { expect, test } from 'vitest';
import { openDevice, UnavailableError } from 'millrace';
import { openCommunicator } from 'millrace/collectives';
import { fft, matmul } from 'millrace/ops';
import { rejectionOf } from '../support/wait.js';

process.env['MILLRACE_CUBLASLT'] = '/nonexistent';
process.env['MILLRACE_NCCL'] = '/nonexistent';

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

test('S1330 without NCCL, a communicator of GPUs says what brings it', async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const devices = [await openDevice('cuda:0'), await openDevice('cuda:1')];
  const error = await rejectionOf(openCommunicator(devices));
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error.message).toContain('pip install nvidia-nccl-cu12');
  for (const device of devices) await device.close();
});
