// The rules between two devices, of two backends: each accesses the other's memory only through host memory. The CUDA backend
// runs over a driver library that computes on the CPU.
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { test } from 'vitest';
import { openDevice } from 'millrace';
import { twoBackendSuite } from './suite.js';

if (FAKE_DRIVER === undefined) {
  test('S801 the rules between two devices hold between two backends', (context) => {
    context.skip(FAKE_DRIVER_MISSING);
  });
} else {
  const supports = { timing: false, memoryLimit: false, interprocess: false, spinsPerSecond: 1e9, waitingStreams: 64 };
  twoBackendSuite({
    name: 'cpu-and-fake-cuda',
    spec: 'cpu',
    supports,
    open: (options) => openDevice('cpu', options),
    openOther: () => openDevice('cuda:0'),
  });
  twoBackendSuite({
    name: 'fake-cuda-and-cpu',
    spec: 'cuda:0',
    supports,
    open: (options) => openDevice('cuda:0', options),
    openOther: () => openDevice('cpu'),
  });
}
