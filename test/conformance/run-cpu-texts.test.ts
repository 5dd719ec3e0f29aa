// The chapters about CUDA C++ texts on the CPU device, compiled quickly; the long form has the optimisation that users get.
import { useQuickCompiler } from '../support/use-quick-compiler.js';
import { openDevice } from 'millrace';
import { textSuite } from './suite.js';

useQuickCompiler();

textSuite({
  name: 'cpu',
  spec: 'cpu',
  supports: { timing: false, memoryLimit: false, interprocess: false, spinsPerSecond: 1e9, waitingStreams: 64 },
  // A kernel that accesses memory outside of its arrays fails here, and only here.
  open: (options) => openDevice('cpu', { guard: true, ...options }),
});
