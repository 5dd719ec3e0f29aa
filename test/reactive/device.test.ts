// The reactive layer on a real device and a real pool. Tests that need neither are in test/unit/reactive.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  cpuStage,
  cpuTasks,
  createCpuPool,
  download,
  f32,
  inout,
  input,
  kernel,
  launch,
  openDevice,
  overlap,
  upload,
  type Device,
} from 'millrace';
import { lastValueFrom, of, toArray } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

const scale = kernel('scale', { x: inout(f32), factor: f32 }, ({ x, factor }, { i }) => {
  x[i] = x[i]! * factor;
});
const accumulate = kernel('accumulate', { x: input(f32), sum: inout(f32) }, ({ x, sum }, { i }) => {
  sum[i] = sum[i]! * 2 + x[i]!;
});

interface Stages {
  total(data: Float32Array): number;
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-reactive-'));
const stages = join(folder, 'stages.mjs');
writeFileSync(stages, 'export function total(data) { return data.reduce((sum, value) => sum + value, 0); }\n');

let device: Device;
beforeAll(async () => {
  device = await openDevice('cpu');
  await device.compile(scale, accumulate);
});
afterAll(async () => {
  await device.close();
  rmSync(folder, { recursive: true });
});

const streamCount = (): number => device.inspect().streams.length;
let streamsBefore: number;
beforeAll(() => {
  streamsBefore = streamCount();
});
// A subscriber that unsubscribes is not told of the end of the run, so wait for it.
afterEach(() => vi.waitFor(() => expect(streamCount()).toBe(streamsBefore)));

function* chunks(count: number, length: number): Generator<Float32Array> {
  for (let at = 0; at < count; at++) yield new Float32Array(length).fill(at);
}

describe('the report of a run', () => {
  it('tells the build of a kernel apart from its launches', async () => {
    // No other run has built it, so no cache has it.
    const fresh = kernel(
      'fresh',
      { x: inout(f32) },
      ({ x }, { i, unlike }) => {
        x[i] = x[i]! + unlike;
      },
      { constants: { unlike: Date.now() } },
    );
    const stagesOf = async (): Promise<Map<string, number>> => {
      const run = overlap(device, [1, 2, 3], (item, lane) =>
        of(new Float32Array(16).fill(item)).pipe(
          upload(lane),
          launch(lane, fresh, 16, (x) => ({ x })),
          download(lane),
        ),
      );
      for await (const _ of run);
      return new Map(run.report().stages.map(({ name, busyMs }) => [name, busyMs]));
    };
    const first = await stagesOf();
    // The compiler is a process of its own, which takes longer than three launches of 16 threads.
    expect(first.get('build fresh')).toBeGreaterThan(first.get('launch fresh')!);
    // The message that tells of the build may arrive after the launches.
    await device.compile(fresh);
    expect([...(await stagesOf()).keys()]).toEqual(['source', 'lanes', 'consumer', 'upload', 'launch fresh', 'download']);
  });
});

describe('overlap on a device', () => {
  it('runs a chain of operators on every lane, with a stage on the pool', async () => {
    await using pool = createCpuPool(stages, { threads: 2 });
    const tasks = cpuTasks<Stages>(pool);
    const run = overlap(device, chunks(20, 1000), { depth: 3 }, (chunk, lane) =>
      of(chunk).pipe(
        upload(lane),
        launch(
          lane,
          scale,
          (x) => x.length,
          (x) => ({ x, factor: 3 }),
        ),
        download(lane, { pinned: true }),
        cpuStage(tasks, 'total', (pinned) => pinned.data),
      ),
    );
    expect(await lastValueFrom(run.pipe(toArray()))).toEqual(Array.from({ length: 20 }, (_, at) => at * 3000));
    expect(run.report()).toMatchObject({ items: 20, skipped: 0, depth: 3 });
  });

  it('keeps items in order if they share an array', async () => {
    using sum = device.zeros(1);
    const run = overlap(device, chunks(30, 1), { depth: 3 }, async (chunk, lane) => {
      const x = lane.empty(1);
      lane.stream.copy(x, chunk);
      await lane.stream.launch(accumulate, 1, { x, sum }).done;
      return chunk[0];
    });
    for await (const _ of run);
    let expected = 0;
    for (let at = 0; at < 30; at++) expected = Math.fround(expected * 2 + at);
    expect([...(await sum.read())]).toEqual([expected]);
  });
});
