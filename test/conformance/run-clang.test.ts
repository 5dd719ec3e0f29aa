// The chapters about kernels on the CPU device when clang compiles them: not one rule may depend on whose compiler it is.
import { spawnSync } from 'node:child_process';
import { test } from 'vitest';
import { openDevice } from 'millrace';
import { kernelSuite } from './suite.js';

if (spawnSync('clang++', ['--version']).status === 0) {
  kernelSuite({
    name: 'cpu, clang',
    spec: 'cpu',
    supports: { timing: false, memoryLimit: false, interprocess: false, spinsPerSecond: 1e9, waitingStreams: 64 },
    open: (options) => {
      // Read by every device that opens.
      process.env['MILLRACE_CXX'] = 'clang++';
      return openDevice('cpu', options);
    },
  });
} else {
  test.skip('S401 kernels compiled by clang++ (it is not on this machine)', () => {});
}
