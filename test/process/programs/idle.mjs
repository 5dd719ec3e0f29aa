// An open device with a stream that has worked and has nothing to do: prints the clock ticks the process uses meanwhile.
import { readFileSync } from 'node:fs';
import { openDevice } from 'millrace';
import { checkDevice } from './work.mjs';

const [spec, ms] = process.argv.slice(2);

function ticks() {
  // Fields 14 and 15, user and system time of the whole process, counted behind the name, which may hold spaces.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

const device = await openDevice(spec);
await checkDevice(device);
// The polling windows after the last operation, and what V8 does after start-up, are over by then.
await new Promise((resolve) => setTimeout(resolve, 500));
const before = ticks();
await new Promise((resolve) => setTimeout(resolve, Number(ms)));
console.log(JSON.stringify({ ticks: ticks() - before }));
await device.close();
