// The chapters about kernels on the CPU device. They mostly wait for the compiler, so another file runs beside them.
import { openDevice } from 'millrace';
import { kernelSuite } from './suite.js';

kernelSuite({
  name: 'cpu',
  spec: 'cpu',
  supports: { timing: false, memoryLimit: false, interprocess: false, spinsPerSecond: 1e9, waitingStreams: 64 },
  open: (options) => openDevice('cpu', options),
});
