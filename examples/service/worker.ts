// One thread of the service. It opens the device of the main thread, and reads the parameters that lie there.
import { on } from 'node:events';
import { availableParallelism } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { type ArrayToken, cpuTasks, createCpuPool, type Device, type DeviceToken, openShared } from 'millrace';
import type * as decoding from './decode.js';
import { DIGITS } from './digits.js';
import { createFaces, faceOptions } from './faces.js';
import { Metrics } from './metrics.js';
import type { Options } from './options.js';
import { createDevicePredictor, createPlainPredictor, type Model, type Predictor, type PredictorOptions } from './predictor.js';
import { createServer } from './server.js';

/** What a network has learnt. */
export interface Learnt {
  readonly parameters: Float32Array;
  /** Undefined where there is no device. */
  readonly onDevice: ArrayToken<'f32'> | undefined;
}

export interface WorkerTask {
  readonly options: Options;
  readonly thread: number;
  readonly metrics: SharedArrayBuffer;
  /** Undefined where there is no device. */
  readonly device: DeviceToken | undefined;
  readonly digits: Learnt;
  /** Undefined: it answers with digits alone. */
  readonly faces: Learnt | undefined;
  readonly listen: { readonly path: string } | { readonly port: number; readonly host: string };
}

const { options, thread, metrics, device: token, digits: learntDigits, faces: learntFaces, listen } = workerData as WorkerTask;
const port = parentPort!;

let lost: string | undefined;
const device: Device | undefined = token && (await openShared(token));
void device?.lost.then((error) => (lost = error.message));

async function open<T, A, N>(model: Model<T, A, N>, { parameters, onDevice }: Learnt, limits: PredictorOptions): Promise<Predictor<T, A>> {
  if (device === undefined || onDevice === undefined) return createPlainPredictor(model, parameters);
  return createDevicePredictor(device, model, device.adopt(onDevice, 'f32'), limits);
}

const digits = await open(DIGITS, learntDigits, options);
// Its threads start with the first picture.
const pool = createCpuPool(new URL('./decode.js', import.meta.url), {
  threads: Math.max(1, Math.floor(availableParallelism() / options.workers)),
});
const faces = learntFaces && (await open(createFaces(cpuTasks<typeof decoding>(pool)), learntFaces, faceOptions(options)));
let isDraining = false;
const app = await createServer({ digits, faces }, new Metrics(metrics, thread), {
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
await digits[Symbol.asyncDispose]();
await faces?.[Symbol.asyncDispose]();
await pool.close();
await device?.close();
port.close();
