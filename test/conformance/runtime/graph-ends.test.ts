// Chapter 10, tenth part: graphs of devices that close or are lost. Each test opens its own device, and no other is open meanwhile.
import { describe, expect } from 'vitest';
import { ArgumentError, CaptureError, DeviceLostError, StateError } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, usedBytes } from '../../support/graphs.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { rulesOf, withDevice } from '../../support/rule.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('10 graphs: ends of devices', () => {
    const rule = rulesOf(target);

    rule('S1001', 'a capture on a closed stream or device is a StateError, and the function is not called', async () => {
      let calls = 0;
      const device = await target.open();
      const [closed, stream] = [device.createStream(), device.createStream()];
      await closed.close();
      const errors = [thrownBy(() => closed.capture(() => void calls++))];
      await device.close();
      errors.push(thrownBy(() => stream.capture(() => void calls++)));
      for (const error of errors) {
        expect(error).toBeInstanceOf(StateError);
        expect(error).not.toBeInstanceOf(CaptureError);
      }
      expect(calls).toBe(0);
    });

    rule('S1015', 'a device closes with graphs open and launches pending, which finish', async () => {
      const device = await target.open();
      const stream = device.createStream();
      const x = device.zeros(1, 'u32');
      const pinned = device.pinned(1, 'u32');
      const graph = stream.capture((s) => {
        s.launch(mixKernel, ONE, { x, k: 1 });
        s.copy(pinned, x);
      });
      let expected = 0;
      for (let n = 0; n < 20; n++) expected = mixed(expected, 1, 1);
      const launched = Array.from({ length: 20 }, () => stream.launch(graph).done);
      const seen = launched.at(-1)!.then(() => pinned.read()[0]);
      await Promise.all([device.close(), ...launched]);
      expect(await seen).toBe(expected);
      expect(thrownBy(() => stream.launch(graph))).toBeInstanceOf(StateError);
      expect(thrownBy(() => graph.launch())).toBeInstanceOf(StateError);
      await graph.close();
    });

    rule('S1015', 'a device that is opened again uses no memory of the graphs that were left open', async () => {
      const leave = async (): Promise<number> =>
        withDevice(target, {}, async (device) => {
          const before = await usedBytes(device);
          const stream = device.createStream();
          const x = device.zeros(1 << 16);
          const graph = stream.capture((s) => void s.copy(x, s.full(1 << 16, 2)));
          await stream.launch(graph).done;
          return before;
        });
      expect(await leave()).toBe(await leave());
    });

    rule('S1015', 'destroy rejects pending launches with DeviceLostError, and close of their graph resolves', async () => {
      const device = await target.open();
      const stream = device.createStream();
      const x = device.zeros(1, 'u32');
      const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
      await device.synchronize();
      stream.hold(() => new Promise(() => undefined), { timeoutMs: 60_000 }).done.catch(() => undefined);
      const launched = Array.from({ length: 3 }, () => rejectionOf(stream.launch(graph).done));
      const closing = graph.close().catch((error: unknown) => error);
      await device.destroy();
      for (const error of await Promise.all(launched)) expect(error).toBeInstanceOf(DeviceLostError);
      const ended = await closing;
      if (ended !== undefined) expect(ended).toBeInstanceOf(DeviceLostError);
      await graph.close();
    });

    rule('S1011', 'a stream of another opening of the same device launches the graph', async () => {
      await withDevice(target, {}, async (device) => {
        const again = await target.open();
        const [stream, other] = [device.createStream(), again.createStream()];
        using x = device.zeros(1, 'u32');
        const graph = stream.capture((s) => void s.launch(mixKernel, ONE, { x, k: 1 }));
        other.launch(graph);
        expect((await x.read())[0]).toBe(mixed(0, 1, 1));
        await again.close();
        // Objects of a closed opening stay usable while another one is open: S812.
        other.launch(graph);
        expect((await x.read())[0]).toBe(mixed(mixed(0, 1, 1), 1, 1));
        await graph.close();
      });
    });

    rule('S1011', 'what is no graph and no kernel is refused', async () => {
      await withDevice(target, {}, async (device) => {
        const stream = device.createStream();
        for (const bad of [undefined, null, 7, {}, { nodes: [], edges: [] }, stream]) {
          expect(thrownBy(() => (stream.launch as (bad: unknown) => unknown).call(stream, bad))).toBeInstanceOf(ArgumentError);
        }
      });
    });
  });
});
