// A process of its own with a device of one `schedule`, because a process opens a device in one way. Answers requests as the peers do
// (bench/suite/peer.ts):
//
//   node schedule.js DEVICE SCHEDULE
//
//   blocking N IDLE_MS   launch and await, each after a rest: seconds
//   load N IDLE_MS       the same: processor time of the process, divided by the time that passed
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DeviceSpec, openDevice, type Schedule } from 'millrace';
import { empty, ONE } from '../suite/kernels.js';
import { secondsOf } from '../suite/run.js';

const [spec, schedule] = process.argv.slice(2) as [DeviceSpec, Schedule];
const device = await openDevice(spec, { schedule });
await device.compile(empty);
const stream = device.createStream({ ordering: 'explicit' });
const awaited = (count: number, idleMs: number): Promise<number[]> =>
  secondsOf(count, () => stream.launch(empty, ONE, {}).done, idleMs === 0 ? undefined : () => sleep(idleMs));

async function load(count: number, idleMs: number): Promise<number[]> {
  const [before, start] = [process.cpuUsage(), performance.now()];
  await awaited(count, idleMs);
  const { user, system } = process.cpuUsage(before);
  return [(user + system) / 1e3 / (performance.now() - start)];
}

const requests: Readonly<Record<string, typeof load>> = { blocking: awaited, load };
console.log(JSON.stringify({ version: schedule }));
for await (const line of createInterface({ input: process.stdin })) {
  const [name, count, idleMs] = line.split(' ');
  console.log(JSON.stringify({ seconds: await requests[name!]!(Number(count), Number(idleMs)) }));
}
await device.close();
