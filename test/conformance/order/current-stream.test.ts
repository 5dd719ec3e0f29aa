// Chapter 1, second part: the current stream of a device.
import { setTimeout as later } from 'node:timers/promises';
import { from } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, getDefaultDevice, StateError, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { proveOrder } from '../../support/order.js';
import { rejectionOf, thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('1 streams: the current one', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S106', 'the current stream is the default stream, and the device makes arrays on the current stream', async () => {
      const { device } = chapter;
      expect(device.stream).toBe(device.defaultStream);
      const stream = device.createStream();
      await using latch = await hold(target, stream);
      const made = stream.run(() => device.full(4, 8, 'i32'), { syncEnter: false });
      await device.defaultStream.synchronize();
      const reading = made.read();
      expect(latch.operation.isComplete).toBe(false);
      expect(stream.pending).toBeGreaterThan(1);
      latch.open();
      expect([...(await reading)]).toEqual([8, 8, 8, 8]);
      made[Symbol.dispose]();
      await stream.close();
    });

    rule('S110', 'run makes its stream current, and its device the default device, for the function and its awaits', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      expect(stream.run(() => 42)).toBe(42);
      expect(stream.run(() => device.stream)).toBe(stream);
      const seen = await stream.run(async () => {
        const streams = [device.stream];
        await Promise.resolve();
        streams.push(device.stream);
        await later(1);
        streams.push(device.stream);
        await device.zeros(1).read();
        streams.push(device.stream);
        expect(getDefaultDevice()).toBe(device);
        return streams;
      });
      expect(labels(...seen)).toEqual(labels(stream, stream, stream, stream));
      expect(device.stream).toBe(device.defaultStream);
      await stream.close();
    });

    rule('S111', 'the previous stream is current again after a return, an exception and a rejection', async () => {
      const { device } = chapter;
      const outer = device.createStream();
      const inner = device.createStream();
      const boom = new Error('boom');
      await outer.run(async () => {
        inner.run(() => expect(device.stream).toBe(inner));
        expect(device.stream).toBe(outer);
        const fail = (): never => {
          throw boom;
        };
        expect(thrownBy(() => inner.run(fail))).toBe(boom);
        expect(device.stream).toBe(outer);
        const rejecting = inner.run(async () => {
          await later(1);
          throw boom;
        });
        expect(device.stream).toBe(outer);
        expect(await rejectionOf(rejecting)).toBe(boom);
        expect(device.stream).toBe(outer);
      });
      expect(device.stream).toBe(device.defaultStream);
      await Promise.all([outer.close(), inner.close()]);
    });

    rule('S111', 'runs nest, also runs of the same stream', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 3 }, () => device.createStream());
      const [a, b, c] = streams as [Stream, Stream, Stream];
      a.run(() => {
        b.run(() => {
          a.run(() => {
            c.run(() => expect(device.stream).toBe(c));
            expect(device.stream).toBe(a);
          });
          expect(device.stream).toBe(b);
          b.run(() => expect(device.stream).toBe(b));
          expect(device.stream).toBe(b);
        });
        expect(device.stream).toBe(a);
      });
      expect(device.stream).toBe(device.defaultStream);
      await Promise.all(streams.map((stream) => stream.synchronize({ timeoutMs: 10_000 })));
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S111', 'run refuses a value that is not a function, and a closed stream', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      expect(thrownBy(() => stream.run(3 as never))).toBeInstanceOf(ArgumentError);
      await stream.close();
      let isCalled = false;
      expect(thrownBy(() => stream.run(() => void (isCalled = true)))).toBeInstanceOf(StateError);
      expect(isCalled).toBe(false);
      expect(device.stream).toBe(device.defaultStream);
    });

    rule('S112', 'two concurrent async functions have separate current streams', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 8 }, () => device.createStream());
      const wrong: string[] = [];
      const walk = async (mine: Stream): Promise<void> => {
        for (let n = 0; n < 20; n++) {
          await (n % 3 === 0 ? later(0) : Promise.resolve());
          if (device.stream !== mine) wrong.push(`${device.stream.label} instead of ${mine.label}`);
        }
      };
      await Promise.all(streams.map((stream) => stream.run(() => walk(stream))));
      expect(wrong).toEqual([]);
      expect(device.stream).toBe(device.defaultStream);
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S112', 'a generator and an Observable see the stream of the run that drives them', async () => {
      const { device } = chapter;
      const [a, b] = [device.createStream(), device.createStream()];
      const current = function* (): Generator<Stream> {
        for (;;) yield device.stream;
      };
      const generator = current();
      const next = (): Stream => generator.next().value as Stream;
      expect(labels(a.run(next), b.run(next), next())).toEqual(labels(a, b, device.defaultStream));
      const seen: Stream[] = [];
      a.run(() => from([1, 2]).subscribe(() => seen.push(device.stream)));
      expect(labels(...seen)).toEqual(labels(a, a));
      await Promise.all([a.close(), b.close()]);
    });

    rule('S113', 'entering waits on the device for the previous stream, unless syncEnter is false', async () => {
      const { device } = chapter;
      const before = device.createStream({ ordering: 'explicit' });
      for (const [options, expected] of [
        [{}, true],
        [{ syncEnter: true }, true],
        [{ syncEnter: false }, false],
      ] as const) {
        const inner = device.createStream({ ordering: 'explicit' });
        const enter = (): void => before.run(() => inner.run(() => undefined, options), { syncEnter: false });
        await proveOrder(target, expected, before, inner, enter);
        await inner.close();
      }
      await before.close();
    });

    rule('S113', "a nested run waits for the outer run's stream and for no other stream", async () => {
      const { device } = chapter;
      const [outer, inner, aside] = [1, 2, 3].map(() => device.createStream({ ordering: 'explicit' })) as [Stream, Stream, Stream];
      const enter = (): void => outer.run(() => inner.run(() => undefined), { syncEnter: false });
      await proveOrder(target, true, outer, inner, enter);
      await proveOrder(target, false, aside, inner, enter);
      await Promise.all([outer.close(), inner.close(), aside.close()]);
    });

    rule('S114', 'leaving adds no wait; with syncExit the outer stream waits for the stream that is current at the end', async () => {
      const { device } = chapter;
      const [outer, inner, last] = [1, 2, 3].map(() => device.createStream({ ordering: 'explicit' })) as [Stream, Stream, Stream];
      const within = (enter: () => void) => (): void => outer.run(enter, { syncEnter: false });
      const none = { syncEnter: false } as const;
      const exit = { syncEnter: false, syncExit: true } as const;
      const set = (): void => device.setCurrentStream(last);
      await proveOrder(
        target,
        false,
        inner,
        outer,
        within(() => inner.run(() => undefined, none)),
      );
      await proveOrder(
        target,
        true,
        inner,
        outer,
        within(() => inner.run(() => undefined, exit)),
      );
      await proveOrder(
        target,
        true,
        last,
        outer,
        within(() => inner.run(set, exit)),
      );
      await proveOrder(
        target,
        false,
        inner,
        outer,
        within(() => inner.run(set, exit)),
      );
      const fail = (): never => {
        throw new Error('boom');
      };
      await proveOrder(
        target,
        true,
        inner,
        outer,
        within(() => void thrownBy(() => inner.run(fail, exit))),
      );
      await Promise.all([outer.close(), inner.close(), last.close()]);
    });

    rule('S114', 'a run of an async function ends when its promise settles', async () => {
      const { device } = chapter;
      const [outer, inner] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      await using latch = await hold(target, inner);
      let leave = (): void => undefined;
      const running = outer.run(
        () =>
          inner.run(() => new Promise<void>((resolve) => (leave = resolve)), {
            syncEnter: false,
            syncExit: true,
          }),
        { syncEnter: false },
      );
      await outer.record().done;
      leave();
      await running;
      const behind = outer.record();
      await device.createStream().record().done;
      expect(behind.isComplete).toBe(false);
      latch.open();
      await behind.done;
      await Promise.all([outer.close(), inner.close()]);
    });

    rule('S116', 'setCurrentStream holds until the run ends; outside of runs, for the thread', async () => {
      const { device } = chapter;
      const [a, b] = [device.createStream(), device.createStream()];
      try {
        device.setCurrentStream(a);
        expect(device.stream).toBe(a);
        await b.run(async () => {
          expect(device.stream).toBe(b);
          device.setCurrentStream(a);
          await later(1);
          expect(device.stream).toBe(a);
          device.setCurrentStream(device.defaultStream);
          expect(device.stream).toBe(device.defaultStream);
        });
        expect(device.stream).toBe(a);
      } finally {
        device.setCurrentStream(device.defaultStream);
      }
      expect(device.stream).toBe(device.defaultStream);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S116', 'setCurrentStream waits for the previous stream only with sync', async () => {
      const { device } = chapter;
      const [a, b] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      for (const [options, expected] of [
        [undefined, false],
        [{ sync: false }, false],
        [{ sync: true }, true],
      ] as const) {
        const set = (): void => a.run(() => device.setCurrentStream(b, options), { syncEnter: false });
        await proveOrder(target, expected, a, b, set);
      }
      expect(thrownBy(() => device.setCurrentStream({} as never))).toBeInstanceOf(ArgumentError);
      await b.close();
      expect(thrownBy(() => device.setCurrentStream(b))).toBeInstanceOf(StateError);
      await a.close();
    });

    rule('S117', 'a method of a stream works on that stream, whichever stream is current', async () => {
      const { device } = chapter;
      const [named, current] = [device.createStream({ ordering: 'explicit' }), device.createStream({ ordering: 'explicit' })];
      using x = named.zeros(4, 'i32');
      await named.synchronize();
      await using latch = await hold(target, current);
      const done = current.run(() => [named.fill(x, 1), named.full(2, 3, 'i32'), named.record()] as const, { syncEnter: false });
      await named.synchronize();
      expect(latch.operation.isComplete).toBe(false);
      expect(done[0].isComplete).toBe(true);
      expect([...(await done[1].read())]).toEqual([3, 3]);
      done[1][Symbol.dispose]();
      latch.open();
      await Promise.all([named.close(), current.close()]);
    });
  });
});

/** Labels stand for streams in comparisons, because vitest takes seconds to print a difference of such large objects. */
function labels(...streams: readonly Stream[]): string[] {
  return streams.map((stream) => `${stream.label} of ${stream.device.info.id}`);
}
