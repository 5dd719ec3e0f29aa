// A failure whose promise nobody reads, in a process that has nothing left to do before anybody has looked for it. It
// prints whether the process ended as soon as it could.
import { createHook } from 'node:async_hooks';

import { cudaKernel, inout, kernel, openDevice, u32 } from 'millrace';

const [spec, kind] = process.argv.slice(2);
const outside = kernel('outside', { x: inout(u32) }, ({ x }, { i }) => {
  x[i + 1] = 1;
});
const broken = cudaKernel('broken', { x: inout(u32) }, 'extern "C" __global__ void broken(unsigned* x) { x[0] = nothing_of_this_name; }');
// The timers are asked, not the clock: on a loaded machine, a turn takes longer than the timer that this is about.
const timers = [];
createHook({ init: (_id, type, _trigger, resource) => type === 'Timeout' && timers.push(resource) }).enable();
const device = await openDevice(spec);
await device.compile(outside);
if (kind === 'build') await device.compile(broken).catch(() => {});
// Opened again: the look at the end is one for the thread, whatever is open.
await openDevice(spec);
process.on('warning', (warning) => console.log(`warning ${warning.code}`));
process.once('beforeExit', () => console.log(`listeners ${process.listenerCount('beforeExit')}`));
// Kept: that one was collected without being disposed of is a warning too.
const x = (globalThis.kept = device.zeros(1, 'u32'));
const launched = device.stream.record();
for (let n = 0; n < 3; n++) device.stream.launch(kind === 'build' ? broken : outside, 1, { x });
const last = device.stream.record();
// Not a turn of the loop passes, and no timer.
while (!launched.isComplete || !last.isComplete);
process.once('exit', () => console.log(timers.some((timer) => timer.hasRef()) ? 'held by a timer' : 'ended at once'));
