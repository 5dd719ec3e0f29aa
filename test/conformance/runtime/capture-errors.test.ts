// Chapter 10, third part: calls that a capture refuses, and captures that end early.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  type CaptureError,
  StateError,
  synchronize,
  type CaptureReason,
  type Device,
  type DeviceArray,
  type DeviceEvent,
  type Operation,
  type Stream,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { ONE, reasonOf, refusalOf, usedAgain, usedBytes, workOf } from '../../support/graphs.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

/** What a capture has at hand when a call is tried. */
interface Scene {
  readonly device: Device;
  readonly stream: Stream;
  /** A stream that joined. */
  readonly fork: Stream;
  readonly x: DeviceArray<'i32'>;
  readonly operation: Operation;
  readonly event: DeviceEvent;
}

const REFUSED: readonly (readonly [title: string, reason: CaptureReason, call: (scene: Scene) => unknown])[] = [
  ['synchronize of the stream', 'host-wait', ({ stream }) => stream.synchronize()],
  ['synchronize of a joined stream', 'host-wait', ({ fork }) => fork.synchronize()],
  ['synchronize of the device', 'host-wait', ({ device }) => device.synchronize()],
  ['synchronize of all devices', 'host-wait', () => synchronize()],
  ['ready of the stream', 'host-wait', ({ stream }) => stream.ready()],
  ['close of the stream', 'host-wait', ({ stream }) => stream.close()],
  ['close of a joined stream', 'host-wait', ({ fork }) => fork.close()],
  ['done of an operation', 'host-wait', ({ operation }) => operation.done],
  ['synchronize of an operation', 'host-wait', ({ operation }) => operation.synchronize()],
  ['done of an event', 'host-wait', ({ event }) => event.done],
  ['synchronize of an event', 'host-wait', ({ event }) => event.synchronize()],
  ['isComplete of the stream', 'query', ({ stream }) => stream.isComplete],
  ['isComplete of a joined stream', 'query', ({ fork }) => fork.isComplete],
  ['isComplete of an operation', 'query', ({ operation }) => operation.isComplete],
  ['status of an operation', 'query', ({ operation }) => operation.status],
  ['isComplete of an event', 'query', ({ event }) => event.isComplete],
  ['read of an array', 'readback', ({ x }) => x.read()],
  ['read of a view', 'readback', ({ x }) => x.subarray(1).read()],
  ['read into an array', 'readback', ({ x }) => x.read({ into: new Int32Array(4) })],
  ['item of an array', 'readback', ({ x }) => x.item(0)],
  ['a copy to an ordinary typed array', 'readback', ({ stream, x }) => stream.copy(new Int32Array(4), x)],
  // Nothing is read back here; the graph cannot contain the upload.
  ['a copy from an ordinary typed array', 'unsupported-node', ({ stream, x }) => stream.copy(x, new Int32Array(4))],
  ['an upload on a joined stream', 'unsupported-node', ({ fork, x }) => fork.copy(x, new Int32Array(4))],
  ['an upload with transfer', 'unsupported-node', ({ stream, x }) => stream.copy(x, new Int32Array(4), { transfer: true })],
  ['from of an ordinary typed array', 'unsupported-node', ({ stream }) => stream.from(new Int32Array(4))],
  ['hold', 'unsupported-node', ({ stream }) => stream.hold(() => undefined, { timeoutMs: 10 })],
];

