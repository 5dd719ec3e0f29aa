// The types of the reactive layer: what must be inferred and what must not compile. Checked by tsc, never run.
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  cpuStage,
  cpuTasks,
  download,
  f32,
  inout,
  kernel,
  launch,
  overlap,
  u8,
  upload,
  type Device,
  type DeviceArray,
  type Overlapped,
  type PinnedArray,
} from 'millrace';
import type { Piscina } from 'piscina';
import { filter, from, lastValueFrom, max, of, take, type Observable } from 'rxjs';

const scale = kernel('scale', { x: inout(f32), factor: f32 }, ({ x, factor }, { i }) => {
  x[i] = x[i]! * factor;
});

interface Stages {
  total(data: Float32Array): number;
  label(data: Uint8Array): Promise<string>;
  readonly version: string;
}

export function promised(gpu: Device, chunks: AsyncIterable<Float32Array>): Promise<number> {
  const run: Overlapped<number> = overlap(gpu, chunks, { depth: 3 }, async (chunk, lane) => {
    const x: DeviceArray<'f32'> = lane.empty(chunk.length);
    const bytes: DeviceArray<'u8'> = lane.empty([2, 3], u8);
    const pinned: PinnedArray<'i32'> = lane.pinned(4, 'i32');
    lane.stream.copy(x, chunk);
    return x.length + bytes.length + pinned.length;
  });
  return lastValueFrom(run.pipe(max()));
}

export function chained(gpu: Device, frames: Iterable<Float32Array>, pool: Piscina): Overlapped<number> {
  const tasks = cpuTasks<Stages>(pool);
  return overlap(gpu, frames, {}, (frame, lane) =>
    of(frame).pipe(
      upload(lane, { shape: [2, 2] }),
      launch(
        lane,
        scale,
        (x) => x.shape,
        (x) => ({ x, factor: 2 }),
      ),
      download(lane),
      cpuStage(tasks, 'total', (x) => x),
    ),
  );
}

export function pinnedChain(gpu: Device, frames: Iterable<Float32Array>, pool: Piscina): Overlapped<number> {
  const tasks = cpuTasks<Stages>(pool);
  return overlap(gpu, frames, {}, (frame, lane) =>
    of(frame).pipe(
      upload(lane),
      download(lane, { pinned: true }),
      cpuStage(tasks, 'total', (x) => x.data),
    ),
  );
}

export function sources(gpu: Device, web: ReadableStream<number>, node: Readable): unknown[] {
  const label = (item: unknown): Promise<string> => Promise.resolve(String(item));
  const fromNode: Overlapped<string> = overlap(gpu, node, { onError: { retry: 2 } }, label);
  return [overlap(gpu, web, { ordered: false }, label), overlap(gpu, new Set([1]), { onError: 'skip' }, label), fromNode];
}

export function awaited(gpu: Device, pages: readonly Promise<string>[], mixed: Set<number | Promise<number>>): Overlapped<number>[] {
  const lengths: Overlapped<number> = overlap(gpu, pages, async (page) => page.length);
  const numbers: Overlapped<number> = overlap(gpu, mixed, {}, async (n) => n + 1);
  function* answers(): Generator<Promise<number>> {
    yield Promise.resolve(1);
  }
  return [lengths, numbers, overlap(gpu, answers, { onError: 'skip', onSkip: ({ item }) => item.toFixed() }, async (n) => n + 1)];
}

export function takenOff(gpu: Device): Overlapped<DeviceArray<'f32'>> {
  return overlap(gpu, [[1, 2, 3]], async (list, { from: make, detach }) => {
    const list32: DeviceArray<'f32'> = make(list);
    const list8: DeviceArray<'u8'> = make(list, { dtype: u8 });
    return detach(list8.length === 3 ? list32 : make(list, { shape: [3, 1] }));
  });
}

export function written(gpu: Device, file: NodeJS.WritableStream): Promise<void> {
  return pipeline(
    overlap(gpu, ['a'], {}, (text) => Promise.resolve(text)),
    file,
  );
}

export function watched(gpu: Device): Observable<string> {
  const launches = from(gpu.stream).pipe(
    filter((operation) => operation.kind === 'launch'),
    take(3),
  );
  launches.subscribe((operation) => operation.label?.length);
  return of('');
}

export function ordinary(gpu: Device): Observable<Float32Array<ArrayBuffer>> {
  return of(gpu.zeros(4)).pipe(download(gpu.stream));
}

export function refused(gpu: Device, pool: Piscina): unknown[] {
  const label = (item: unknown): Promise<string> => Promise.resolve(String(item));
  const tasks = cpuTasks<Stages>(pool);
  const bytes = new Uint8Array(4);
  return [
    // @ts-expect-error rxjs would flatten an array
    overlap(gpu, [1], {}, () => new Float32Array(4)),
    // @ts-expect-error and a string
    overlap(gpu, [1], {}, () => 'text'),
    // @ts-expect-error a string is iterable, but no list of items
    overlap(gpu, 'text', {}, (item) => Promise.resolve(item)),
    // @ts-expect-error nor is what a function returns
    overlap(gpu, () => 'text', label),
    // @ts-expect-error a number is no source
    overlap(gpu, 5, {}, (item) => Promise.resolve(item)),
    // @ts-expect-error no such policy
    overlap(gpu, [1], { onError: 'ignore' }, (item) => Promise.resolve(item)),
    // @ts-expect-error no such task
    tasks.run('none', bytes),
    // @ts-expect-error not a function
    tasks.run('version', bytes),
    // @ts-expect-error total takes floats
    tasks.run('total', bytes),
    // @ts-expect-error scale works on floats
    launch(gpu.stream, scale, 4, (x: DeviceArray<'u8'>) => ({ x, factor: 1 })),
  ];
}
