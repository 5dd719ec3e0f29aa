// The chapters about kernels on the CPU device with clang as the compiler: no rule may depend on the compiler.
import { spawnSync } from 'node:child_process';
import { test } from 'vitest';
import { openDevice } from 'millrace';
import { CPU_SUPPORTS, type Target } from '../support/target.js';
import { kernelSuite, textSuite } from './suite.js';

if (spawnSync('clang++', ['--version']).status === 0) {
  const target: Target = {
    name: 'cpu, clang',
    spec: 'cpu',
    supports: CPU_SUPPORTS,
    open: (options) => {
      // Each device reads this variable when it opens.
      process.env['MILLRACE_CXX'] = 'clang++';
      return openDevice('cpu', options);
    },
  };
  kernelSuite(target);
  textSuite(target);
} else {
  test.skip('S401 kernels compiled by clang++ (it is not on this machine)', () => {});
}