defineChapter((target) => {
  describe('10 graphs: what a capture refuses', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [title, reason, call] of REFUSED) {
      rule('S1005', `${title} is refused at the call, and the capture goes on without it`, async () => {
        const { device } = chapter;
        const [stream, fork] = [device.createStream({ label: 'captured' }), device.createStream()];
        using x = device.zeros(4, 'i32');
        const before = await usedBytes(device);
        let refused: CaptureError | undefined;
        const graph = stream.capture(
          (s) => {
            const operation = s.fill(x, 1);
            fork.waitStream(stream);
            fork.fill(x.subarray(0, 2), 2);
            const event = s.record();
            refused = refusalOf(() => call({ device, stream, fork, x, operation, event }));
            s.waitStream(fork);
            s.fill(x.subarray(0, 1), 3);
          },
          { strict: true },
        );
        expect(refused).toBeInstanceOf(StateError);
        expect([refused?.code, refused?.reason]).toEqual(['ERR_MILLRACE_CAPTURE', reason]);
        expect(graph.nodes.filter(({ kind }) => kind !== 'wait' && kind !== 'record').map(({ kind }) => kind)).toEqual([
          'fill',
          'fill',
          'fill',
        ]);
        await stream.launch(graph).done;
        expect([...(await x.read())]).toEqual([3, 2, 1, 1]);
        await graph.close();
        await usedAgain(device, before);
        await Promise.all([stream.close(), fork.close()]);
      });
    }

    rule('S1005', 'the buffer of a refused upload with transfer stays with its owner', async () => {
      const { device } = chapter;
      using x = device.zeros(4, 'i32');
      const data = new Int32Array([1, 2, 3, 4]);
      const graph = device.stream.capture((s) => {
        refusalOf(() => s.copy(x, data, { transfer: true }));
        s.fill(x, 1);
      });
      expect([...data]).toEqual([1, 2, 3, 4]);
      await graph.close();
    });

    rule('S1005', 'isComplete and done of captured operations and events are refused at any time', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      using event = device.createEvent();
      const operations: Operation[] = [];
      const graph = stream.capture((s) => {
        operations.push(
          s.fill(x, 1),
          s.copy(x.subarray(0, 2), x.subarray(2)),
          s.launch(mixKernel, ONE, { x: device.zeros(1, 'u32'), k: 1 }),
        );
        s.record(event);
      });
      for (const launches of [0, 1]) {
        if (launches > 0) await stream.launch(graph).done;
        for (const operation of operations) {
          expect(reasonOf(() => operation.isComplete)).toBe('query');
          expect(reasonOf(() => operation.done)).toBe('host-wait');
        }
        expect(reasonOf(() => event.isComplete)).toBe('query');
        expect(reasonOf(() => event.done)).toBe('host-wait');
      }
      // The event is an ordinary one again when it is recorded again.
      stream.record(event);
      await event.done;
      expect(event.isComplete).toBe(true);
      await graph.close();
      await stream.close();
    });

    rule('S1006', 'a captured stream waits for nothing outside of its capture', async () => {
      const { device } = chapter;
      const [stream, fork, outside] = [device.createStream(), device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      using never = device.createEvent();
      outside.fill(x, 1);
      const [early, foreign] = [stream.record(), outside.record()];
      const graph = stream.capture((s) => {
        s.fill(x, 2);
        fork.waitStream(stream);
        for (const captured of [stream, fork]) {
          expect(reasonOf(() => captured.waitStream(outside))).toBe('isolation');
          expect(reasonOf(() => captured.waitEvent(foreign))).toBe('isolation');
          expect(reasonOf(() => captured.waitEvent(early))).toBe('isolation');
          // Neither of these is a wait: S204, S207.
          captured.waitEvent(never);
          captured.waitStream(captured);
        }
        outside.fill(x, 3);
        expect(reasonOf(() => s.waitEvent(outside.record()))).toBe('isolation');
      });
      expect([...(await x.read())]).toEqual([3, 3, 3, 3]);
      expect([early.isComplete, foreign.isComplete, outside.isComplete]).toEqual([true, true, true]);
      stream.launch(graph);
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      await graph.close();
      await Promise.all([stream.close(), fork.close(), outside.close()]);
    });

    rule('S1006', 'nothing waits for what was captured, after the capture or in another one', async () => {
      const { device } = chapter;
      const [stream, outside] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      using event = device.createEvent();
      const graph = stream.capture((s) => {
        s.fill(x, 1);
        s.record(event);
      });
      expect(reasonOf(() => outside.waitEvent(event))).toBe('isolation');
      expect(reasonOf(() => stream.waitEvent(event))).toBe('isolation');
      const second = stream.capture((s) => {
        s.fill(x, 2);
        expect(reasonOf(() => s.waitEvent(event))).toBe('isolation');
        expect(reasonOf(() => outside.waitEvent(event))).toBe('isolation');
        outside.fill(x, 3);
      });
      expect(workOf(second)).toHaveLength(1);
      expect([...(await x.read())]).toEqual([3, 3, 3, 3]);
      await Promise.all([graph.close(), second.close(), stream.close(), outside.close()]);
    });

    rule('S1006', 'a capture inside a capture is refused, and the outer one goes on', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      let calls = 0;
      const graph = stream.capture((s) => {
        s.fill(x, 1);
        for (const inner of [stream, other]) {
          expect(
            reasonOf(() =>
              inner.capture((t) => {
                calls++;
                t.fill(x, 9);
              }),
            ),
          ).toBe('already-capturing');
        }
        s.fill(x.subarray(2), 2);
      });
      expect([calls, workOf(graph).length]).toEqual([0, 2]);
      stream.launch(graph);
      expect([...(await x.read())]).toEqual([1, 1, 2, 2]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });

    rule('S1006', 'a capture that recorded no operation is refused', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      using x = device.zeros(4, 'i32');
      for (const body of [
        () => undefined,
        () => void stream.record(),
        () => void fork.waitStream(stream),
        () => void reasonOf(() => x.read()),
        () => void thrownBy(() => stream.fill(x, 'x' as never)),
      ]) {
        expect(
          reasonOf(() => stream.capture(body)),
          String(body),
        ).toBe('empty');
      }
      await Promise.all([stream.fill(x, 1).done, fork.record().done]);
      expect([...(await x.read())]).toEqual([1, 1, 1, 1]);
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1006', 'a function that returns a promise is refused, and its captured operations never run', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      const bodies: readonly ((s: { fill(dst: typeof x, value: number): unknown }) => unknown)[] = [
        async (s) => {
          s.fill(x, 1);
          await Promise.resolve();
        },
        (s) => {
          s.fill(x, 1);
          // oxlint-disable-next-line unicorn/no-thenable
          return { then: (): void => undefined };
        },
      ];
      for (const body of bodies) {
        const error = thrownBy(() => stream.capture(body as never));
        expect(error).toBeInstanceOf(ArgumentError);
        await stream.synchronize();
        expect([...(await x.read())]).toEqual([0, 0, 0, 0]);
      }
      await stream.close();
    });

    rule('S1007', 'capture throws what the function throws, and every stream and array is usable at once', async () => {
      const { device } = chapter;
      const [stream, fork] = [device.createStream(), device.createStream()];
      const outer = device.stream;
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      using event = device.createEvent();
      for (const thrown of [new Error('boom'), 'a string', undefined]) {
        let caught: unknown = 'nothing';
        try {
          stream.capture((s) => {
            s.fill(x, 7);
            fork.waitStream(stream);
            fork.copy(y, x);
            fork.record(event);
            throw thrown;
          });
        } catch (error) {
          caught = error;
        }
        expect(caught).toBe(thrown);
        expect(device.stream).toBe(outer);
        expect([stream.isComplete, fork.isComplete]).toEqual([true, true]);
        const reads = [x.read(), y.read()];
        expect((await Promise.all(reads)).map((values) => [...values])).toEqual([
          [0, 0, 0, 0],
          [0, 0, 0, 0],
        ]);
        await fork.fill(y, 1).done;
        await stream.copy(x, y).done;
        await stream.fill(x, 0).done;
        await stream.fill(y, 0).done;
        fork.waitStream(stream);
        stream.record(event);
        fork.waitEvent(event);
        await Promise.all([event.done, stream.synchronize(), fork.synchronize()]);
      }
      const graph = stream.capture((s) => void s.fill(x, 5));
      stream.launch(graph);
      expect([...(await x.read())]).toEqual([5, 5, 5, 5]);
      await graph.close();
      await Promise.all([stream.close(), fork.close()]);
    });

    rule('S1007', 'a CaptureError that the function does not catch ends the capture like any other error', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      const reason = reasonOf(() =>
        stream.capture((s) => {
          s.fill(x, 7);
          void x.read();
        }),
      );
      expect(reason).toBe('readback');
      await stream.fill(x, 2).done;
      expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
      await stream.close();
    });

    rule('S1007', 'what was submitted before a failed capture runs, in its order', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(1, 'u32');
      await using latch = await hold(target, stream, mixKernel);
      const before = stream.launch(mixKernel, ONE, { x, k: 0 });
      const error = thrownBy(() =>
        stream.capture((s) => {
          s.launch(mixKernel, ONE, { x, k: 77 });
          throw new Error('boom');
        }),
      );
      expect(error.message).toBe('boom');
      const after = stream.launch(mixKernel, ONE, { x, k: 1 });
      expect([before.isComplete, after.isComplete]).toEqual([false, false]);
      latch.open();
      await after.done;
      expect((await x.read())[0]).toBe(mixed(0, 0, 2));
      await stream.close();
    });

    rule('S1007', 'arrays that a failed capture allocated have no contents, and hold no memory once disposed', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const before = await usedBytes(device);
      const made: DeviceArray[] = [];
      for (let n = 0; n < 10; n++) {
        const error = thrownBy(() =>
          stream.capture((s) => {
            made.push(s.zeros(1 << 16), device.full(1 << 16, 2));
            throw new Error('boom');
          }),
        );
        expect(error.message).toBe('boom');
      }
      for (const array of made) {
        expect(thrownBy(() => stream.copy(new Float32Array(1 << 16), array))).toBeInstanceOf(StateError);
        array[Symbol.dispose]();
      }
      await usedAgain(device, before);
      await stream.close();
    });
  });
});
