// Chapter 12: recorded timelines.
import { describe, expect } from 'vitest';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { ArgumentError, type Device, f32, inout, kernel, launch, overlap, StateError, type Stream } from 'millrace';
import { type RecordedOperation, recordTimeline } from 'millrace/timeline';
import { lastValueFrom, map, mergeMap, of, toArray } from 'rxjs';
import { defineChapter } from '../../support/chapter.js';
import { twice } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

/** The clocks of a GPU and of the host are compared up to some microseconds. */
const CLOCK_MS = 0.1;

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly id?: number;
  readonly args?: { readonly name?: string };
}

function rowOf({ pid, tid }: TraceEvent): string {
  return `${pid} ${tid}`;
}

defineChapter((target) => {
  describe('12 timelines', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    /** Streams whose labels no other test uses. */
    let streams = 0;
    const newStream = (device: Device, name: string): Stream => device.createStream({ label: `${name} of timeline ${++streams}` });
    const operationsOf = (all: readonly RecordedOperation[], stream: Stream): readonly RecordedOperation[] =>
      all.filter(({ stream: label }) => label === stream.label);

    rule('S1201', 'a recording has every operation, with its label, its bytes, and its times in their order', async () => {
      const { device } = chapter;
      await device.compile(twice);
      const recording = recordTimeline(device);
      const stream = newStream(device, 'one');
      using x = stream.zeros([1024]);
      stream.launch(twice, 1024, { x });
      stream.launch(twice, { threads: 1024, label: 'again' }, { x });
      const values = new Float32Array(1024);
      const last = stream.copy(values, x);
      await last.done;
      await recording.stop();
      const seen = operationsOf(recording.operations, stream);
      expect(seen.map(({ kind, label, bytes }) => [kind, label, bytes])).toEqual([
        ['alloc', undefined, 4096],
        ['fill', undefined, 4096],
        ['launch', 'twice', undefined],
        ['launch', 'again', undefined],
        ['copy', undefined, 4096],
      ]);
      expect(seen.at(-1)!.id).toBe(last.id);
      let before = recording.startMs;
      for (const { device: name, submittedMs, issuedMs, startMs, endMs } of seen) {
        expect(name).toBe(device.info.id);
        expect(submittedMs).toBeGreaterThanOrEqual(before);
        expect(issuedMs).toBeGreaterThanOrEqual(submittedMs!);
        before = submittedMs!;
        expect(endMs).toBeGreaterThanOrEqual(startMs!);
        expect(endMs).toBeLessThanOrEqual(recording.endMs);
      }
      for (const [one, next] of seen.slice(1).map((operation, at) => [seen[at]!, operation] as const))
        expect(next.startMs).toBeGreaterThanOrEqual(one.endMs! - CLOCK_MS);
      expect(recording.dropped).toBe(0);
      await stream.close();
    });

    rule('S1202', 'an operation tells what it waited for: another stream, or a reason of the device', async () => {
      const { device } = chapter;
      await device.compile(twice);
      using recording = recordTimeline(device);
      const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
      using x = one.zeros([1024]);
      one.hold(() => pause(20), { timeoutMs: 10_000, label: 'pause' });
      one.launch(twice, 1024, { x });
      await two.launch(twice, 1024, { x }).done;
      await recording.stop();
      const [wait, run] = operationsOf(recording.operations, two).filter(({ kind }) => kind !== 'alloc');
      const [held] = operationsOf(recording.operations, one).filter(({ kind }) => kind === 'host');
      const awaited = operationsOf(recording.operations, one).find(({ kind }) => kind === 'launch')!;
      expect(wait).toMatchObject({
        kind: 'wait',
        after: { device: device.info.id, stream: one.label, ticket: awaited.ticket, cause: 'array' },
      });
      expect(run!.startMs).toBeGreaterThanOrEqual(awaited.endMs! - CLOCK_MS);
      expect(held).toMatchObject({ label: 'pause', parked: [{ reason: 'host' }] });
      expect(held!.issuedMs! - held!.parked![0]!.fromMs).toBeGreaterThan(15);
      await Promise.all([one.close(), two.close()]);
    });

    rule('S1201', 'operations of a stream that was closed at once have their times', async () => {
      const { device } = chapter;
      await device.compile(twice);
      using recording = recordTimeline(device);
      // A GPU's clock is compared with the host's at first.
      using y = device.zeros([4]);
      await expect
        .poll(async () => (await device.stream.fill(y, 1).done, recording.operations.some(({ endMs }) => endMs !== undefined)), {
          timeout: 10_000,
        })
        .toBe(true);
      const stream = newStream(device, 'short');
      using x = device.zeros([1024]);
      stream.launch(twice, { threads: 1024, label: 'last' }, { x });
      await stream.close();
      await recording.stop();
      const last = recording.operations.find(({ label }) => label === 'last')!;
      expect(last.endMs).toBeGreaterThanOrEqual(last.startMs!);
    });

    rule('S1203', 'with more operations than maxEvents, the oldest go and are counted', async () => {
      const { device } = chapter;
      const recording = recordTimeline(device, { maxEvents: 100 });
      const stream = newStream(device, 'many');
      using x = stream.zeros([4]);
      let last = stream.fill(x, 1);
      for (let n = 0; n < 1000; n++) {
        last = stream.fill(x, n);
        if (n % 50 === 0) await last.done;
      }
      await last.done;
      await recording.stop();
      const seen = operationsOf(recording.operations, stream);
      expect(seen.length).toBeLessThanOrEqual(100);
      expect(seen.at(-1)!.id).toBe(last.id);
      expect(recording.dropped).toBeGreaterThanOrEqual(1002 - 100);
      await stream.close();
    });

    rule('S1204', 'recordings of a device are independent, each ends by stop or dispose, and wrong arguments are refused', async () => {
      const { device } = chapter;
      const first = recordTimeline(device);
      const second = recordTimeline(device, { maxEvents: 1000 });
      using x = device.zeros([4]);
      const both = device.stream.fill(x, 1);
      await both.done;
      expect(await first.stop()).toBe(first);
      const { length } = first.operations;
      const later = device.stream.fill(x, 2);
      await later.done;
      expect(first.operations.length).toBe(length);
      await second.stop();
      const idsOf = ({ operations }: typeof first): unknown[] => operations.filter(({ kind }) => kind === 'fill').map(({ id }) => id);
      expect(idsOf(second).slice(-2)).toEqual([both.id, later.id]);
      expect(idsOf(first).at(-1)).toBe(both.id);
      expect(second.operations.find(({ id }) => id === both.id)!.endMs).toBe(first.operations.find(({ id }) => id === both.id)!.endMs);
      expect((thrownBy(() => recordTimeline({ maxEvents: 5 } as never)) as Error).message).toContain('recordTimeline(undefined, options)');
      recordTimeline(device)[Symbol.dispose]();
      recordTimeline([device, device])[Symbol.dispose]();
      for (const [devices, opts] of [
        ['cuda:99', {}],
        [{}, {}],
        [device, { maxEvents: 0 }],
        [device, { maxEvents: 1.5 }],
        [device, { most: 3 }],
      ] as const)
        expect(thrownBy(() => recordTimeline(devices as never, opts as never))).toSatisfy(
          (error) => error instanceof ArgumentError || error instanceof StateError,
        );
      // Nothing of a refused call is left.
      recordTimeline(device)[Symbol.dispose]();
    });

    rule('S1205', 'a recording has what the thread did: waits, items and stages of pipelines, and builds', async () => {
      const { device } = chapter;
      const fresh = kernel('fresh', { x: inout(f32) }, ({ x }, { i }) => {
        x[i] = x[i]! + 0.125;
      });
      using recording = recordTimeline();
      const results$ = overlap(device, [1, 2, 3], { depth: 2 }, (value, lane) =>
        of(lane.full([64], value)).pipe(
          launch(lane, fresh, 64, (x) => ({ x })),
          mergeMap((x) => lane.time('read', x.read())),
          map((read) => read[63]),
        ),
      );
      expect(await lastValueFrom(results$.pipe(toArray()))).toEqual([1.125, 2.125, 3.125]);
      const held = newStream(device, 'held');
      held.hold(() => pause(5), { timeoutMs: 10_000, label: 'planned' });
      await device.synchronize();
      await recording.stop();
      const kinds = recording.spans.map(({ kind, name }) => `${kind} ${name}`);
      expect(kinds.filter((one) => one.startsWith('item')).toSorted()).toEqual(['item item 0', 'item item 1', 'item item 2']);
      // Of a wait for the whole device, the streams that it waited for.
      expect(kinds.filter((one) => one.startsWith('wait') && one.endsWith(` on ${held.label}`))).toEqual([
        `wait wait for planned on ${held.label}`,
      ]);
      expect(kinds).toContain('build build fresh');
      expect(kinds).toContain('stage read');
      expect(kinds.some((one) => /^wait wait for copy on lane [01]/.test(one))).toBe(true);
      for (const { startMs, endMs } of recording.spans) expect(endMs).toBeGreaterThanOrEqual(startMs);
    });

    rule('S1206', 'toChromeTrace has a row for each stream, and an arrow for each wait', async () => {
      const { device } = chapter;
      using recording = recordTimeline(device);
      const [one, two] = [newStream(device, 'one'), newStream(device, 'two')];
      one.hold(() => pause(5), { timeoutMs: 10_000 });
      using x = one.zeros([1024]);
      two.launch(twice, 1024, { x });
      await two.launch(twice, { threads: 1024, label: 'a "quoted" label' }, { x }).done;
      await recording.stop();
      const { traceEvents } = JSON.parse(recording.toChromeTrace()) as { traceEvents: TraceEvent[] };
      const rows = new Map(traceEvents.filter(({ name }) => name === 'thread_name').map((event) => [event.args?.name, rowOf(event)]));
      const named = traceEvents.find(({ name }) => name === 'a "quoted" label')!;
      expect(rowOf(named)).toBe(rows.get(two.label));
      expect(named).toMatchObject({ ph: 'X', cat: 'launch', dur: expect.any(Number) });
      const [from, to] = ['s', 'f'].map((phase) => traceEvents.find(({ ph }) => ph === phase)!);
      expect(rowOf(from!)).toBe(rows.get(one.label));
      expect(rowOf(to!)).toBe(rows.get(two.label));
      expect(to!.id).toBe(from!.id);
      await Promise.all([one.close(), two.close()]);
    });

    rule('S1207', 'MILLRACE_TIMELINE and --import millrace/timeline record a program that does not record itself', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-timeline-'));
      try {
        const file = join(folder, 'run.json');
        const program = `import { openDevice } from 'millrace';
          const device = await openDevice('${target.name.startsWith('cpu') ? 'cpu' : chapter.device.info.id}');
          const x = device.zeros([64]);
          device.stream.fill(x, 3);
          console.log((await x.read())[5]);`;
        const args = ['--import', 'millrace/timeline', '--input-type=module', '-e', program];
        const env = { ...process.env, MILLRACE_TIMELINE: file };
        const { stdout } = await promisify(execFile)(process.execPath, args, { env, cwd: import.meta.dirname });
        expect(stdout).toBe('3\n');
        const { traceEvents } = JSON.parse(readFileSync(file, 'utf8')) as { traceEvents: { name: string; ph: string }[] };
        const names = traceEvents.filter(({ ph }) => ph === 'X').map(({ name }) => name);
        expect(names.filter((name) => name === 'fill')).toHaveLength(2);
        expect(names).toContain('copy');
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
});
