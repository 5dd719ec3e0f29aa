// The rules between two devices, on two CPU devices.
import { CPU_DEVICES } from '../support/two-cpu-devices.js';
import { openDevice } from 'millrace';
import { twoDeviceSuite } from './suite.js';

twoDeviceSuite({
  name: 'two-cpu',
  spec: 'cpu:0',
  supports: { timing: false, memoryLimit: false, interprocess: false, spinsPerSecond: 1e9, waitingStreams: 64 },
  open: (options) => openDevice('cpu:0', options),
  openOther: () => openDevice(`cpu:${CPU_DEVICES - 1}`),
});
