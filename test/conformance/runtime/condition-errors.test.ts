// Chapter 10, thirteenth part: conditions and bodies that are refused.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  CaptureError,
  i32,
  inout,
  type CaptureReason,
  type Device,
  type DeviceArray,
  type Recorder,
  type Stream,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { countDownKernel, ONE, refusalOf, usedAgain, usedBytes } from '../../support/graphs.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { thrownBy } from '../../support/wait.js';

/** What a body has at hand when a call is tried. */
interface Scene {
  readonly device: Device;
  readonly stream: Stream;
  /** A stream that joined the capture around the body, and one that did not. */
  readonly fork: Stream;
  readonly outside: Stream;
  readonly x: DeviceArray<'i32'>;
}

const REFUSED: readonly (readonly [title: string, reason: CaptureReason, says: string, call: (body: Recorder, scene: Scene) => unknown])[] =
  [
    ['an allocation', 'unsupported-node', 'allocate', (body) => body.zeros(4)],
    ['a host function', 'unsupported-node', 'host function', (body) => body.host(() => undefined)],
    ['a hold', 'unsupported-node', 'hold', (body) => body.hold(() => undefined, { timeoutMs: 1 })],
    ['an event with timing', 'unsupported-node', 'event', (body) => body.record({ timing: true })],
    ['a read', 'readback', 'read', (_, { x }) => x.read()],
    ['a copy to a typed array', 'readback', '', (body, { x }) => body.copy(new Int32Array(4), x)],
    ['synchronize', 'host-wait', 'wait', (_, { stream }) => stream.synchronize()],
    ['isComplete', 'query', 'isComplete', (_, { stream }) => stream.isComplete],
    ['a capture', 'already-capturing', 'capture', (_, { stream }) => stream.capture(() => undefined)],
    ['an operation of a joined stream', 'isolation', 'only the stream of the body', (_, { fork, x }) => fork.fill(x, 1)],
    ['a wait for a joined stream', 'isolation', 'fork', (body, { fork }) => body.waitStream(fork)],
    ['a stream that would join', 'isolation', 'outside', (_, { outside, stream }) => outside.waitStream(stream)],
    ['a wait for a stream outside', 'isolation', 'outside', (body, { outside }) => body.waitStream(outside)],
    ['a loop without operations', 'empty', 'never end', (body, { x }) => body.captureWhile(x.subarray(0, 1), () => undefined)],
    [
      'a loop that keeps its condition',
      'endless',
      'i32[1]',
      (body, { x }) => body.captureWhile(x.subarray(0, 1), (inner) => void inner.fill(x.subarray(1), 1)),
    ],
  ];

