// Telemetry of GPUs: the fake NVML beside the fake driver has known values. Each test sets what NVML does; the order matters, because an
// open NVML stays open.
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING, FAKE_NVML } from '../support/fake-cuda.js';
import { firstValueFrom, take, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Device, openDevice, StateError, UnavailableError } from 'millrace';
import { rejectionOf } from '../support/wait.js';

const xids = path.join(os.tmpdir(), `millrace-xids-${process.pid}`);
writeFileSync(xids, '0 99\n');
process.env['MILLRACE_FAKE_NVML_XIDS'] = xids;

describe.skipIf(FAKE_DRIVER === undefined)(`telemetry${FAKE_DRIVER === undefined ? `: ${FAKE_DRIVER_MISSING}` : ''}`, () => {
  let device: Device;
  let second: Device;
  beforeAll(async () => {
    [device, second] = await Promise.all([openDevice('cuda:0'), openDevice('cuda:1')]);
  });
  afterAll(async () => {
    await Promise.all([device.close(), second.close()]);
    rmSync(xids, { force: true });
  });
  const nvmlDoes = (what: string | undefined): void => {
    if (what === undefined) delete process.env['MILLRACE_FAKE_NVML'];
    else process.env['MILLRACE_FAKE_NVML'] = what;
  };

  test('S1241 without NVML, telemetry is an UnavailableError that says where it comes from, and the device works', async () => {
    process.env['MILLRACE_NVML'] = '/nonexistent';
    const missing = await rejectionOf(device.telemetry());
    expect(missing).toBeInstanceOf(UnavailableError);
    expect(missing.message).toMatch(
      /NVML \(libnvidia-ml\.so\.1\) cannot be opened.*\n.*NVIDIA driver.*\n.*NVIDIA_DRIVER_CAPABILITIES=compute,utility/,
    );
    process.env['MILLRACE_NVML'] = FAKE_NVML;
    nvmlDoes('init:9');
    expect(await rejectionOf(device.telemetry())).toMatchObject({ name: 'UnavailableError', driverStatus: 9 });
    await expect(firstValueFrom(device.telemetry$())).rejects.toThrow(UnavailableError);
    using x = device.ones(4);
    expect(await x.item(3)).toBe(1);
    nvmlDoes('unknown');
    expect(await rejectionOf(device.telemetry())).toMatchObject({ name: 'UnsupportedError', capability: 'telemetry' });
    nvmlDoes(undefined);
  });

  test('S1240 telemetry has the values of NVML for the GPU of the device', async () => {
    const before = performance.now();
    const values = await second.telemetry();
    expect(values).toEqual({
      device: 'cuda:1',
      atMs: expect.any(Number),
      uuid: 'GPU-00000000-0000-0000-0000-000000000002',
      isSlice: false,
      busyPercent: 41,
      memoryBusyPercent: 21,
      memoryUsedBytes: 2 ** 29,
      memoryTotalBytes: 2 ** 33,
      graphicsClockMHz: 1001,
      smClockMHz: 1101,
      memoryClockMHz: 1201,
      temperatureC: 51,
      powerW: expect.closeTo(123.501, 6),
      powerLimitW: 700,
      throttleReasons: [],
      xidErrors: [],
    });
    expect(values.atMs).toBeGreaterThanOrEqual(before);
    expect((await device.telemetry()).throttleReasons).toEqual(['sw-power-cap', 'sw-thermal-slowdown', 'other']);
  });

  test('S1242 XID errors are those of the GPU since the first question, with the time at which they were noticed', async () => {
    expect((await device.telemetry()).xidErrors).toEqual([]);
    appendFileSync(xids, '1 13\n0 31\n0 79\n');
    const before = performance.now();
    const { xidErrors } = await device.telemetry();
    expect(xidErrors.map(({ code }) => code)).toEqual([31, 79]);
    // Another caller gets them as well, with the same times.
    const again = (await device.telemetry()).xidErrors;
    expect(again.map(({ code }) => code)).toEqual([31, 79]);
    for (const { noticedMs } of [...xidErrors, ...again]) {
      expect(noticedMs).toBeGreaterThan(before - 1);
      expect(noticedMs).toBeLessThan(performance.now() + 1);
    }
    appendFileSync(xids, '0 48\n'.repeat(20));
    await device.telemetry();
    const newest = (await device.telemetry()).xidErrors.map(({ code }) => code);
    expect(newest).toEqual(Array(16).fill(48));
  });

  test('S1240 of a slice of a GPU, memory is its own and the rest is of the GPU', async () => {
    nvmlDoes('mig');
    const values = await device.telemetry();
    expect(values).toMatchObject({ uuid: 'MIG-00000000-0000-0000-0000-000000000001', isSlice: true, memoryTotalBytes: 2 ** 30 });
    expect(values).toMatchObject({ temperatureC: 50, smClockMHz: 1100, throttleReasons: ['sw-power-cap', 'sw-thermal-slowdown', 'other'] });
    expect(values.busyPercent).toBeUndefined();
    nvmlDoes(undefined);
  });

  test('S1240 values that the driver does not tell are undefined', async () => {
    nvmlDoes('old');
    const { atMs: _, ...values } = await second.telemetry();
    const told = { memoryUsedBytes: 2 ** 29, memoryTotalBytes: 2 ** 33, throttleReasons: [], xidErrors: expect.anything() };
    expect(values).toEqual({ device: 'cuda:1', uuid: 'GPU-00000000-0000-0000-0000-000000000002', isSlice: false, ...told });
    nvmlDoes(undefined);
  });

  test('S1243 telemetry$ goes on through answers of the worker, and completes when the device closes', async () => {
    const other = await openDevice('cuda:1');
    const values = other.telemetry$(5).pipe(toArray());
    const all = firstValueFrom(values);
    expect(await firstValueFrom(other.telemetry$(5).pipe(take(3), toArray()))).toHaveLength(3);
    await other.close();
    expect((await all).length).toBeGreaterThan(1);
    expect(() => other.telemetry$()).toThrow(StateError);
    expect(await rejectionOf(other.telemetry())).toBeInstanceOf(StateError);
  });
});
