// A launch whose text does not compile, and whose promise nobody reads.
import { cudaKernel, inout, openDevice, u32 } from 'millrace';
import { checkDevice } from './work.mjs';

const [spec] = process.argv.slice(2);
const broken = cudaKernel('broken', { x: inout(u32) }, 'extern "C" __global__ void broken(unsigned* x) { x[0] = nothing_of_this_name; }');
const device = await openDevice(spec);
process.on('warning', (warning) => console.log(`warning ${warning.name}`));
const stream = device.createStream();
// Kept: that one was collected without being disposed of is a warning too.
const x = (globalThis.kept = stream.zeros(1, 'u32'));
stream.launch(broken, { grid: 1, block: 1 }, { x });
stream.launch(broken, { grid: 1, block: 1 }, { x });
await stream.synchronize().catch(() => {});
await checkDevice(device);
await device.close();
console.log('closed');
