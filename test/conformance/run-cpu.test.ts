// The chapters about the runtime on the CPU device, while no other test uses the cores. run-cpu-kernels has those about kernels.
import os from 'node:os';
import { openDevice } from 'millrace';
import { CPU_SUPPORTS } from '../support/target.js';
import { runtimeSuite } from './suite.js';

runtimeSuite({
  name: 'cpu',
  spec: 'cpu',
  // With a seed the device delays its operations.
  supports: { ...CPU_SUPPORTS, timing: os.availableParallelism() >= 2 && process.env['MILLRACE_CPU_SEED'] === undefined },
  open: (options) => openDevice('cpu', options),
});
