// Chapter 8: the functions of the module, which need no device and no stream, and devices by name.
import { setTimeout as later } from 'node:timers/promises';
import { toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  CaptureError,
  array,
  copy,
  createBatcher,
  createLanes,
  createStream,
  cudaModule,
  type DeviceLike,
  empty,
  fill,
  full,
  getDefaultDevice,
  getStream,
  i32,
  inout,
  launch,
  type MillraceError,
  ones,
  openDevice,
  overlap,
  type Place,
  pinned,
  setDefaultDevice,
  StateError,
  synchronizeDevice,
  u32,
  withDevice,
  zeros,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { plusHere } from '../../support/derived.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('8 lifecycle: functions of the module before a device is open', () => {
    const rule = rulesOf(target);

    rule('S820', 'without an open device the functions throw a StateError that names openDevice', async () => {
      const calls: readonly (() => unknown)[] = [
        () => zeros(4),
        () => ones(4, 'i32'),
        () => empty(4),
        () => full(4, 1),
        () => array([1]),
        () => pinned(4),
        () => copy(new Float32Array(1) as never, new Float32Array(1) as never),
        () => fill({} as never, 1),
        () => launch(mixKernel, 1, {} as never),
        () => getStream(),
        () => createStream(),
        () => getDefaultDevice(),
        () => synchronizeDevice(),
      ];
      for (const call of calls) {
        const error = await rejectionOf((async () => call())());
        expect(error, String(call)).toBeInstanceOf(StateError);
        expect(error.message, String(call)).toContain('openDevice()');
      }
      expect(thrownBy(() => withDevice('cuda:3', () => 1)).message).toBe(
        "Device cuda:3 is not open in this thread (open: none). Call openDevice('cuda:3') first.",
      );
    });
  });

  describe('8 lifecycle: functions of the module', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S820', 'the functions work on the current stream of the default device', async () => {
      const { device } = chapter;
      const stream = createStream({ label: 'mine' });
      expect([stream.label, stream.device.info.id]).toEqual(['mine', device.info.id]);
      expect(getStream()).toBe(device.defaultStream);
      await stream.run(async () => {
        await later(1);
        expect(getStream()).toBe(stream);
        await using latch = await hold(target, stream);
        const [a, b, c, d, e] = [zeros(3), ones([1, 3], 'i32'), full(3, 7n, 'i64'), array([1, 2, 3]), empty(3)];
        using host = pinned(3, 'f32');
        const done = [copy(e, d), copy(host, d), fill(a, 5)];
        // All of them wait for the latch, so all of them are on the stream.
        expect(done.map(({ isComplete }) => isComplete)).toEqual([false, false, false]);
        latch.open();
        expect([...(await a.read())]).toEqual([5, 5, 5]);
        expect([b.shape, [...(await b.read())]]).toEqual([
          [1, 3],
          [1, 1, 1],
        ]);
        expect([...(await c.read())]).toEqual([7n, 7n, 7n]);
        expect([...(await e.read())]).toEqual([1, 2, 3]);
        await done[1]!.done;
        expect([...host.data]).toEqual([1, 2, 3]);
        const plain = new Float32Array(2);
        await copy(plain, d, { srcOffset: 1, label: 'back' }).done;
        expect([...plain]).toEqual([2, 3]);
        for (const made of [a, b, c, d, e]) made[Symbol.dispose]();
      });
      await stream.close();
    });

    rule('S820', 'launch submits to the current stream, to the stream of its options, or launches a graph on its device', async () => {
      const { device } = chapter;
      using x = full(8, 3, 'u32');
      const stream = createStream();
      await using latch = await hold(target, stream, mixKernel);
      const first = launch(mixKernel, { grid: 1, block: 1 }, { x, k: 1 });
      const second = launch(mixKernel, { grid: 1, block: 1 }, { x, k: 2 }, { device: device.info.id, stream });
      await first.done;
      expect(second.isComplete).toBe(false);
      latch.open();
      await second.done;
      expect(await x.item(0)).toBe(mixed(3, 1, 2));
      const graph = stream.capture({ to: u32 }, (s, { to }) => s.fill(x, to));
      await launch(graph, { to: 9 }).done;
      expect((await x.read())[5]).toBe(9);
      expect(thrownBy(() => launch(5 as never, 1, {})).message).toContain(
        'launch works on a Lane or a Stream, or takes a kernel or a graph',
      );
      await Promise.all([graph.close(), stream.close()]);
    });

    rule('S820', 'in a capture, the functions work on the captured stream, also inside of device.run', async () => {
      const { device } = chapter;
      const stream = createStream();
      using x = zeros(4);
      using y = zeros(4);
      await device.synchronize();
      const graph = stream.capture(() => {
        expect(getStream()).toBe(stream);
        device.run(() => {
          expect(getStream()).toBe(stream);
          fill(x, 3);
          copy(y, x);
        });
        withDevice(device.info.id, () => launch(plusHere, 4, { x: y }));
        expect(thrownBy(() => void synchronizeDevice())).toBeInstanceOf(CaptureError);
      });
      expect(graph.nodes.map(({ kind }) => kind)).toEqual(['fill', 'copy', 'launch']);
      expect([...(await y.read())]).toEqual([0, 0, 0, 0]);
      launch(graph);
      expect([...(await y.read())]).toEqual([4, 4, 4, 4]);
      await Promise.all([graph.close(), stream.close()]);
    });

    rule('S601', 'the functions refuse wrong arguments with typed errors, and the stream continues', async () => {
      const { device } = chapter;
      using x = zeros(4);
      const wrong: readonly unknown[] = [
        undefined,
        null,
        -1,
        1.5,
        NaN,
        'x',
        {},
        [],
        () => 1,
        Symbol('s'),
        5n,
        true,
        new Float32Array(3),
        device.stream,
      ];
      const places: readonly unknown[] = [
        null,
        5,
        'cpu',
        { device: null },
        { device: 'x' },
        { stream: null },
        { stream: device },
        { on: x },
        device,
      ];
      const calls: readonly ((value: never) => unknown)[] = [
        ...([launch, copy, full, array, pinned, zeros, ones, empty] as ((value: unknown, other: unknown) => unknown)[]).map(
          (fn) => (value: unknown) => fn(value, 'q'),
        ),
        ...places.map((place) => () => zeros(1, 'f32', place as Place)),
        ...places.map((place) => () => fill(x, 1, place as Place)),
        ...places.map((place) => () => launch(plusHere, 4, { x }, place as Place)),
        ...places.map((place) => () => copy(x, x, place as Place)),
        ...places.map((place) => () => array([1], place as Place)),
        (value) => fill(value, 1),
        (value) => fill(x, typeof value === 'number' ? ('x' as never) : value),
        (value) => withDevice(device, typeof value === 'function' ? (undefined as never) : value),
        (value) => withDevice(value, () => 1),
        (value) => setDefaultDevice(value),
        (value) => getStream(value ?? (null as never)),
        (value) => createStream({ device: value ?? (null as never) }),
      ];
      for (const call of calls) {
        for (const value of wrong) {
          const error = await rejectionOf((async () => call(value as never))());
          expect(error, `${String(call)} ${typeof value}`).toMatchObject({ code: expect.stringMatching(/^ERR_MILLRACE_/) });
        }
      }
      expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
    });

    rule('S822', 'every function that takes a device takes the name of an open one', async () => {
      const { device } = chapter;
      const { id } = device.info;
      await synchronizeDevice(id);
      expect(getStream(id)).toBe(device.stream);
      const stream = createStream({ device: id, label: 'named' });
      expect(stream.device).toBe(device);
      await stream.close();
      setDefaultDevice(id);
      expect(
        await overlap(id, [1, 2], {}, async (n, lane) => lane.full(1, n).item())
          .pipe(toArray())
          .toPromise(),
      ).toEqual([1, 2]);
      const lanes = createLanes([id], { maxQueue: 1 }, async (n: number) => n);
      expect(await lanes.run(5)).toBe(5);
      await lanes.close();
      const batcher = createBatcher(id, { maxItems: 1, maxWaitMs: 1, maxQueue: 1 }, async (values: readonly number[]) => values);
      expect(await batcher.run(6)).toBe(6);
      await batcher.close();
      expect(await device.peers.isGranted(id)).toBe(true);
      expect([device.isSameDevice(id), device.isSameDevice('cuda:77')]).toEqual([true, false]);
      const module = cudaModule('__device__ int total; extern "C" __global__ void add(int* x) { total += *x; }');
      expect(module.kernel('add', { x: inout(i32) }).name).toBe('add');
      expect(module.global(id, 'total', 'i32', 1).device).toBe(device);
    });

    rule('S822', 'names that name no device, and names of devices that are not open, are refused with a remedy', async () => {
      const { device } = chapter;
      const module = cudaModule('__device__ int total; extern "C" __global__ void add(int* x) { total += *x; }');
      const takers: readonly ((name: DeviceLike) => unknown)[] = [
        (name) => synchronizeDevice(name),
        (name) => getStream(name),
        (name) => createStream({ device: name }),
        (name) => zeros(1, 'f32', { device: name }),
        (name) => array([1], { device: name }),
        (name) => setDefaultDevice(name),
        (name) => withDevice(name, () => 1),
        (name) => overlap(name, [1], {}, async (n) => n),
        (name) => createLanes([name], { maxQueue: 1 }, async (n: number) => n),
        (name) => device.peers.canGrant(name),
        (name) => device.peers.grant(name),
        (name) => device.peers.revoke(name),
        (name) => module.global(name, 'total', 'i32', 1),
      ];
      for (const take of takers) {
        const refused = async (name: string): Promise<Error> => rejectionOf((async () => take(name as DeviceLike))());
        const absent = await refused('cuda:77');
        expect(absent, String(take)).toBeInstanceOf(StateError);
        expect(absent.message).toBe(
          `Device cuda:77 is not open in this thread (open: ${device.info.id}). Call openDevice('cuda:77') first.`,
        );
        const misspelt = await refused('GPU 1');
        expect(misspelt, String(take)).toBeInstanceOf(ArgumentError);
        expect(misspelt.message).toMatch(/\('GPU 1'\) is none of 'cuda', .* \(did you mean 'cuda:1'\?\)\.$/);
      }
      const meant = { cuda0: 'cuda:0', 'CUDA:0': 'cuda:0', gpu: 'cuda', 'cuda:01': 'cuda:1', 'cpu-2': 'cpu:2', 7: 'cuda:7', CPU: 'cpu' };
      for (const [wrong, right] of Object.entries(meant)) {
        for (const refusal of [thrownBy(() => getStream(wrong as DeviceLike)), await rejectionOf(openDevice(wrong as 'cuda'))]) {
          expect(refusal).toBeInstanceOf(ArgumentError);
          expect(refusal.message).toContain(`(did you mean '${right}'?)`);
        }
      }
      for (const wrong of ['', 'tpu', 'auto', 'host', {}, null, Symbol('s'), 1.5, openDevice('nothing' as 'cuda').catch(() => undefined)]) {
        const refusal = thrownBy(() => getStream(wrong as never));
        expect(refusal).toBeInstanceOf(ArgumentError);
        expect((refusal as MillraceError).message).not.toContain('did you mean');
      }
    });
  });
});
