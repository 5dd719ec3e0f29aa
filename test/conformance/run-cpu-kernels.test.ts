// The chapters about kernels on the CPU device, without those about texts. They mostly wait for the compiler, so another file runs beside them.
import { openDevice } from 'millrace';
import { IS_LONG } from '../support/long.js';
import { CPU_SUPPORTS } from '../support/target.js';
import { kernelSuite } from './suite.js';

kernelSuite({
  name: 'cpu',
  spec: 'cpu',
  supports: CPU_SUPPORTS,
  ...(!IS_LONG && { kernels: 8 }),
  // A kernel of the suite that accesses memory outside of its arrays fails here, and only here.
  open: (options) => openDevice('cpu', { guard: true, ...options }),
});
