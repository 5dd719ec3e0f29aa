// node dist/main.js FILE...: prints a line of JSON for each file.
import { openDevice } from 'millrace';
import { count } from './kernels.js';
import { entropies } from './pipeline.js';

const files = process.argv.slice(2);
if (files.length === 0) {
  process.stderr.write('Usage: node dist/main.js FILE...\n');
  process.exit(1);
}
const device = await openDevice();
await device.compile(count);
for await (const result of entropies(device, files)) console.log(JSON.stringify(result));
await device.close();
