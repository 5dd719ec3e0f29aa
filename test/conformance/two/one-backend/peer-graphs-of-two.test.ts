// Chapter 10, with chapter 3: graphs whose kernels use arrays of another device.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  CaptureError,
  cudaModule,
  type DeviceArray,
  f32,
  i32,
  inout,
  input,
  kernel,
  output,
  UpstreamError,
} from 'millrace';
import { defineChapter } from '../../../support/chapter.js';
import { chapterDevices, rulesOf } from '../../../support/rule.js';
import { rejectionOf, thrownBy } from '../../../support/wait.js';

const COUNT = 512;

const added = kernel('peer_graph_added', { x: input(f32), y: inout(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! + y[i]!;
});
const shifted = kernel('peer_graph_shifted', { x: input(f32), y: output(f32), by: i32 }, ({ x, y, by }, { i }) => {
  y[i] = x[i + by]!;
});
const counters = cudaModule(`__device__ float apart[16];
  extern "C" __global__ void peer_graph_touch() { apart[0] += 1; }`);

defineChapter((target) => {
  describe('10 graphs: arrays of another device in kernels', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);
    const all = (value: number): Float32Array => new Float32Array(COUNT).fill(value);

    rule('S1035', 'a graph uses arrays of the other device, in order with the work of both, and keeps the access', async () => {
      const { device, other } = chapter;
      using here = device.full(COUNT, 1);
      using there = other.full(COUNT, 2);
      const body = (): void => {
        device.stream.launch(added, COUNT, { x: there, y: here });
        device.stream.launch(added, COUNT, { x: here, y: there });
        device.stream.fill(there, 1);
      };
      expect(thrownBy(() => device.stream.capture(body))).toBeInstanceOf(ArgumentError);
      await other.peers.grant(device, 'pool');
      const graph = device.stream.capture(body);
      for (let n = 1; n <= 3; n++) {
        other.stream.fill(there, n);
        device.stream.launch(graph);
        expect(await there.read()).toEqual(all(1));
      }
      expect(await here.read()).toEqual(all(7));
      await other.peers.revoke(device, 'pool');
      expect(thrownBy(() => device.stream.launch(added, COUNT, { x: there, y: here }))).toBeInstanceOf(ArgumentError);
      await device.stream.launch(graph).done;
      expect(await here.read()).toEqual(all(8));
      await graph.close();
    });

    rule('S1035', 'a graph that fails poisons arrays of both devices, and a poisoned array fails the graph', async () => {
      const { device, other } = chapter;
      await other.peers.grant(device, 'pool');
      using here = device.full(COUNT, 1);
      using there = other.full(COUNT, 2);
      const failing = device.stream.capture(() => void device.stream.launch(shifted, COUNT, { x: here, y: there, by: 1 }));
      const reading = device.stream.capture(() => void device.stream.launch(added, COUNT, { x: there, y: here }));
      const failed = device.stream.launch(failing);
      const behind = device.stream.launch(reading);
      expect(await rejectionOf(there.read())).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(behind.done)).toBeInstanceOf(UpstreamError);
      expect(await rejectionOf(failed.done)).toBeInstanceOf(BoundsError);
      for (const array of [here, there]) device.stream.fill(array, 3);
      await device.stream.launch(reading).done;
      expect(await here.read()).toEqual(all(6));
      await Promise.all([failing.close(), reading.close()]);
      await other.peers.revoke(device, 'pool');
    });

    rule('S1035', 'memory outside of the pool, and arrays of another device in bodies and slots, are refused', async () => {
      const { device, other } = chapter;
      if (!(await other.peers.canGrant(device, 'memory'))) return;
      for (const what of ['memory', 'pool'] as const) await other.peers.grant(device, what);
      using here = device.full(16, 1);
      using there = other.full(16, 2);
      const capturing = (x: DeviceArray<'f32'>): unknown =>
        thrownBy(() => device.stream.capture(() => void device.stream.launch(added, 16, { x, y: here })));
      expect(capturing(counters.global(other, 'apart', f32, 16))).toBeInstanceOf(ArgumentError);
      if (target.supports.interprocess) {
        using apart = other.interprocess(16, 'f32');
        const refused = capturing(apart);
        expect(refused).toBeInstanceOf(CaptureError);
        expect(refused).toMatchObject({ reason: 'unsupported-node' });
      }
      using condition = device.full(1, 1, 'i32');
      expect(
        thrownBy(() => device.stream.captureIf(condition, () => void device.stream.launch(added, 16, { x: there, y: here }))),
      ).toBeInstanceOf(CaptureError);
      const graph = device.stream.capture({ x: input(f32) }, (stream, { x }) => void stream.launch(added, 16, { x, y: here }));
      expect(thrownBy(() => device.stream.launch(graph, { x: there }))).toBeInstanceOf(ArgumentError);
      await graph.close();
      for (const what of ['memory', 'pool'] as const) await other.peers.revoke(device, what);
    });
  });
});
