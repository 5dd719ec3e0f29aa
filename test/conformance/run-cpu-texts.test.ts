// The chapters about CUDA C++ texts on the CPU device, compiled quickly; the long form has the optimisation that users get.
import { useQuickCompiler } from '../support/use-quick-compiler.js';
import { openDevice } from 'millrace';
import { CPU_SUPPORTS } from '../support/target.js';
import { textSuite } from './suite.js';

useQuickCompiler();

textSuite({
  name: 'cpu',
  spec: 'cpu',
  supports: CPU_SUPPORTS,
  // A kernel that accesses memory outside of its arrays fails here, and only here.
  open: (options) => openDevice('cpu', { guard: true, ...options }),
});
