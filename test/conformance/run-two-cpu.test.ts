// The rules between two devices, on two CPU devices.
import { CPU_DEVICES } from '../support/two-cpu-devices.js';
import { openDevice } from 'millrace';
import { CPU_SUPPORTS } from '../support/target.js';
import { twoDeviceSuite } from './suite.js';

twoDeviceSuite({
  name: 'two-cpu',
  spec: 'cpu:0',
  supports: CPU_SUPPORTS,
  open: (options) => openDevice('cpu:0', options),
  openOther: () => openDevice(`cpu:${CPU_DEVICES - 1}`),
});
