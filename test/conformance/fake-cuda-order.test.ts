// Waits between two devices: the log of the fake driver shows that the wait is issued only after the record of its event,
// however late that is.
import { readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { expect, test } from 'vitest';
import { openDevice } from 'millrace';
import { hold } from '../support/latch.js';
import { CPU_SUPPORTS, type Target } from '../support/target.js';

const FILLS = 2000;
const log = path.join(os.tmpdir(), `millrace-driver-${process.pid}.log`);
process.env['MILLRACE_FAKE_CUDA_LOG'] = log;
// Slow enough that the point is not reached yet when the wait is issued, so that the driver has to be asked.
process.env['MILLRACE_FAKE_CUDA_DELAY_US'] = '200';

interface Call {
  readonly thread: string;
  readonly name: string;
  readonly stream: string | undefined;
  readonly event: string | undefined;
}

function readCalls(): Call[] {
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({
      thread: /thread=(\d+)/.exec(line)?.[1] ?? '',
      name: /thread=\d+ (\w+)/.exec(line)?.[1] ?? '',
      stream: /stream=(\d+)/.exec(line)?.[1],
      event: /event=(\d+)/.exec(line)?.[1],
    }));
}

test('S208 the driver is told to wait for an event of another device only after that event was recorded', {
  timeout: 60_000,
}, async (context) => {
  if (FAKE_DRIVER === undefined) context.skip(FAKE_DRIVER_MISSING);
  const target: Target = {
    name: 'fake-cuda',
    spec: 'cuda:0',
    supports: { ...CPU_SUPPORTS, memoryLimit: true },
    open: () => openDevice('cuda:0'),
  };
  await using device = await target.open();
  await using other = await openDevice('cuda:1');
  {
    const gate = device.createStream({ ordering: 'explicit' });
    const source = device.createStream({ ordering: 'explicit' });
    const sink = other.createStream({ ordering: 'explicit' });
    using x = source.zeros(1, 'i32');
    await using latch = await hold(target, gate);
    source.waitStream(gate);
    // More records than a stream may have issued at once, so the last ones stay unissued.
    for (let n = 0; n < FILLS; n++) source.fill(x, n);
    sink.waitStream(source);
    const behind = sink.record();
    await other.createStream().record().done;
    expect(behind.isComplete).toBe(false);
    latch.open();
    await behind.done;
  }

  const calls = readCalls();
  rmSync(log);
  const crossing = calls.flatMap((call, at) => {
    if (call.name !== 'cuStreamWaitEvent') return [];
    const recordedAt = calls.slice(0, at).findLastIndex(({ name, event }) => name === 'cuEventRecord' && event === call.event);
    expect(recordedAt, `the wait for event ${call.event} follows a record`).toBeGreaterThanOrEqual(0);
    return calls[recordedAt]!.thread === call.thread ? [] : [recordedAt];
  });
  expect(crossing.length).toBeGreaterThan(0);
  for (const recordedAt of crossing) {
    const { stream } = calls[recordedAt]!;
    const before = calls.slice(0, recordedAt).filter((call) => call.name.startsWith('cuMemset') && call.stream === stream);
    expect(before.length).toBeGreaterThanOrEqual(FILLS);
  }
});
