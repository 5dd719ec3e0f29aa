// More than 400 lines: one planted case after the other.
// Chapter 12: why operations of a recording did not run side by side. Each case is planted: something keeps an operation from beginning, and
// the explanation names it.
import { describe, expect } from 'vitest';
import { AssertionError } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ArgumentError, type Device, f32, i32, inout, kernel, overlap, StateError, type Stream } from 'millrace';
import { expectNoGap, expectOverlap } from 'millrace/testing';
import { type Explanation, type Reason, type RecordedOperation, type Recording, recordTimeline } from 'millrace/timeline';
import { from, lastValueFrom, mergeMap, toArray } from 'rxjs';
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

function spinHost(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs; );
}

/** Collects garbage for most of a time. */
function collectFor(ms: number, collect: () => void): void {
  const kept = Array.from({ length: 300_000 }, (_, n) => ({ n }));
  for (const endMs = performance.now() + ms; performance.now() < endMs; ) collect();
  kept.length = 0;
}

/** On a machine with much to do, the event loop stands still for a part of each pause. */
function ofHost(explanations: readonly Explanation[]): number {
  return (['host', 'stall', 'collection'] as const).reduce((sum, reason) => sum + msOf(explanations, reason), 0);
}

/** What these streams are given runs from the call of the result on: until then all of it was submitted, however late the thread was. */
function gate(...streams: readonly Stream[]): () => void {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  for (const stream of streams) stream.hold(() => opened, { timeoutMs: 10_000 });
  return open;
}

