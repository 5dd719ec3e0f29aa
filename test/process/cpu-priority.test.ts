// The priority of the threads that run kernels of CPU devices.
import { expect, test } from 'vitest';
import { runChild } from '../support/child.js';

// The 19th field of stat is the nice value; the second one, the name in parentheses, may hold spaces.
const CODE = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { openDevice } from 'millrace';
  const device = await openDevice('cpu');
  await device.ones(1000).read();
  const threads = readdirSync('/proc/self/task').map((id) => readFileSync('/proc/self/task/' + id + '/stat', 'utf8'));
  const nice = threads.filter((stat) => stat.includes('(mr-cpu')).map((stat) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]));
  const own = Number(readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ')[16]);
  console.log(JSON.stringify([own, [...new Set(nice)]]));
  await device.close();
`;

test.each([
  ['', 10],
  ['0', 0],
  ['19', 19],
  ['20', 10],
  ['-5', 10],
  ['high', 10],
] as const)('with MILLRACE_CPU_NICE=%s the threads of kernels have the nice value %i', async (given, expected) => {
  const { code, stdout, stderr } = await runChild(CODE, { MILLRACE_CPU_NICE: given });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [own, nice] = JSON.parse(stdout) as [number, number[]];
  // A process may not raise its priority.
  expect(nice).toEqual([Math.max(own, expected)]);
});
