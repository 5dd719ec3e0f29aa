// Chapter 3, scopes: who owns an array, until when, and what a late use says.
import { from as observe, lastValueFrom } from 'rxjs';
import { describe, expect } from 'vitest';
import { ArgumentError, type DeviceArray, empty, overlap, StateError, zeros } from 'millrace';
import { add, multiply, tidy } from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { plusHere } from '../../support/derived.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

/** A promise and what settles it: `Promise.withResolvers`, which Node 20 lacks. */
function gate<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

function errorOf(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error('The call did not throw.');
}

defineChapter((target) => {
  describe('3 scopes', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S375', 'the end of a block disposes the arrays of its scope, and no others', async () => {
      const { device } = chapter;
      const made: { readonly isDisposed: boolean }[] = [];
      using outside = device.from([1, 2]);
      {
        using scope = device.scope({ label: 'block' });
        const x = scope.from([3, 4]);
        const y = add(multiply(x, outside, { stream: scope }), 1, { stream: scope });
        const pinned = scope.pinned(2);
        made.push(x, y, pinned);
        expect(await y.read()).toEqual(Float32Array.of(4, 9));
        expect(made.map(({ isDisposed }) => isDisposed)).toEqual([false, false, false]);
      }
      expect(made.map(({ isDisposed }) => isDisposed)).toEqual([true, true, true]);
      expect(outside.isDisposed).toBe(false);
    });

    rule('S375', 'await using ends it too, and a stream that still uses the arrays goes on', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using result = device.zeros(4);
      const open = gate<void>();
      {
        await using scope = device.scope();
        const x = scope.ones(4);
        const host = scope.pinned(4);
        stream.hold(() => open.promise, { timeoutMs: 10_000 });
        stream.launch(plusHere, 4, { x });
        stream.copy(host, x);
        stream.copy(result, host);
      }
      // As many bytes as the scope had: they must not get its memory while the stream uses it.
      using other = device.full(4, 9);
      open.resolve();
      expect(await result.read()).toEqual(Float32Array.of(2, 2, 2, 2));
      expect(await other.item(0)).toBe(9);
      await stream.close();
    });

    rule('S375', 'a scope that has ended makes nothing, and ending it again does nothing', () => {
      const { device } = chapter;
      const scope = device.scope({ label: 'early' });
      scope[Symbol.dispose]();
      scope[Symbol.dispose]();
      expect(scope.isDisposed).toBe(true);
      for (const call of [() => scope.zeros(1), () => scope.pinned(1), () => scope.run(() => 1), () => scope.keep([])])
        expect(errorOf(call)).toMatchObject({ name: 'StateError', message: expect.stringContaining('scope early has ended') });
      expect(() => device.scope({ name: 'x' } as never)).toThrow(ArgumentError);
      expect(() => device.scope({ label: 5 } as never)).toThrow(ArgumentError);
      expect(() => scope.run(5 as never)).toThrow(StateError);
    });

    rule('S376', 'reaches over awaits, and ends when the promise has settled', async () => {
      const { device } = chapter;
      const made: DeviceArray[] = [];
      let isEnded = true;
      const sum = await device.scope(async (scope) => {
        made.push(device.ones(3));
        await device.synchronize();
        made.push(zeros(3), add(made[0]!, 1), made[0]!.clone(), scope.empty(2));
        const values = await made[2]!.read();
        isEnded = made.some(({ isDisposed }) => isDisposed);
        return values[0];
      });
      expect([sum, isEnded]).toEqual([2, false]);
      expect(made.map(({ isDisposed }) => isDisposed)).toEqual([true, true, true, true, true]);
      const failing = device.scope(async () => {
        made.push(device.ones(1));
        await Promise.resolve();
        made.push(device.ones(1));
        throw new RangeError('own');
      });
      await expect(failing).rejects.toThrow(RangeError);
      const throws = (): never =>
        device.scope(() => {
          made.push(device.ones(1));
          throw new RangeError('own');
        });
      expect(throws).toThrow(RangeError);
      expect(made.every(({ isDisposed }) => isDisposed)).toBe(true);
    });

    rule('S376', 'functions at the same time have their own scopes, and their caller none', async () => {
      const { device } = chapter;
      const gates = [0, 1, 2].map(() => gate<void>());
      const arrays: DeviceArray[] = [];
      const between: DeviceArray[] = [];
      const works = gates.map(({ promise }, at) => {
        const work = device.scope(async () => {
          const x = (arrays[at] = device.full(2, at));
          await promise;
          return add(x, 10);
        });
        between.push(device.ones(1));
        return work;
      });
      gates[1]!.resolve();
      const second = await works[1]!;
      expect(arrays.map(({ isDisposed }) => isDisposed)).toEqual([false, true, false]);
      for (const { resolve } of gates) resolve();
      const results = await Promise.all(works);
      expect(results[1]).toBe(second);
      expect(await Promise.all(results.map((one) => one.item(0)))).toEqual([10, 11, 12]);
      expect(arrays.every(({ isDisposed }) => isDisposed)).toBe(true);
      expect(between.some(({ isDisposed }) => isDisposed)).toBe(false);
      for (const one of [...results, ...between]) one[Symbol.dispose]();
    });

    rule('S376', 'what is made after the end is of the enclosing scope', async () => {
      const { device } = chapter;
      const late = gate<DeviceArray>();
      const open = gate<void>();
      let array: DeviceArray | undefined;
      await device.scope(async () => {
        device.scope(() => void open.promise.then(() => late.resolve(empty(1))));
        open.resolve();
        array = await late.promise;
        expect(array.isDisposed).toBe(false);
      });
      expect(array?.isDisposed).toBe(true);
    });

    rule('S377', 'keep and the result leave arrays to what encloses the scope', async () => {
      const { device } = chapter;
      let [mine, inner]: (DeviceArray | undefined)[] = [];
      const kept = await device.scope(async (outer) => {
        const result = await device.scope(async (scope) => {
          inner = scope.keep(device.full(2, 5));
          mine = device.ones(4);
          await device.synchronize();
          const late = (): never => {
            throw new Error('a getter was called');
          };
          return Object.defineProperty({ list: [mine.view([1, 3])], n: 1 }, 'late', { get: late, enumerable: true });
        });
        expect([mine!.isDisposed, inner!.isDisposed]).toEqual([false, false]);
        expect(tidy(() => multiply(inner!, 2)).isDisposed).toBe(false);
        return outer.keep(result.list[0]!);
      });
      expect([mine!.isDisposed, inner!.isDisposed]).toEqual([false, true]);
      expect(await kept.read()).toEqual(Float32Array.of(1, 1));
      mine![Symbol.dispose]();

      using scope = device.scope();
      using stranger = device.zeros(3);
      expect(() => scope.keep(stranger)).toThrow(/not of the scope/);
      expect(() => scope.keep(7)).toThrow(ArgumentError);
      using own = scope.keep(scope.zeros(3));
      expect(() => scope.keep(own)).toThrow(ArgumentError);
    });

    rule('S378', 'a late use names the scope, the array and its line', async () => {
      const { device } = chapter;
      // Of so many bytes, the line of an array is known (S706).
      const bytes = Math.max(2 ** 22, target.spec.startsWith('cuda') ? Math.ceil(device.info.totalMemoryBytes / 8192) : 0);
      const length = Math.ceil(bytes / 4);
      let array = device.zeros(1);
      array[Symbol.dispose]();
      device.scope(
        () => {
          array = device.zeros(length);
        },
        { label: 'step 7' },
      );
      const named = new RegExp(`f32\\[${length}\\].*end of the scope step 7.*scope\\.keep.*made at .*scopes\\.test\\.ts`);
      await expect(array.read()).rejects.toThrow(named);
      const errors = [() => array.view(0), () => device.stream.launch(plusHere, 1, { x: array as never }), () => add(array, 1)].map(
        errorOf,
      );
      for (const error of errors) expect(error).toMatchObject({ name: 'StateError', message: expect.stringMatching(named) });
      using scope = device.scope();
      const pinned = scope.pinned(8);
      scope[Symbol.dispose]();
      expect(errorOf(() => pinned.data).message).toMatch(/scope of .*scopes\.test\.ts/);
      const inTidy = tidy(() => ({ f: [device.ones(1)].map((one) => () => one) })).f[0]!();
      expect(errorOf(() => inTidy.view(0)).message).toMatch(/end of a call of tidy/);
    });

    rule('S379', 'a graph keeps its memory, and a lane its arrays', async () => {
      const { device } = chapter;
      using result = device.zeros(4);
      const graph = device.scope(() => {
        const x = device.ones(4);
        return device.stream.capture((s) => {
          const y = s.zeros(4);
          s.launch(plusHere, 4, { x });
          s.copy(y, x);
          s.copy(result, y);
        });
      });
      for (let n = 0; n < 2; n++) device.stream.launch(graph);
      expect(await result.item(3)).toBe(3);
      await graph.close();
      const open = gate<void>();
      const started = gate<void>();
      const run = await device.scope(async () => {
        const running = lastValueFrom(
          observe(
            overlap(device, [1], { depth: 1 }, async (n, lane) => {
              const [x, host] = [lane.full(2, n), lane.pinned(2)];
              started.resolve();
              await open.promise;
              await lane.stream.copy(host, x).done;
              return host.data[1];
            }),
          ),
        );
        await started.promise;
        return { running };
      });
      open.resolve();
      expect(await run.running).toBe(1);
    });
  });
});