defineChapter((target) => {
  describe('12 explanations', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    /** Kernels of the fake driver run while they are launched, so nothing waits for them. */
    const options = { unless: target.name === 'fake-cuda' && 'the fake driver runs kernels while it launches them' };
    /** What of a GPU a kernel leaves to others depends on its registers: test/unit/recording has that case. */
    const onCpu = { unless: target.name !== 'cpu' && 'whether a kernel fills a GPU depends on its registers' };
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

    rule(
      'S1208',
      'an array that both streams use is the reason',
      async () => {
        const { explanations, recording } = await planted(({ one, two, device }) => {
          const x = device.zeros([1]);
          const begin = gate(one);
          one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
          two.launch(spin, { threads: 1, label: 'B' }, { x, rounds: 1 });
          begin();
          x[Symbol.dispose]();
        });
        expect(explanations[0]).toMatchObject({ reason: 'array', because: { label: 'A' } });
        expect(explanations[0]!.text).toMatch(/^B on stream two.* uses an array that A on stream one.* used before\./);
        const [a, b] = [labelled(recording, 'A'), labelled(recording, 'B')];
        expect(explanations.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(b.startMs! - a.startMs!, 1);
        expect(String(explanations).split('\n')).toEqual(
          explanations.map(({ ms, text, remedy }) => `${ms.toFixed(2)} ms: ${text} ${remedy}`),
        );
        // The order of the arguments does not matter.
        expect(recording.explain(b, a)).toEqual(explanations);
      },
      options,
    );

    rule(
      'S1208',
      'waitEvent and waitStream are the reasons',
      async () => {
        for (const reason of ['event', 'stream'] as const) {
          const { explanations } = await planted(({ one, two, device }) => {
            const [x, y] = [device.zeros([1]), device.zeros([1])];
            const begin = gate(one);
            one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
            if (reason === 'event') two.waitEvent(one.record());
            else two.waitStream(one);
            two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
            begin();
            for (const array of [x, y]) array[Symbol.dispose]();
          });
          expect(explanations[0]).toMatchObject({ reason, because: { label: 'A' } });
          expect(explanations[0]!.remedy).toContain('waitEvent');
        }
      },
      options,
    );

    rule(
      'S1208',
      'the order of a stream is the reason, and the default stream is named',
      async () => {
        for (const reason of ['order', 'default-stream'] as const) {
          const { explanations } = await planted(({ one, device }) => {
            const stream = reason === 'order' ? one : device.stream;
            const [x, y] = [device.zeros([1]), device.zeros([1])];
            const begin = gate(stream);
            stream.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
            stream.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
            begin();
            for (const array of [x, y]) array[Symbol.dispose]();
          });
          expect(explanations[0]).toMatchObject({ reason, because: { label: 'A' } });
          expect(explanations[0]!.remedy).toContain('createStream');
        }
      },
      options,
    );

    rule('S1208', 'a function of hold, a late call and an await are the reasons', async () => {
      const cases: Readonly<Record<string, (two: Stream) => Promise<unknown>>> = {
        hold: async (two) => two.hold(() => pause(PLANTED_MS), { timeoutMs: 10_000 }),
        host: () => pause(PLANTED_MS),
        await: async (two) => {
          // Of another operation, so the stream of B has nothing to do meanwhile.
          const other = newStream(chapter.device, 'three');
          other.hold(() => pause(PLANTED_MS), { timeoutMs: 10_000 });
          using z = chapter.device.zeros([1]);
          await other.fill(z, 1).done;
          await other.close();
          return two;
        },
      };
      for (const [reason, plant] of Object.entries(cases)) {
        const { explanations } = await planted(async ({ one, two, device }) => {
          const [x, y] = [device.zeros([1]), device.zeros([1])];
          await device.synchronize();
          // What is planted comes after it.
          await one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 }).done;
          await plant(two);
          two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
          for (const array of [x, y]) array[Symbol.dispose]();
        });
        expect(reason === 'host' ? ofHost(explanations) : msOf(explanations, reason as Reason)).toBeGreaterThan(PLANTED_MS / 2);
        expect(explanations.map((one) => one.reason)).toContain(reason);
      }
    });

    rule(
      'S1208',
      'nothing is to explain where both ran, and what is not of the recording is refused',
      async () => {
        const { explanations, recording } = await planted(async ({ one, two, device }) => {
          const [x, y] = [device.zeros([1]), device.zeros([1])];
          await device.synchronize();
          const begin = gate(one, two);
          one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 2 * LONG });
          two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 2 * LONG });
          begin();
          for (const array of [x, y]) array[Symbol.dispose]();
        });
        expect(explanations).toEqual([]);
        const a = labelled(recording, 'A');
        for (const wrong of [undefined, 3, {}, { ...a, ticket: 1e6 }])
          expect(thrownBy(() => recording.explain(a, wrong as never))).toBeInstanceOf(ArgumentError);
      },
      options,
    );

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
      // The function may have begun before the device came to it.
      expect(hold.ms).toBeGreaterThan(PLANTED_MS);
      // Of one stream.
      expect(hold.share).toBeCloseTo(hold.ms / summary.ms, 3);
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

    rule('S1208', 'the build of a kernel is the reason', async () => {
      const { explanations } = await planted(async ({ one, two, device }) => {
        const [x, y] = [device.zeros([1]), device.zeros([1])];
        await device.synchronize();
        // Of no other test and no earlier run, so it is in no cache.
        const fresh = kernel(`fresh${Date.now()}`, { x: inout(f32) }, ({ x: own }) => {
          own[0] = own[0]! + 0.375;
        });
        one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 });
        two.launch(fresh, { threads: 1, label: 'B' }, { x: y });
        for (const array of [x, y]) array[Symbol.dispose]();
      });
      expect(explanations[0]).toMatchObject({ reason: 'compile' });
      expect(explanations[0]!.remedy).toContain('device.compile');
    });

    rule('S1208', 'garbage collections and other JavaScript are the reasons', async () => {
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      for (const [reason, plant] of [
        ['stall', () => spinHost(3 * PLANTED_MS)],
        ['collection', () => collectFor(3 * PLANTED_MS, collect)],
      ] as const) {
        const { explanations } = await planted(async ({ one, two, device }) => {
          const [x, y] = [device.zeros([1]), device.zeros([1])];
          await device.synchronize();
          // The event loop is seen to turn before.
          await pause(30);
          await one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 }).done;
          plant();
          two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 1 });
          for (const array of [x, y]) array[Symbol.dispose]();
        });
        expect(explanations[0]!.reason).toBe(reason);
        expect(msOf(explanations, reason)).toBeGreaterThan(PLANTED_MS);
      }
    });

    rule('S1208', 'the copy of an ordinary array is the reason', async () => {
      const bytes = new Float32Array(2 ** 24);
      const { explanations, recording } = await planted(async ({ one, two, device }) => {
        const x = device.zeros([1]);
        using y = device.zeros([bytes.length]);
        await device.synchronize();
        await one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 }).done;
        two.copy(y, bytes, { label: 'B' });
        x[Symbol.dispose]();
      });
      expect(labelled(recording, 'B')).toMatchObject({ direction: 'upload', isPageable: true });
      expect(explanations[0]).toMatchObject({ reason: 'pageable', because: { kind: 'staging' } });
      expect(explanations[0]!.remedy).toContain('device.pinned');
    });

    rule('S1208', 'a stage of a pipeline is the reason', async () => {
      const { device } = chapter;
      await device.compile(spin);
      using recording = recordTimeline(device);
      const results$ = overlap(device, [1, 2], { depth: 1 }, (value, lane) => {
        const x = lane.full([1], value);
        const decoded = lane.time('decode', pause(PLANTED_MS));
        return from(decoded).pipe(
          mergeMap(() => {
            lane.stream.launch(spin, { threads: 1, label: `item ${value}` }, { x, rounds: 1 });
            return x.read();
          }),
        );
      });
      await lastValueFrom(results$.pipe(toArray()));
      await recording.stop();
      const gap = recording.gaps().find(({ after }) => after.label === 'item 2')!;
      expect(gap.explanations[0]).toMatchObject({ reason: 'stage', because: { name: 'decode' } });
    });

    rule(
      'S1208',
      'operations of other streams that have the whole device are the reason',
      async () => {
        const { multiprocessors } = chapter.device.info;
        // Every multiprocessor has as many threads as it can have, until all end at the same time, and a processor of a CPU device has a launch.
        // With more threads than that, blocks of B would come between.
        const isGpu = chapter.device.info.id.startsWith('cuda');
        const others = isGpu ? 1 : 2 * multiprocessors;
        const threads = isGpu ? multiprocessors * 2048 : 1;
        const { explanations } = await planted(async ({ one, two, device }) => {
          const all = Array.from({ length: others }, (_, n) => (n === 0 ? one : newStream(device, 'other')));
          const arrays = all.map(() => device.zeros([threads]));
          // Too much for the thread that submits it.
          using y = device.zeros([2 ** 16]);
          await device.synchronize();
          // Together, so that no thread is free for B.
          const begin = gate(...all);
          for (const [n, stream] of all.entries()) {
            const rounds = isGpu ? LONG / 2 : 4 * LONG;
            stream.launch(spin, { threads, label: n === 0 ? 'A' : 'other' }, { x: arrays[n]!, rounds });
          }
          begin();
          await pause(15);
          two.launch(spin, { threads: 2 ** 16, label: 'B' }, { x: y, rounds: isGpu ? 20_000 : 1 });
          await device.synchronize();
          for (const array of arrays) array[Symbol.dispose]();
          await Promise.all(all.slice(1).map((stream) => stream.close()));
        });
        expect(explanations.map(({ reason }) => reason)).toContain('device-busy');
        expect(explanations[0]!.remedy).toMatch(/priority|earlier/);
      },
      onCpu,
    );

    rule(
      'S1208',
      'a chain of waits over three streams is told, and each reason has its time',
      async () => {
        const { device } = chapter;
        await device.compile(spin);
        const [one, two, three] = ['one', 'two', 'three'].map((name) => newStream(device, name)) as [Stream, Stream, Stream];
        const [x, y] = [device.zeros([1]), device.zeros([1])];
        await device.synchronize();
        using recording = recordTimeline(device);
        await one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 1 }).done;
        await pause(PLANTED_MS);
        two.hold(() => pause(PLANTED_MS), { timeoutMs: 10_000 });
        two.launch(spin, { threads: 1, label: 'middle' }, { x, rounds: LONG });
        const event = two.record();
        three.waitEvent(event);
        three.launch(spin, { threads: 1, label: 'end' }, { x: y, rounds: 1 });
        one.waitStream(three);
        using z = device.zeros([1]);
        one.launch(spin, { threads: 1, label: 'B' }, { x: z, rounds: 1 });
        await device.synchronize();
        await recording.stop();
        const explanations = recording.explain(labelled(recording, 'A'), labelled(recording, 'B'));
        const waited = explanations.find(({ reason }) => reason === 'stream')!;
        expect(waited.because).toMatchObject({ label: 'end' });
        expect(waited.text).toMatch(/In turn, end waited for middle on stream two/);
        expect(waited.ms).toBeGreaterThan(PLANTED_MS / 2);
        const middle = recording.explain(labelled(recording, 'A'), labelled(recording, 'middle'));
        for (const found of [explanations, middle]) expect(ofHost(found)).toBeGreaterThan(PLANTED_MS / 2);
        expect(msOf(middle, 'hold')).toBeGreaterThan(PLANTED_MS / 2);
        await Promise.all([one, two, three].map((stream) => stream.close()));
        for (const array of [x, y]) array[Symbol.dispose]();
      },
      options,
    );

    rule('S1211', 'copies tell their direction and whether their host memory is pageable, and launches their threads', async () => {
      const { device } = chapter;
      using recording = recordTimeline(device);
      const stream = newStream(device, 'copies');
      using x = stream.zeros([96]);
      using y = stream.zeros([96]);
      using pinned = device.pinned([96]);
      stream.copy(x, new Float32Array(96), { label: 'from ordinary' });
      stream.copy(x, pinned, { label: 'from pinned' });
      stream.copy(pinned, x, { label: 'to pinned' });
      stream.copy(y, x, { label: 'inside' });
      stream.copyBatch([[x, pinned]], { label: 'batch' });
      stream.launch(spin, { grid: 3, block: 32, label: 'threads' }, { x, rounds: 1 });
      await stream.copy(new Float32Array(96), x, { label: 'to ordinary' }).done;
      await recording.stop();
      const found = Object.fromEntries(
        recording.operations.flatMap(({ label, direction, isPageable, threads }) =>
          label === undefined ? [] : [[label, [direction, isPageable, threads]]],
        ),
      );
      expect(found).toEqual({
        'from ordinary': ['upload', true, undefined],
        'from pinned': ['upload', false, undefined],
        'to pinned': ['download', false, undefined],
        inside: ['device', false, undefined],
        batch: ['upload', false, undefined],
        threads: [undefined, undefined, 96],
        'to ordinary': ['download', true, undefined],
      });
      await stream.close();
    });

    rule('S1212', 'with callSites, explanations name the lines of both calls', async () => {
      const { device } = chapter;
      await device.compile(spin);
      const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
      using x = device.zeros([1]);
      await device.synchronize();
      using recording = recordTimeline(device, { callSites: true });
      one.hold(() => pause(20), { timeoutMs: 10_000 });
      one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
      two.waitStream(one);
      await two.launch(spin, { threads: 1, label: 'B' }, { x, rounds: 1 }).done;
      await recording.stop();
      const [a, b] = [labelled(recording, 'A'), labelled(recording, 'B')];
      const place = /explanations\.test\.ts:(\d+):\d+$/;
      const lines = [a, b].map(({ at }) => Number(place.exec(at!)![1]));
      expect(lines[1]).toBe(lines[0]! + 2);
      const [first] = recording.explain(a, b);
      expect(first!.text).toContain(`(${a.at})`);
      expect(first!.text).toContain(`(${b.at})`);
      expect(first!.text).toMatch(new RegExp(`waitStream \\(.*explanations\\.test\\.ts:${lines[0]! + 1}:`));
      await Promise.all([one.close(), two.close()]);
    });

    rule(
      'S1213',
      'expectOverlap passes where both ran, and says why not',
      async () => {
        const { device } = chapter;
        await device.compile(spin);
        const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
        const [x, y] = [device.zeros([1]), device.zeros([1])];
        await device.synchronize();
        using recording = recordTimeline(device);
        const begin = gate(one, two);
        const a = one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: 2 * LONG });
        two.launch(spin, { threads: 1, label: 'B' }, { x: y, rounds: 2 * LONG });
        begin();
        await two.launch(spin, { threads: 1, label: 'C' }, { x, rounds: 1 }).done;
        await recording.stop();
        expectOverlap(recording, 'A', 'B');
        expectOverlap(recording, a, labelled(recording, 'B'));
        const error = thrownBy(() => expectOverlap(recording, 'A', 'C')) as AssertionError;
        expect(error).toBeInstanceOf(AssertionError);
        expect(error.message).toMatch(/^A on stream one.* and C on stream two.* did not run at the same time\.\n {2}\d+\.\d\d ms: C on/);
        expect(thrownBy(() => expectOverlap(recording, 'A', 'D'))).toMatchObject({
          constructor: ArgumentError,
          message: expect.stringMatching(/no operation 'D'\. Its labels are: .*A, B, C/),
        });
        for (const wrong of [undefined, 3, {}, 'D'])
          expect(thrownBy(() => expectOverlap(recording, wrong as never, a))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => expectOverlap(undefined as never, 'A', 'B'))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => expectOverlap(recording, 'A', 'A'))).toBeInstanceOf(ArgumentError);
        await Promise.all([one.close(), two.close()]);
      },
      options,
    );

    rule('S1214', 'expectNoGap passes for a busy stream, and says why it was idle', async () => {
      const { device } = chapter;
      await device.compile(spin);
      const stream = newStream(device, 'gaps');
      using x = device.zeros([1]);
      await device.synchronize();
      using recording = recordTimeline(device);
      for (let n = 0; n < 3; n++) stream.launch(spin, { threads: 1, label: `before ${n}` }, { x, rounds: 1 });
      await pause(PLANTED_MS);
      await stream.launch(spin, { threads: 1, label: 'late' }, { x, rounds: 1 }).done;
      await recording.stop();
      expectNoGap(recording, stream, { maxMs: 10_000 });
      const error = thrownBy(() => expectNoGap(recording, stream.label, { maxMs: PLANTED_MS / 2 })) as AssertionError;
      expect(error).toBeInstanceOf(AssertionError);
      expect(error.message).toMatch(
        /^Stream gaps.* had nothing to do before late on .*, for \d+\.\d\d ms \(maxMs: 30\)\.\n {2}\d+\.\d\d ms: /,
      );
      for (const wrong of [{}, { maxMs: -1 }, { maxMs: '3' }, { maxMs: 1, most: 2 }])
        expect(thrownBy(() => expectNoGap(recording, stream, wrong as never))).toBeInstanceOf(ArgumentError);
      expect(thrownBy(() => expectNoGap(recording, 'nowhere', { maxMs: 1 }))).toMatchObject({
        message: expect.stringContaining(`no stream 'nowhere' (at least 2). Its streams are: ${stream.label}`),
      });
      await stream.close();
    });

    rule('S1215', 'without times of the device, what the host knows is told, and that the rest is not known', async () => {
      const { device } = chapter;
      await device.compile(spin);
      const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
      using x = device.zeros([1]);
      await device.synchronize();
      using recording = recordTimeline(device, { deviceTimes: false });
      one.hold(() => pause(20), { timeoutMs: 10_000 });
      one.launch(spin, { threads: 1, label: 'A' }, { x, rounds: LONG });
      await two.launch(spin, { threads: 1, label: 'B' }, { x, rounds: 1 }).done;
      await recording.stop();
      const explanations = recording.explain(labelled(recording, 'A'), labelled(recording, 'B'));
      expect(explanations).toContainEqual(expect.objectContaining({ reason: 'array', because: expect.objectContaining({ label: 'A' }) }));
      const isCpu = device.info.id.startsWith('cpu');
      // A CPU device tells in any case.
      expect(explanations.some(({ reason }) => reason === 'unknown')).toBe(!isCpu);
      expect(recording.summary().withoutTimes).toEqual(isCpu ? [] : [device.info.id]);
      if (!isCpu) {
        expect(recording.gaps()).toEqual([]);
        expect(String(recording.summary())).toContain('deviceTimes');
        expect(thrownBy(() => expectOverlap(recording, 'A', 'B'))).toBeInstanceOf(StateError);
      }
      await Promise.all([one.close(), two.close()]);
    });
  });
});
