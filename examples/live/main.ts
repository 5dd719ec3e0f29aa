// Pictures from a device to browsers, and back what moves them. See README.md beside this file.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { openDevice } from 'millrace';
import { Refusal, run } from '../command-line.js';
import { KERNELS } from './kernels.js';
import { readOptions } from './options.js';
import { createServer } from './server.js';
import { Steering } from './sources.js';
import { Viewers } from './viewers.js';

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  const ended = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT']) void once(process, name).then(() => ended.abort());
  const { signal } = ended;
  await using device = await openDevice(options.device);
  await device.compile(...KERNELS);
  const [viewers, steering] = [new Viewers(), new Steering()];
  await using app = await createServer(viewers, steering);
  await app.listen({ port: options.port, host: options.host }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' ? new Refusal(`Port ${options.port} of ${options.host} is taken (--port).`) : error;
  });
  console.log(`showing on http://${options.host}:${(app.server.address() as AddressInfo).port} (${device.info.name})`);
  await viewers.present(signal);
  for await (const frame of options.source(device, options, steering, signal)) {
    viewers.offer(frame);
    await viewers.present(signal);
    if (signal.aborted) break;
  }
  return 0;
}

await run(main);
