// Chapter 12: files of recorded timelines.
import { describe, expect } from 'vitest';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as pause } from 'node:timers/promises';
import { launch, overlap } from 'millrace';
import { recordTimeline } from 'millrace/timeline';
import { lastValueFrom, mergeMap, of, toArray } from 'rxjs';
import { defineChapter } from '../../support/chapter.js';
import { twice } from '../../support/kernels.js';
import { readPerfetto } from '../../support/perfetto-reader.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

defineChapter((target) => {
  describe('12 files of timelines', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const args = (...rest: string[]): string[] => ['--import', 'millrace/timeline', '--input-type=module', '-e', ...rest];

    rule('S1220', 'toPerfetto has a thread for each stream and rows of the host, whose slices are the recorded ones', async () => {
      const { device } = chapter;
      await device.compile(twice);
      using recording = recordTimeline(device);
      const results$ = overlap(device, [1, 2, 3], { depth: 2 }, (value, lane) =>
        of(lane.full([64], value)).pipe(
          launch(lane, twice, 64, (x) => ({ x })),
          mergeMap((x) => lane.time('read', x.read())),
        ),
      );
      await lastValueFrom(results$.pipe(toArray()));
      await recording.stop();
      const { slices } = readPerfetto(recording.toPerfetto());
      const ran = recording.operations.filter(({ startMs, endMs }) => startMs !== undefined && endMs !== undefined);
      expect(ran.length).toBeGreaterThan(3);
      const own = slices.filter(({ process }) => process === device.info.id);
      expect(own.map(({ track, args: { ticket } }) => `${track} ${ticket}`).toSorted()).toEqual(
        ran.map(({ stream, ticket }) => `${stream} ${ticket}`).toSorted(),
      );
      const originMs = Math.min(recording.startMs, ...recording.operations.map(({ submittedMs = Infinity }) => submittedMs));
      for (const { stream, ticket, kind, label = kind, bytes, startMs, endMs } of ran) {
        const slice = own.find(({ track, args: notes }) => track === stream && notes['ticket'] === ticket)!;
        expect(slice).toMatchObject({ name: label, category: kind, depth: 0 });
        expect(slice.args['bytes']).toBe(bytes);
        // The clocks of a GPU and of the host are compared up to some microseconds.
        expect(Math.abs(slice.ts - (startMs! - originMs) * 1e6)).toBeLessThan(1e5);
        expect(Math.abs(slice.dur - (endMs! - startMs!) * 1e6)).toBeLessThan(1e5);
      }
      const host = slices.filter(({ process }) => process === 'host');
      const items = host.filter(({ category }) => category === 'item');
      expect(items.map(({ track, depth }) => [track.replace(/\d/, 'N'), depth])).toEqual(
        [1, 2, 3].map(() => [`lane N on ${device.info.id}`, 0]),
      );
      for (const stage of host.filter(({ name }) => name === 'read')) {
        const around = items.find(({ track, ts, dur }) => track === stage.track && ts <= stage.ts && ts + dur >= stage.ts + stage.dur);
        expect([stage.depth, around?.category]).toEqual([1, 'item']);
      }
    });

    rule('S1221', 'flows lead from each submit to its operation, and from an awaited operation to the one that waited', async () => {
      const { device } = chapter;
      await device.compile(twice);
      using recording = recordTimeline(device);
      const one = device.createStream({ label: 'one of files' });
      const two = device.createStream({ label: 'two of files' });
      one.hold(() => pause(5), { timeoutMs: 10_000 });
      using x = one.zeros([1024]);
      one.launch(twice, { threads: 1024, label: 'first' }, { x });
      await two.launch(twice, { threads: 1024, label: 'then' }, { x }).done;
      await recording.stop();
      const bytes = recording.toPerfetto();
      const { flows } = readPerfetto(bytes);
      // A file that lacks its beginning, its end or a byte is not read as one with fewer slices.
      for (const damaged of [bytes.subarray(0, -1), bytes.subarray(0, -3), bytes.subarray(1)])
        expect(() => {
          if (readPerfetto(damaged).slices.length === 0) throw new Error('It has no slices.');
        }).toThrow();
      const submits = flows.filter(([{ track }]) => track === 'submits');
      expect(submits.find(([, { name }]) => name === 'then')).toMatchObject([
        { name: 'then', process: 'host', dur: 0 },
        { track: two.label, process: device.info.id },
      ]);
      for (const [from, to] of submits) expect([from.name, from.ts <= to.ts]).toEqual([to.name, true]);
      const between = flows.filter(([{ track }]) => track === one.label);
      expect(between.map(([from, to]) => [from.name, to.track, to.name])).toContainEqual(['first', two.label, 'then']);
      await Promise.all([one.close(), two.close()]);
    });

    rule(
      'S1222',
      'counters tell how many operations of a stream were pending, the bytes in flight, and operations per second',
      async () => {
        const { device } = chapter;
        using recording = recordTimeline(device);
        const stream = device.createStream({ label: 'counted' });
        // Large enough that the copy does not end in the tick of the clock in which it began.
        const count = 2 ** 20;
        using x = stream.zeros([count]);
        await stream.host(() => undefined).done;
        stream.hold(() => pause(20), { timeoutMs: 10_000 });
        for (let n = 0; n < 5; n++) stream.fill(x, n);
        await stream.copy(new Float32Array(count), x).done;
        await recording.stop();
        const { counters } = readPerfetto(recording.toPerfetto());
        const valuesOf = (name: string): number[] => counters.find((one) => one.name === name)!.values.map(([, value]) => value);
        // The hold and what came after it: 7, or one more if the copy has a part of its own.
        expect(Math.max(...valuesOf('pending of counted'))).toBeGreaterThanOrEqual(7);
        expect(Math.min(...valuesOf('pending of counted'))).toBe(0);
        expect(valuesOf('pending of counted').at(-1)).toBe(0);
        expect(Math.max(...valuesOf('bytes in flight'))).toBe(4 * count);
        expect(valuesOf('bytes in flight').at(-1)).toBe(0);
        const { values, unit } = counters.find(({ name }) => name === 'operations per second')!;
        expect(unit).toBe('/s');
        const ended = recording.operations.filter(({ endMs }) => endMs !== undefined).length;
        const sum = values.reduce((all, [ts, value], at) => all + (value * ((values[at + 1]?.[0] ?? ts) - ts)) / 1e9, 0);
        expect(sum).toBeCloseTo(ended, 3);
        await stream.close();
      },
    );

    rule('S1223', 'MILLRACE_TIMELINE writes the format that the ending of the file names, and refuses other endings at once', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-timeline-'));
      const run = (name: string, program: string): Promise<unknown> =>
        promisify(execFile)(process.execPath, args(program), {
          env: { ...process.env, MILLRACE_TIMELINE: join(folder, name) },
          cwd: import.meta.dirname,
        });
      try {
        const program = `import { openDevice } from 'millrace';
          const device = await openDevice('${target.name.startsWith('cpu') ? 'cpu' : chapter.device.info.id}');
          await device.zeros([64]).read();`;
        await run('run.pftrace', program);
        const { slices } = readPerfetto(readFileSync(join(folder, 'run.pftrace')));
        expect(slices.map(({ category }) => category)).toContain('copy');
        await run('run.html', program);
        expect(readFileSync(join(folder, 'run.html'), 'utf8')).toMatch(/^<!doctype html>[^]*<\/html>\n$/);
        await expect(run('run.txt', 'console.log(1)')).rejects.toMatchObject({
          stdout: '',
          stderr: expect.stringMatching(/ArgumentError: The name of the file.*run\.txt'\) ends in none of \.json, \.pftrace, \.html/),
        });
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
});
