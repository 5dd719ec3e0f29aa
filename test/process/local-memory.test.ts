// Kernels with large variables on the CPU device, with any stack limit of the process: they work, or they are refused.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Launches kernels whose threads have an array of so many KiB, or whose blocks have several, and prints each result. */
const PROGRAM = `
import { cudaKernel, i32, inout, openDevice } from 'millrace';
const device = await openDevice('cpu');
const stream = device.createStream();
const own = (ints) => 'extern "C" __global__ void k(int* y, int n) { int own[' + ints + ']; ' +
  'for (int i = 0; i < ' + ints + '; i++) own[(i * 7 + n) % ' + ints + '] = i + threadIdx.x; ' +
  'int sum = 0; for (int i = 0; i < n; i++) sum += own[(i * 13 + y[0]) % ' + ints + '] & 1; y[threadIdx.x] += 41 + (sum > 1000); }';
const waiting = (ints) => own(ints).replace('int sum', '__syncwarp(); int sum');
const names = ['a', 'b', 'c', 'd', 'e', 'f'];
const shared = 'extern "C" __global__ void k(int* y, int n) { __shared__ int ' + names.map((one) => one + '[12000]').join(', ') + '; ' +
  names.map((one) => one + '[threadIdx.x * n] = threadIdx.x; ').join('') +
  '__syncthreads(); y[threadIdx.x] += 41 ' + names.map((one) => '+ (' + one + '[(63 - threadIdx.x) * n] > 1000)').join(' ') + '; }';
for (const text of [own(25600), own(153600), shared, own(2304000), waiting(143360), waiting(150000)]) {
  const y = stream.full(64, 1, { dtype: 'i32' });
  const kernel = cudaKernel('k', { y: inout(i32), n: i32 }, text);
  try {
    await stream.launch(kernel, { threads: 64, block: 64 }, { y, n: 5 }).done;
    console.log(await y.item(63));
  } catch (error) {
    console.log((error.cause ?? error).message.split('\\n')[0]);
  }
}
await device.close();
`;

test('variables of 600 KiB per thread, or 560 KiB if it waits, work under a small stack limit, and more are refused', async () => {
  const run = promisify(execFile)('sh', ['-c', 'ulimit -s 256 && exec "$0" --input-type=module --eval "$1"', process.execPath, PROGRAM], {
    cwd: ROOT,
  });
  expect((await run).stdout.trim().split('\n')).toEqual([
    '42',
    '42',
    '42',
    "K703: Kernel 'k' needs 9001 KiB of stack for local variables (limit on the CPU device: 6144 KiB).",
    '42',
    'Kernel k on stream stream-1 of device cpu:0 overflowed the stack of its thread (593920 bytes) in block (0, 0, 0).',
  ]);
}, 60_000);
