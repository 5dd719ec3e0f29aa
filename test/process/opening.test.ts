// Opening a device that is being closed or destroyed.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { cudaKernel, DeviceLostError, f32, inout, listDevices, openDevice } from 'millrace';
import { expect, test } from 'vitest';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-driver.js';
import { runChild } from '../support/child.js';
import { rejectionOf } from '../support/wait.js';

const ROOT = path.resolve(import.meta.dirname, '../..');

test('a device that was opened several times and destroyed once can be opened again at once', async () => {
  const [device, same] = [await openDevice('cpu'), await openDevice('cpu')];
  expect(same.isSameDevice(device)).toBe(true);
  const destroyed = device.destroy();
  await using again = await openDevice('cpu');
  expect([device.state, again.state]).toEqual(['closed', 'open']);
  await destroyed;
});

test('opening an open device again, and listing devices, starts no worker', async () => {
  await using device = await openDevice();
  const threads = (): number => readdirSync('/proc/self/task').length;
  const before = threads();
  const opening = Promise.all(Array.from({ length: 60 }, () => openDevice()));
  const listing = Promise.all(Array.from({ length: 20 }, () => listDevices()));
  // Workers are there from the call that makes them on.
  await Promise.resolve();
  await new Promise(setImmediate);
  expect(threads()).toBe(before);
  const [opened, listed] = await Promise.all([opening, listing]);
  expect(opened.every((each) => each.isSameDevice(device))).toBe(true);
  expect(listed[0]?.map(({ id }) => id)).toContain(device.info.id);
  expect(threads()).toBe(before);
  for (const each of opened) await each.close();
  expect(device.state).toBe('open');
});

test('two copies of the package in one thread work side by side', async () => {
  const copy = path.join(ROOT, `build/copy-${process.pid}`);
  mkdirSync(copy);
  try {
    cpSync(path.join(ROOT, 'dist'), path.join(copy, 'dist'), { recursive: true, filter: (file) => !/\.(map|d\.ts)$/.test(file) });
    for (const shared of ['native', 'package.json']) symlinkSync(path.join(ROOT, shared), path.join(copy, shared));
    const code = `const copies = [await import('millrace'), await import(${JSON.stringify(path.join(copy, 'dist/index.js'))})];
      const [one, other] = await Promise.all(copies.map(({ openDevice }) => openDevice('cpu')));
      const values = [];
      for (const device of [one, other, await copies[1].openShared(one.share())]) values.push((await device.full(1, 3).read())[0]);
      await one.close();
      values.push((await other.full(1, 4).read())[0]);
      await other.close();
      console.log(copies[0].openDevice === copies[1].openDevice, ...values);`;
    const { stdout, stderr } = await runChild(code, { MILLRACE_ADDON: path.join(ROOT, 'build/Release/millrace.node') });
    expect([stdout, stderr]).toEqual(['false 3 3 3 4\n', '']);
  } finally {
    rmSync(copy, { recursive: true });
  }
});

test('a CPU device that a fault has lost says that it can be opened again, and it can', async () => {
  const trap = cudaKernel('trap', { x: inout(f32) }, 'extern "C" __global__ void trap(float* x) { __trap(); }');
  const device = await openDevice('cpu');
  using x = device.zeros(1);
  const error = await rejectionOf(device.stream.launch(trap, { grid: 1, block: 1 }, { x }).done);
  expect(error).toBeInstanceOf(DeviceLostError);
  for (const lost of [error, await device.lost]) expect(lost).toMatchObject({ reason: 'fault', restartNeeds: 'reopen' });
  await device.close();
  await using again = await openDevice('cpu');
  using y = again.ones(1);
  expect(await y.read()).toEqual(new Float32Array([1]));
});

test("info.reason says why 'auto' took the CPU; a device that was refused opens when the cause has gone", async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-driver-'));
  const driver = path.join(folder, 'libcuda.so');
  const code = `import { symlinkSync } from 'node:fs';
    import { openDevice } from 'millrace';
    const said = [];
    const tell = ({ info }) => said.push([info.backend, info.reason]);
    const [first, named] = [await openDevice(), await openDevice('cpu')];
    [first, named].forEach(tell);
    for (const spec of ['cuda', 'cuda:0', 'cpu:7']) await openDevice(spec).catch(({ message }) => said.push(message.split('\\n')[0]));
    symlinkSync(${JSON.stringify(FAKE_DRIVER)}, ${JSON.stringify(driver)});
    const [gpu, auto, again] = [await openDevice('cuda'), await openDevice('auto'), await openDevice('cpu')];
    [gpu, auto, again].forEach(tell);
    console.log(JSON.stringify(said));
    for (const device of [first, named, gpu, auto, again]) await device.close();`;
  const { stdout, stderr } = await runChild(code, { MILLRACE_CUDA_DRIVER: driver });
  rmSync(folder, { recursive: true });
  const why = `The CUDA driver could not be opened (${driver}: cannot open shared object file: No such file or directory)`;
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([
    ['cpu', `${why}.`],
    ['cpu', null],
    `Device 'cuda' is not available: ${why}.`,
    `Device 'cuda:0' is not available: ${why}.`,
    "Device 'cpu:7' is not available: this machine has cpu:0.",
    ['cuda', null],
    ['cuda', null],
    ['cpu', null],
  ]);
});

test('without a working directory or free descriptors, a device opens or says why not', () => {
  const code = `import { closeSync, mkdtempSync, openSync, rmdirSync } from 'node:fs';
    import { tmpdir } from 'node:os';
    const { cudaKernel, f32, inout, openDevice } = await import('millrace');
    const said = [];
    const tell = ({ code, help }) => said.push(code + ' ' + help.join());
    const leave = () => { const gone = mkdtempSync(tmpdir() + '/gone-'); process.chdir(gone); rmdirSync(gone); };
    const taken = [];
    try { for (;;) taken.push(openSync('/dev/null')); } catch { }
    for (const left of [0, 3, 20]) {
      for (let n = 0; n < left; n++) closeSync(taken.pop());
      await openDevice('cpu').then((device) => device.close(), tell);
    }
    for (const each of taken) closeSync(each);
    leave();
    await openDevice('cpu').then((device) => device.close(), tell);
    process.chdir('/');
    const device = await openDevice('cpu');
    leave();
    const x = device.full(1, 3);
    const twice = cudaKernel('twice', { x: inout(f32) }, '#include "cuda_runtime.h"\\nextern "C" __global__ void twice(float* x) { x[0] *= 2; }');
    await device.stream.launch(twice, { grid: 1, block: 1 }, { x }).done;
    try { cudaKernel('absent', { x: inout(f32) }, new URL('file:///nowhere.cu')); } catch ({ code }) { said.push(code); }
    console.log(JSON.stringify([...said, (await x.read())[0]]));
    await device.close();`;
  const limiting = 'ulimit -n 200; exec "$0" --input-type=module --eval "$1"';
  const { stdout, stderr } = spawnSync('sh', ['-c', limiting, process.execPath, code], { cwd: ROOT, encoding: 'utf8' });
  const limited = expect.stringMatching(/^ERR_MILLRACE_UNAVAILABLE Raise the limits/) as string;
  const gone = expect.stringMatching(/^ERR_MILLRACE_UNAVAILABLE .*process\.chdir/) as string;
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([limited, limited, gone, 'ERR_MILLRACE_ARGUMENT', 6]);
});
