// The rules between two devices, of two backends: each accesses the other's memory only through host memory. The CUDA backend
// runs over a driver library that computes on the CPU.
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { test } from 'vitest';
import { openDevice } from 'millrace';
import { CPU_SUPPORTS } from '../support/target.js';
import { twoBackendSuite } from './suite.js';

if (FAKE_DRIVER === undefined) {
  test('S801 the rules between two devices hold between two backends', (context) => {
    context.skip(FAKE_DRIVER_MISSING);
  });
} else {
  twoBackendSuite({
    name: 'cpu-and-fake-cuda',
    spec: 'cpu',
    supports: CPU_SUPPORTS,
    open: (options) => openDevice('cpu', options),
    openOther: () => openDevice('cuda:0'),
  });
  twoBackendSuite({
    name: 'fake-cuda-and-cpu',
    spec: 'cuda:0',
    supports: CPU_SUPPORTS,
    open: (options) => openDevice('cuda:0', options),
    openOther: () => openDevice('cpu'),
  });
}
