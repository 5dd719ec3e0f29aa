// One thread of the service. It opens the device of the main thread, and reads the parameters that lie there.
import { on } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { type Device, type DeviceToken, openShared, type ArrayToken } from 'millrace';
import { type Classifier, createDeviceClassifier, createPlainClassifier } from './classifier.js';
import { Metrics } from './metrics.js';
import type { Options } from './options.js';
import { createServer } from './server.js';

export interface WorkerTask {
  readonly options: Options;
  readonly thread: number;
  readonly metrics: SharedArrayBuffer;
  /** Undefined where there is no device. */
  readonly device: DeviceToken | undefined;
  readonly onDevice: ArrayToken<'f32'> | undefined;
  readonly parameters: Float32Array;
  readonly listen: { readonly path: string } | { readonly port: number; readonly host: string };
}

const { options, thread, metrics, device: token, onDevice, parameters, listen } = workerData as WorkerTask;
const port = parentPort!;

let lost: string | undefined;
let device: Device | undefined;
let classifier: Classifier;
if (token === undefined || onDevice === undefined) classifier = createPlainClassifier(parameters);
else {
  device = await openShared(token);
  void device.lost.then((error) => (lost = error.message));
  classifier = await createDeviceClassifier(device, device.adopt(onDevice, 'f32'), options);
}
let isDraining = false;
const app = await createServer(classifier, new Metrics(metrics, thread), {
  maxQueue: options.maxQueue,
  trouble: () => lost,
  isDraining: () => isDraining,
});
await app.listen(listen);
const address = app.server.address();
port.postMessage(typeof address === 'object' ? address?.port : undefined);

for await (const [message] of on(port, 'message')) {
  if (message === 'stop') break;
  isDraining = true;
}
await app.close();
await classifier[Symbol.asyncDispose]();
await device?.close();
port.close();