defineChapter((target) => {
  describe('10 graphs: refused conditions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [title, reason, says, call] of REFUSED) {
      rule('S1023', `${title} in a body is refused at the call, and the capture goes on`, async () => {
        const { device } = chapter;
        const [stream, fork, outside] = ['stream', 'fork', 'outside'].map((label) => device.createStream({ label }));
        using condition = device.ones(1, 'i32');
        using x = device.zeros(4, 'i32');
        const scene = { device, stream: stream!, fork: fork!, outside: outside!, x };
        let refused: CaptureError | undefined;
        const graph = stream!.capture((s) => {
          fork!.waitStream(stream!);
          fork!.record();
          s.captureIf(condition, (body) => {
            body.fill(x.subarray(0, 1), 1);
            refused = refusalOf(() => call(body, scene));
            body.fill(x.subarray(1, 2), 2);
          });
          fork!.fill(x.subarray(2, 3), 3);
          // Not caught in the body: the condition is left out.
          expect(
            thrownBy(() =>
              s.captureIf(condition, (body) => {
                body.fill(x, 9);
                call(body, scene);
              }),
            ),
          ).toBeInstanceOf(CaptureError);
          s.fill(x.subarray(3), 4);
        });
        expect([refused!.reason, refused!.message]).toEqual([reason, expect.stringContaining(says)]);
        await stream!.launch(graph).done;
        expect([...(await x.read())]).toEqual([1, 2, 3, 4]);
        await graph.close();
        await Promise.all([stream!.close(), fork!.close(), outside!.close()]);
      });
    }

    rule('S1023', "the condition is an array of one i32 of the stream's device", async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = device.zeros(4, 'i32');
      using floats = device.zeros(1);
      using disposed = device.zeros(1, 'i32');
      using pinned = device.pinned(1, 'i32');
      disposed[Symbol.dispose]();
      const bad: readonly (readonly [unknown, string])[] = [
        [undefined, 'undefined'],
        [1, '1'],
        [new Int32Array(1), 'Int32Array'],
        [pinned, 'not a device array'],
        [x, '4 elements'],
        [x.subarray(0, 0), '0 elements'],
        [floats, 'dtype f32'],
      ];
      for (const around of [
        (call: () => unknown) => thrownBy(call),
        (call: () => unknown) => thrownBy(() => stream.capture(() => void call())),
      ]) {
        for (const [value, says] of bad) {
          for (const call of [
            () => stream.captureIf(value as DeviceArray<'i32'>, () => undefined),
            () => stream.captureWhile(value as DeviceArray<'i32'>, (body) => void body.fill(x, 1)),
            () => stream.captureSwitch(value as DeviceArray<'i32'>, [() => undefined]),
          ]) {
            const error = around(call);
            expect(error).toBeInstanceOf(ArgumentError);
            expect(error.message).toContain(says);
            expect(error.message).toContain('an array of one i32 on the device is needed');
          }
        }
        expect(around(() => stream.captureIf(disposed, () => undefined)).message).toContain('disposed');
      }
      await stream.fill(x, 1).done;
      await stream.close();
    });

    rule('S1023', 'slots are neither conditions nor arguments in bodies, and a graph with parameters is no body', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using left = device.ones(1, 'i32');
      using condition = device.ones(1, 'i32');
      const graph = stream.capture({ n: inout(i32) }, (s, { n }) => {
        expect(thrownBy(() => s.captureIf(n as never, () => undefined))).toBeInstanceOf(ArgumentError);
        s.captureIf(condition, (body) => {
          const refused = refusalOf(() => body.launch(countDownKernel, ONE, { left: n }));
          expect([refused.reason, refused.message]).toEqual(['unsupported-node', expect.stringContaining('slot n ')]);
        });
        s.launch(countDownKernel, ONE, { left: n });
      });
      expect(thrownBy(() => stream.captureIf(left, graph as never)).message).toContain('parameters');
      // With its values, in a function, it is a part of the body.
      await stream.captureIf(condition, (body) => void body.launch(graph, { n: left })).done;
      expect([...(await left.read())]).toEqual([0]);
      await graph.close();
      await stream.close();
    });

    rule('S1023', 'a call without a body, and bodies that are none, are refused', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using condition = device.ones(1, 'i32');
      using x = device.zeros(1, 'i32');
      const hosted = stream.capture((s) => void s.host(() => undefined));
      const closed = stream.capture((s) => void s.fill(x, 1));
      await closed.close();
      const before = await usedBytes(device);
      for (const call of [
        () => stream.captureIf(condition, undefined),
        () => stream.captureIf(condition, 5 as never),
        () => stream.captureWhile(condition, undefined as never),
        () => stream.captureSwitch(condition, []),
        () => stream.captureSwitch(condition, (() => undefined) as never),
        () => stream.captureSwitch(condition, [() => undefined, undefined as never]),
        () => stream.captureIf(condition, (async () => {}) as () => void),
      ]) {
        expect(thrownBy(call)).toBeInstanceOf(ArgumentError);
      }
      expect(refusalOf(() => stream.captureIf(condition, hosted)).message).toContain('host function');
      expect(thrownBy(() => stream.captureIf(condition, closed)).message).toContain('closed');
      const thrown = new Error('of the body');
      expect(
        thrownBy(() =>
          stream.captureIf(condition, () => {
            throw thrown;
          }),
        ),
      ).toBe(thrown);
      await stream.captureIf(condition, (body) => void body.fill(x, 6)).done;
      expect([...(await x.read())]).toEqual([6]);
      await usedAgain(device, before);
      await hosted.close();
      await stream.close();
    });

    rule('S1023', 'conditions that are nested deeper than 16 are refused, also those of graphs', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using condition = device.ones(1, 'i32');
      using x = device.zeros(1, 'i32');
      const nested = (s: Recorder, depth: number): void => {
        if (depth === 0) s.fill(x, 1);
        else s.captureIf(condition, (body) => nested(body, depth - 1));
      };
      const refused = refusalOf(() => nested(stream, 17));
      expect([refused.reason, refused.message]).toEqual(['unsupported-node', expect.stringContaining('(17) exceeds the limit (16)')]);
      const deep = stream.capture((s) => nested(s, 16));
      expect(refusalOf(() => stream.captureIf(condition, deep)).message).toContain('(17) exceeds the limit (16)');
      await stream.launch(deep).done;
      expect([...(await x.read())]).toEqual([1]);
      await deep.close();
      await stream.close();
    });

    rule('S1023', 'on an explicit stream another stream may write the condition of a loop', async () => {
      const { device } = chapter;
      const stream = device.createStream({ ordering: 'explicit' });
      using condition = device.zeros(1, 'i32');
      using x = device.zeros(1, 'i32');
      await device.synchronize();
      await stream.captureWhile(condition, (body) => void body.fill(x, 1)).done;
      expect([...(await x.read())]).toEqual([0]);
      expect(refusalOf(() => stream.captureWhile(condition, () => undefined)).reason).toBe('empty');
      await stream.close();
    });

    rule('S1023', 'a stream that is not captured cannot run a condition while another is captured', async () => {
      const { device } = chapter;
      const [stream, other] = [device.createStream(), device.createStream()];
      using condition = device.ones(1, 'i32');
      using x = device.zeros(1, 'i32');
      const graph = stream.capture((s) => {
        expect(refusalOf(() => other.captureIf(condition, (body) => void body.fill(x, 1))).reason).toBe('already-capturing');
        s.fill(x, 2);
      });
      await other.captureIf(condition, (body) => void body.fill(x, 3)).done;
      expect([...(await x.read())]).toEqual([3]);
      await graph.close();
      await Promise.all([stream.close(), other.close()]);
    });
  });
});
