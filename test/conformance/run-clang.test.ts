// The chapters about kernels on the CPU device with clang as the compiler: no rule may depend on the compiler.
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
      // Each device reads this variable when it opens.
      process.env['MILLRACE_CXX'] = 'clang++';
      return openDevice('cpu', options);
    },
  });
} else {
  test.skip('S401 kernels compiled by clang++ (it is not on this machine)', () => {});
}
