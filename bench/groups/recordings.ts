// What a recorded timeline costs: launches of some microseconds on one stream and on three, unrecorded, recorded, and recorded with the times
// of the device.
import type { Device } from 'millrace';
import { recordTimeline } from 'millrace/timeline';
import { ONE, spin } from '../suite/kernels.js';
import { RECORDED_LAUNCHES } from '../suite/rows.js';
import { type Answers, mapValues, onGpu, type Run, us, type Values } from '../suite/run.js';

const ROUNDS = 9;
/** Of one timed part. */
const PART_MS = 40;
const MOST_STREAMS = 3;
const CALIBRATED_STEPS = 20_000;

export async function recordings(run: Run): Promise<void> {
  const { device } = run;
  await device.compile(spin);
  const lanes = Array.from({ length: MOST_STREAMS }, () => {
    const stream = device.createStream({ ordering: 'explicit' });
    return { stream, x: stream.zeros(1) };
  });
  const launch = (n: number, streams: number, steps: number): void => {
    const { stream, x } = lanes[n % streams]!;
    stream.launch(spin, ONE, { x, steps });
  };
  const timed = async (count: number, streams: number, steps: number): Promise<number> => {
    await device.synchronize();
    const start = performance.now();
    for (let n = 0; n < count; n++) launch(n, streams, steps);
    await device.synchronize();
    return (performance.now() - start) / 1e3 / count;
  };
  // The best of several, as other programs may run beside.
  let stepSeconds = Infinity;
  for (let round = 0; round < 8; round++) stepSeconds = Math.min(stepSeconds, (await timed(200, 1, CALIBRATED_STEPS)) / CALIBRATED_STEPS);
  for (const { lanes: used, microseconds } of RECORDED_LAUNCHES) {
    const steps = Math.max(1, Math.round(microseconds / us(stepSeconds)));
    const count = run.times(Math.round((PART_MS * 1e3) / microseconds));
    const ours = async (): Promise<number[]> => [
      await timed(count, used, steps),
      await recorded(device, false, () => timed(count, used, steps)),
      await recorded(device, true, () => timed(count, used, steps)),
    ];
    const request = `profiled ${microseconds} ${used} ${count}`;
    const { '': own, ...peers } = await run.takeTurns<string>(ROUNDS, {
      '': ours,
      ...onGpu(run, { 'torch.profiler': { of: 'PyTorch', request } }),
    });
    const part = (at: number, answers: Answers, value: (seconds: number, off: number) => number): Values =>
      'absent' in answers ? answers : answers.map((round) => value(round[at]!, round[0]!));
    const id = `${used}.${microseconds}`;
    const percent = (seconds: number, off: number): number => (seconds / off - 1) * 100;
    run.add(
      `recording.off.${id}`,
      part(0, own!, us),
      mapValues(peers, (answers) => part(0, answers, us)),
    );
    // The times of the CPU device are those of the host.
    if (run.isGpu) run.add(`recording.host.${id}`, part(1, own!, percent));
    run.add(
      `recording.device.${id}`,
      part(2, own!, percent),
      mapValues(peers, (answers) => part(1, answers, percent)),
    );
  }
  for (const { stream, x } of lanes) {
    x[Symbol.dispose]();
    await stream.close();
  }
}

async function recorded(device: Device, deviceTimes: boolean, body: () => Promise<number>): Promise<number> {
  const recording = recordTimeline(device, { deviceTimes });
  // The clocks have been compared, and garbage of the last part is not counted.
  await device.stream.record().done;
  const seconds = await body();
  await recording.stop();
  return seconds;
}
