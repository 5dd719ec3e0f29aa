// Runs random programs whose kernels fail by chance on a device and beside a model: a value is delivered if and only if nothing that it derives
// from failed. Prints how many ran, and the first program that differed, shortened; then it exits with 1.
//   node --import tsx random-failures.ts <device> <count> [seed] [other device] [failing launches of 100] [calm]
import { openDevice, type DeviceSpec } from 'millrace';
import { programOf } from '../../support/failing-programs.js';
import { makeFailingBench } from '../../support/failing-bench.js';
import { differencesOf } from '../../support/failing-run.js';
import { reportOf, shortened } from '../../support/failing-shorten.js';

const [spec, count, seed = '1', second = '', failing = '15', calm = ''] = process.argv.slice(2);
const names = [spec, second].filter((name) => name !== undefined && name !== '' && name !== '-') as DeviceSpec[];
const devices = await Promise.all(names.map((name) => openDevice(name)));
const bench = await makeFailingBench(devices);
const started = performance.now();
let ran = 0;
for (; ran < Number(count); ran++) {
  const programSeed = (Number(seed) + ran) >>> 0;
  const program = { ...programOf(programSeed, devices.length, Number(failing)), isCalm: calm === 'calm' };
  const differences = await differencesOf(bench, program);
  if (differences.length > 0) {
    console.log(`program of seed ${programSeed} differs, after ${ran} that did not:\n${reportOf(program, differences.join('\n'))}`);
    const [least, difference] = await shortened(bench, program, 40);
    console.log(`\nshortened:\n${reportOf(least, difference)}`);
    process.exitCode = 1;
    break;
  }
}
console.log(`${ran} programs without a difference in ${Math.round(performance.now() - started)} ms`);
await bench.close();
await Promise.all(devices.map((device) => device.close()));
