// The chapters about kernels on the fake driver. They mostly wait for the compiler, so another file runs beside them.
import { onFakeCuda } from './fake-cuda-target.js';
import { launchSuite } from './suite.js';

onFakeCuda(launchSuite);
