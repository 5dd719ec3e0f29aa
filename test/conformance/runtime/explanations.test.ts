// Chapter 12: why operations of a recording did not run side by side. Each case is planted: something keeps an operation from beginning, and
// the explanation names it.
import { describe, expect } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { ArgumentError, type Device, f32, i32, inout, kernel, type Stream } from 'millrace';
import { type Explanation, type Reason, type RecordedOperation, type Recording, recordTimeline } from 'millrace/timeline';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

/** Takes 20 to 100 ms with so many rounds. */
const LONG = 20_000_000;
/** What is planted takes longer than everything else, also on a machine with much to do. */
const PLANTED_MS = 60;

const spin = kernel('spin', { x: inout(f32), rounds: i32 }, ({ x, rounds }, { i }) => {
  let value = x[i]!;
  for (let n = 0; n < rounds; n++) value = value * 0.5 + 1;
  x[i] = value;
});

function labelled(recording: Recording, label: string): RecordedOperation {
  return recording.operations.find((operation) => operation.label === label)!;
}

function msOf(explanations: readonly Explanation[], reason: Reason): number {
  return explanations.filter((one) => one.reason === reason).reduce((sum, { ms }) => sum + ms, 0);
}

defineChapter((target) => {
  describe('12 explanations', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    let streams = 0;
    const newStream = (device: Device, name: string): Stream => device.createStream({ label: `${name} of explanations ${++streams}` });
    /** Records what `work` does with two streams, and explains A and B. */
    const planted = async (
      work: (streams: { one: Stream; two: Stream; device: Device }) => unknown,
    ): Promise<{ recording: Recording; explanations: readonly Explanation[] }> => {
      const { device } = chapter;
      await device.compile(spin);
      const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
      await Promise.all([one.synchronize(), two.synchronize()]);
      using recording = recordTimeline(device);
      await work({ one, two, device });
      await device.synchronize();
      await recording.stop();
      await Promise.all([one.close(), two.close()]);
      return { recording, explanations: recording.explain(labelled(recording, 'A'), labelled(recording, 'B')) };
    };

    rule('S1208', 'an array that both streams use is the reason', async () => {
      const { explanations, recording } = await planted(({ one, two, device }) => {
        const x = device.zeros([1]);
        one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
        two.launch(spin, { threads: 1, label: 'B' }, { x, rounds: 1 });
        x[Symbol.dispose]();
      });
      expect(explanations[0]).toMatchObject({ reason: 'array', because: { label: 'A' } });
      expect(explanations[0]!.text).toMatch(/^B on stream two.* uses an array that A on stream one.* used before\./);
      const [a, b] = [labelled(recording, 'A'), labelled(recording, 'B')];
      expect(explanations.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(b.startMs! - a.startMs!, 1);
      // The order of the arguments does not matter.
      expect(recording.explain(b, a)).toEqual(explanations);
    });

    rule('S1208', 'waitEvent and waitStream are the reasons', async () => {
      for (const reason of ['event', 'stream'] as const) {
        const { explanations } = await planted(({ one, two, device }) => {
          const [x, y] = [device.zeros([1]), device.zeros([1])];
          one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
          if (reason === 'event') two.waitEvent(one.record());
          else two.waitStream(one);
          two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
          for (const array of [x, y]) array[Symbol.dispose]();
        });
        expect(explanations[0]).toMatchObject({ reason, because: { label: 'A' } });
        expect(explanations[0]!.remedy).toContain('waitEvent');
      }
    });

    rule('S1208', 'the order of a stream is the reason, and the default stream is named', async () => {
      for (const reason of ['order', 'default-stream'] as const) {
        const { explanations } = await planted(({ one, device }) => {
          const stream = reason === 'order' ? one : device.stream;
          const [x, y] = [device.zeros([1]), device.zeros([1])];
          stream.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
          stream.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
          for (const array of [x, y]) array[Symbol.dispose]();
        });
        expect(explanations[0]).toMatchObject({ reason, because: { label: 'A' } });
        expect(explanations[0]!.remedy).toContain('createStream');
      }
    });

    rule('S1208', 'a function of hold, a late call and an await are the reasons', async () => {
      const cases: Readonly<Record<string, (two: Stream) => Promise<unknown>>> = {
        hold: async (two) => two.hold(() => pause(PLANTED_MS), { timeoutMs: 10_000 }),
        host: () => pause(PLANTED_MS),
        await: async (two) => {
          // Of another operation, so the stream of B has nothing to do meanwhile.
          const other = newStream(chapter.device, 'three');
          other.hold(() => pause(PLANTED_MS), { timeoutMs: 10_000 });
          await other.fill(chapter.device.zeros([1]), 1).done;
          await other.close();
          return two;
        },
      };
      for (const [reason, plant] of Object.entries(cases)) {
        const { explanations } = await planted(async ({ one, two, device }) => {
          const [x, y] = [device.zeros([1]), device.zeros([1])];
          await device.synchronize();
          one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 });
          await plant(two);
          two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
          for (const array of [x, y]) array[Symbol.dispose]();
        });
        expect(explanations[0]!.reason).toBe(reason);
        expect(explanations[0]!.ms).toBeGreaterThan(PLANTED_MS / 2);
      }
    });

    rule('S1208', 'nothing is to explain where both ran, and what is not of the recording is refused', async () => {
      const { explanations, recording } = await planted(async ({ one, two, device }) => {
        const [x, y] = [device.zeros([1]), device.zeros([1])];
        await device.synchronize();
        let begin = (): void => undefined;
        const begun = new Promise<void>((resolve) => (begin = resolve));
        for (const stream of [one, two]) stream.hold(() => begun, { timeoutMs: 10_000 });
        one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 2 * LONG });
        two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 2 * LONG });
        begin();
        for (const array of [x, y]) array[Symbol.dispose]();
      });
      expect(explanations).toEqual([]);
      const a = labelled(recording, 'A');
      for (const wrong of [undefined, 3, {}, { ...a, ticket: 1e6 }])
        expect(thrownBy(() => recording.explain(a, wrong as never))).toBeInstanceOf(ArgumentError);
    });

    rule('S1209', 'the gaps of a stream have explanations that add up to them', async () => {
      const { recording } = await planted(async ({ one, two, device }) => {
        const x = device.zeros([1]);
        two.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 });
        await one.launch(spin, { threads: 1, label: 'before' }, { x, rounds: 1 }).done;
        one.hold(() => pause(PLANTED_MS), { timeoutMs: 10_000 });
        one.launch(spin, { threads: 1, label: 'B' }, { x, rounds: 1 });
        x[Symbol.dispose]();
      });
      const gap = recording.gaps({ minMs: 1 }).find(({ after }) => after.label === 'B')!;
      expect(gap.before?.label).toBe('before');
      expect(gap.endMs - gap.startMs).toBeGreaterThan(PLANTED_MS - 2);
      expect(gap.explanations[0]!.reason).toBe('hold');
      for (const { startMs, endMs, explanations } of recording.gaps())
        expect(explanations.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(endMs - startMs, 2);
      expect(recording.gaps({ minMs: 1e6 })).toEqual([]);
      for (const wrong of [{ minMs: -1 }, { minMs: '1' }, { most: 1 }])
        expect(thrownBy(() => recording.gaps(wrong as never))).toBeInstanceOf(ArgumentError);
    });

    rule('S1210', 'the summary has the reasons that cost most, and a table', async () => {
      const { recording } = await planted(async ({ one, two, device }) => {
        const x = device.zeros([1]);
        one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
        await one.synchronize();
        one.hold(() => pause(3 * PLANTED_MS), { timeoutMs: 10_000 });
        one.launch(spin, { threads: 1, label: 'late' }, { x, rounds: 1 });
        two.launch(spin, { threads: 1, label: 'B' }, { x, rounds: 1 });
        x[Symbol.dispose]();
      });
      const summary = recording.summary();
      expect(summary.reasons.length).toBeLessThanOrEqual(5);
      const hold = summary.reasons.find(({ reason }) => reason === 'hold')!;
      expect(hold.ms).toBeGreaterThan(3 * PLANTED_MS - 5);
      expect(hold.share).toBeGreaterThan(0.2);
      expect(hold.share).toBeLessThanOrEqual(1);
      expect(hold.worst.remedy).toContain('hold');
      const own = summary.busy.find(({ stream }) => stream?.startsWith('one of explanations'))!;
      const a = labelled(recording, 'A');
      expect(own.busyMs).toBeGreaterThanOrEqual(a.endMs! - a.startMs!);
      expect(summary.busy[0]).toMatchObject({ device: chapter.device.info.id });
      expect(summary.busy[0]!.busyMs).toBeGreaterThanOrEqual(own.busyMs);
      expect(String(summary)).toMatch(/^hold +\d+ +\d+\.\d\d +\d+\.\d %$/m);
      expect(msOf([hold.worst], 'hold')).toBeGreaterThan(PLANTED_MS);
    });
  });
});
