// The chapters about the runtime, and those about two devices, on the fake driver. run-fake-cuda-kernels has those about kernels.
import { onFakeCuda } from './fake-cuda-target.js';
import { runtimeSuite, twoDeviceSuite } from './suite.js';

onFakeCuda((target) => {
  runtimeSuite(target);
  twoDeviceSuite(target);
});
