// Chapter 12: the times of the device in recorded timelines.
import { describe, expect } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { ArgumentError, type Device, type DeviceArray, f32, i32, inout, kernel, type Stream } from 'millrace';
import { type RecordedOperation, type Recording, recordTimeline } from 'millrace/timeline';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

/** On one thread, some nanoseconds for each step. */
const steps = kernel('steps', { x: inout(f32), count: i32 }, ({ x, count }) => {
  let value = x[0]!;
  for (let n = 0; n < count; n++) value = value * 0.5 + 1;
  x[0] = value;
});

/** The clocks of a GPU and of the host are compared up to some microseconds. */
const CLOCK_MS = 0.1;
/** Numbers of some 1e6 ms. */
const ROUNDING_MS = 1e-6;

interface Timed extends RecordedOperation {
  readonly startMs: number;
  readonly endMs: number;
}

defineChapter((target) => {
  describe('12 times of the device', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    let streams = 0;
    const newStream = (device: Device, name: string): Stream => device.createStream({ label: `${name} of times ${++streams}` });
    /** All launches of a stream, each with its times. */
    const launchesOf = (recording: Recording, { label }: Stream): readonly Timed[] => {
      const launches = recording.operations.filter(({ stream, kind }) => stream === label && kind === 'launch');
      for (const { startMs, endMs } of launches) expect([startMs, endMs]).toEqual([expect.any(Number), expect.any(Number)]);
      return launches as readonly Timed[];
    };
    const launch = (stream: Stream, x: DeviceArray<'f32'>, count: number) => stream.launch(steps, { grid: 1, block: 1 }, { x, count });

    rule('S1250', 'times of a busy stream follow each other, from the first operation on, and fill the time that it took', async () => {
      const { device } = chapter;
      await device.compile(steps);
      const stream = newStream(device, 'busy');
      using x = stream.zeros(1);
      await stream.synchronize();
      const count = 600;
      // On a busy machine the threads that submit and issue may stand still while the stream has run what it had.
      let busyShare = 0;
      for (let attempt = 0; attempt < 20 && busyShare <= 0.5; attempt++) {
        const recording = recordTimeline(device);
        const fromMs = performance.now();
        for (let n = 0; n < count; n++) launch(stream, x, 10_000 + (n % 3) * 5_000);
        await stream.synchronize();
        const tookMs = performance.now() - fromMs;
        await recording.stop();
        const launches = launchesOf(recording, stream);
        expect(launches).toHaveLength(count);
        let before = fromMs - CLOCK_MS;
        let busyMs = 0;
        for (const { startMs, endMs, issuedMs } of launches) {
          expect(startMs).toBeGreaterThanOrEqual(before - ROUNDING_MS);
          expect(startMs).toBeGreaterThanOrEqual(issuedMs! - CLOCK_MS);
          expect(endMs).toBeGreaterThanOrEqual(startMs);
          busyMs += endMs - startMs;
          before = endMs;
        }
        const spanMs = launches.at(-1)!.endMs - launches[0]!.startMs;
        // Where the thread stood still while the clocks were compared, the times are off by that.
        busyShare = spanMs <= tookMs + CLOCK_MS ? busyMs / spanMs : 0;
      }
      expect(busyShare).toBeGreaterThan(0.5);
      await stream.close();
    });

    rule('S1251', 'short operations of a busy GPU are timed together, with deviceTimes: each alone, and with none not at all', async () => {
      const { device } = chapter;
      await device.compile(steps);
      const stream = newStream(device, 'short');
      using x = stream.zeros(1);
      const record = async (deviceTimes: boolean | 'each'): Promise<readonly RecordedOperation[]> => {
        const recording = recordTimeline(device, { deviceTimes });
        // What is told of the first ones tells how long they take.
        for (let n = 0; n < 1500; n++) launch(stream, x, 100);
        await stream.synchronize();
        for (let n = 0; n < 1500; n++) launch(stream, x, 100);
        await stream.synchronize();
        await recording.stop();
        const launches = recording.operations.filter(({ kind }) => kind === 'launch');
        expect(launches).toHaveLength(3000);
        return launches;
      };
      const isGpu = device.info.backend === 'cuda';
      const together = (launches: readonly RecordedOperation[]): number =>
        launches.filter(({ timedTogether }) => timedTogether !== undefined && timedTogether > 1).length;
      const shared = await record(true);
      if (isGpu) expect(together(shared)).toBeGreaterThan(0);
      else expect(together(shared)).toBe(0);
      expect(together(await record('each'))).toBe(0);
      const untimed = await record(false);
      expect(untimed.every(({ issuedMs }) => issuedMs !== undefined)).toBe(true);
      if (isGpu) expect(untimed.every(({ startMs }) => startMs === undefined)).toBe(true);
      const error = thrownBy(() => recordTimeline(device, { deviceTimes: 'all' as 'each' }));
      expect(error).toBeInstanceOf(ArgumentError);
      expect((error as Error).message).toBe(`The option deviceTimes ('all') is neither true nor false nor 'each'.`);
      await stream.close();
    });

    rule(
      'S1252',
      'an operation that finds its stream idle begins when it is issued, and one behind a wait after what it waited for',
      async () => {
        const { device } = chapter;
        await device.compile(steps);
        const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
        using x = one.zeros(1);
        using y = two.zeros(1);
        await device.synchronize();
        // On a busy machine, threads stand still: the long launch has ended before the wait is submitted, or clocks are compared late.
        let wrong: readonly string[] = ['not tried'];
        for (let attempt = 0; attempt < 20 && wrong.length > 0; attempt++) {
          const recording = recordTimeline(device);
          await launch(two, y, 10).done;
          await pause(30);
          launch(one, x, 2_000_000);
          two.waitStream(one);
          await launch(two, y, 10).done;
          await recording.stop();
          if (recording.operations.some(({ kind, startMs }) => kind === 'launch' && startMs === undefined)) {
            wrong = ['launches have times'];
            continue;
          }
          const [long] = launchesOf(recording, one);
          const [first, second] = launchesOf(recording, two);
          const wait = recording.operations.find(({ stream, kind }) => stream === two.label && kind === 'wait');
          const facts = {
            'the long launch begins after the pause': long!.startMs - first!.endMs > 25,
            'it begins when it is issued': long!.startMs >= long!.issuedMs! - CLOCK_MS,
            'the second one begins after it': second!.startMs >= long!.endMs - CLOCK_MS,
            'the wait ends after it': (wait?.endMs ?? 0) >= long!.endMs - CLOCK_MS,
            'it is the longer one': second!.endMs - second!.startMs < long!.endMs - long!.startMs,
          };
          wrong = Object.entries(facts).flatMap(([fact, isTrue]) => (isTrue ? [] : [fact]));
        }
        expect(wrong).toEqual([]);
        await Promise.all([one.close(), two.close()]);
      },
    );

    rule('S1253', 'the times of two streams whose operations ran at the same time overlap', async () => {
      const { device } = chapter;
      await device.compile(steps);
      const both = [newStream(device, 'left'), newStream(device, 'right')];
      const arrays = both.map((stream) => stream.zeros(1));
      await device.synchronize();
      let last: readonly Timed[] = [];
      // On a busy machine the threads of the CPU device may run one after the other.
      for (let attempt = 0; attempt < 20; attempt++) {
        const recording = recordTimeline(device);
        for (const [n, stream] of both.entries()) launch(stream, arrays[n]!, 3_000_000);
        await device.synchronize();
        await recording.stop();
        last = both.map((stream) => launchesOf(recording, stream)[0]!);
        if (overlapOf(last) > 0) break;
      }
      expect(overlapOf(last)).toBeGreaterThan(0);
      for (const array of arrays) array[Symbol.dispose]();
      await Promise.all(both.map((stream) => stream.close()));
    });
  });
});

function overlapOf(operations: readonly Timed[]): number {
  return Math.min(...operations.map(({ endMs }) => endMs)) - Math.max(...operations.map(({ startMs }) => startMs));
}
