// Chapter 5, last part: foreign work in stream order. The foreign library is libc on the CPU device, the driver on CUDA.
import { describe, expect } from 'vitest';
import {
  ArgumentError,
  BoundsError,
  StateError,
  StreamHazardError,
  UpstreamError,
  type Device,
  type MillraceError,
  type RawStream,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { type Foreign, foreignOf, loadCublas } from '../../support/foreign.js';
import { write } from '../../support/kernels.js';
import { hold as latchOf } from '../../support/latch.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { eventually, rejectionOf, thrownBy, turn } from '../../support/wait.js';

defineChapter((target) => {
  describe('5 waiting: foreign work', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    let known: Foreign | undefined;
    const foreign = (): Foreign => (known ??= foreignOf(chapter.device));
    const isGpu = (device: Device): boolean => device.info.backend === 'cuda';

    rule('S523', 'foreign work runs behind earlier operations and before later ones', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(1024, 'i32');
      using y = stream.zeros(1024, 'i32');
      for (let n = 1; n <= 20; n++) {
        stream.fill(x, n);
        const copied = stream.external({ reads: { x }, writes: { y }, label: 'copy' }, (raw) =>
          foreign().copy(raw, raw.pointers.y, raw.pointers.x, x.byteLength),
        );
        stream.fill(x, -n);
        const seen = await y.read();
        expect([seen[0], seen[1023], copied.kind, copied.label, copied.status]).toEqual([n, n, 'external', 'copy', 'finished']);
      }
      await stream.close();
    });

    rule('S523', 'the function is called when earlier work was submitted to a GPU, and when it has finished on the host', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(4, 'i32');
      using y = stream.zeros(4, 'i32');
      await stream.synchronize();
      await using latch = await latchOf(target, stream);
      const before = stream.fill(x, 7);
      let wasComplete: boolean | undefined;
      const copied = stream.external({ reads: { x }, writes: { y } }, (raw) => {
        wasComplete = before.isComplete;
        foreign().copy(raw, raw.pointers.y, raw.pointers.x, x.byteLength);
      });
      if (isGpu(device)) await eventually('the function is called', () => wasComplete !== undefined);
      else for (let n = 0; n < 5; n++) await turn();
      expect([wasComplete, copied.isComplete]).toEqual([isGpu(device) ? false : undefined, false]);
      latch.open();
      await copied.done;
      expect(wasComplete).toBe(!isGpu(device));
      expect([...(await y.read())]).toEqual([7, 7, 7, 7]);
      await stream.close();
    });

    rule('S523', 'addresses are those of the first elements of arrays and views, and handles are of the stream', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros([4, 4], 'i32');
      await stream.synchronize();
      let given: RawStream<'x' | 'row' | 'column' | 'none'> | undefined;
      let current = 0n;
      using none = stream.zeros(0, 'i32');
      const [row, column] = [x.view(2), x.transpose().view(1)];
      await stream.external({ reads: { x, none }, writes: { row, column } }, (raw) => {
        given = raw;
        current = foreign().current();
        foreign().fill(raw, raw.pointers.row, 5, 4);
        foreign().fill(raw, raw.pointers.column, 6, 1);
      }).done;
      const { pointers, stream: handle, context } = given!;
      expect(pointers).toMatchObject({ x: x.nativePointer, row: x.nativePointer + 32n, column: x.nativePointer + 4n });
      expect(handle).toBe(stream.nativeHandle);
      expect(context !== 0n).toBe(isGpu(device));
      // It is current while the function runs, and what was current before is again after it.
      expect([current, foreign().current()]).toEqual([context, 0n]);
      expect([...(await x.read())]).toEqual([0, 6, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 0, 0, 0, 0]);
      await stream.close();
    });

    rule('S523', 'cuBLAS multiplies matrices between two operations of a stream', async (context) => {
      const { device } = chapter;
      if (target.name !== 'cuda') return context.skip('cuBLAS works only on a GPU');
      const cublas = loadCublas();
      if (typeof cublas === 'string') return context.skip(cublas);
      const stream = device.createStream();
      const n = 64;
      const values = (seed: number): Float32Array => Float32Array.from({ length: n * n }, (_, at) => ((at * seed) % 7) - 3);
      const [left, right] = [values(3), values(5)];
      using a = stream.from(left, { shape: [n, n] });
      using b = stream.from(right, { shape: [n, n] });
      using c = stream.zeros([n, n]);
      using d = stream.zeros([n, n]);
      let handle = 0n;
      for (let round = 0; round < 3; round++) {
        stream.fill(c, round);
        stream.external({ reads: { a, b, c }, writes: { c }, label: 'gemm' }, (raw) => {
          handle ||= cublas.create();
          // cuBLAS counts by columns, so the operands change places.
          cublas.addProduct(handle, raw.stream, n, raw.pointers.b, raw.pointers.a, raw.pointers.c);
        });
        stream.copy(d, c);
        const got = await d.read();
        for (const [row, column] of [
          [0, 0],
          [3, 41],
          [63, 63],
        ] as const) {
          let sum = round;
          for (let k = 0; k < n; k++) sum += left[row * n + k]! * right[k * n + column]!;
          expect(got[row * n + column]).toBe(sum);
        }
      }
      await stream.external({}, () => cublas.destroy(handle)).done;
      await stream.close();
    });

    rule('S524', 'the arrays order streams, and are hazards of checked streams', async () => {
      const { device } = chapter;
      const [one, two] = [device.createStream(), device.createStream()];
      using x = one.zeros(256, 'i32');
      using y = two.zeros(256, 'i32');
      for (let n = 1; n <= 20; n++) {
        one.external({ writes: { x } }, (raw) => foreign().fill(raw, raw.pointers.x, n, 256));
        two.external({ reads: { x }, writes: { y } }, (raw) => foreign().copy(raw, raw.pointers.y, raw.pointers.x, x.byteLength));
        one.fill(x, -1);
        expect((await y.read())[255]).toBe(n);
      }
      const checked = device.createStream({ ordering: 'checked' });
      one.fill(x, 3);
      let calls = 0;
      const refused = thrownBy(() => checked.external({ reads: { x } }, () => calls++));
      expect(refused).toBeInstanceOf(StreamHazardError);
      await checked.synchronize();
      expect(calls).toBe(0);
      await Promise.all([one, two, checked].map((stream) => stream.close()));
    });

    rule('S525', 'a function that fails fails the operation, and poisons what it should have written', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.full(4, 3, 'i32');
      using y = stream.zeros(4, 'i32');
      const boom = new Error('boom');
      const fail = (): never => {
        throw boom;
      };
      for (const fn of [fail, async (): Promise<void> => turn().then(fail)]) {
        const failed = stream.external({ reads: { x }, writes: { y }, label: 'gemm' }, fn);
        const after = stream.copy(x, y);
        expect(await rejectionOf(failed.done)).toBe(boom);
        expect([failed.status, failed.error]).toEqual(['failed', boom]);
        const derived = await rejectionOf(after.done);
        expect(derived).toBeInstanceOf(UpstreamError);
        const { cause } = derived as UpstreamError & { cause: MillraceError };
        expect(cause.message).toMatch(/^The external function gemm on stream .* failed: boom$/);
        expect(cause).toMatchObject({ code: 'ERR_MILLRACE_HOST', cause: boom, operation: { id: failed.id } });
        expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
        // Written anew as a whole, it is good again.
        stream.external({ writes: { y } }, (raw) => foreign().fill(raw, raw.pointers.y, 8, 4));
        stream.copy(x, y);
        expect([...(await x.read())]).toEqual([8, 8, 8, 8]);
      }
      await stream.close();
    });

    rule('S525', 'failures one after another have the errors of their own functions', async () => {
      const stream = chapter.device.createStream();
      using y = stream.zeros(4, 'i32');
      const errors = Array.from({ length: 20 }, (_, n) => new Error(`number ${n}`));
      const failed = errors.map((error) =>
        stream.external({ writes: { y } }, () => {
          throw error;
        }),
      );
      expect(await Promise.all(failed.map(({ done }) => rejectionOf(done)))).toEqual(errors);
      await stream.close();
    });

    rule('S525', 'a failure that no promise reports reaches errors$', async () => {
      await withDevice(target, {}, async (device) => {
        const errors: MillraceError[] = [];
        device.errors$.subscribe({ next: (error) => errors.push(error) });
        const boom = new Error('boom');
        device.stream.external({ label: 'gemm' }, () => {
          throw boom;
        });
        await eventually('the error is reported', () => errors.length > 0);
        expect(errors).toMatchObject([{ code: 'ERR_MILLRACE_HOST', cause: boom }]);
      });
    });

    rule('S525', 'the function is not called if what it reads is poisoned', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(64, 'i32');
      using y = stream.zeros(64, 'i32');
      const failed = stream.launch(write, 64, { x, value: 1, by: 1000 });
      const cause = await rejectionOf(failed.done);
      expect(cause).toBeInstanceOf(BoundsError);
      let calls = 0;
      const external = stream.external({ reads: { x }, writes: { y } }, () => calls++);
      const after = stream.external({ writes: { x } }, (raw) => foreign().fill(raw, raw.pointers.x, 2, 64));
      const error = await rejectionOf(external.done);
      expect(error).toBeInstanceOf(UpstreamError);
      expect((error as UpstreamError).cause).toMatchObject({ message: cause.message });
      await after.done;
      expect(calls).toBe(0);
      expect(await rejectionOf(y.read())).toBeInstanceOf(UpstreamError);
      expect((await x.read())[63]).toBe(2);
      await stream.close();
    });

    rule('S525', 'a failure that is noticed while the function runs poisons what it wrote', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      await device.compile(write);
      for (let n = 0; n < 20; n++) {
        using x = stream.zeros(64, 'i32');
        using y = stream.zeros(64, 'i32');
        const failed = stream.launch(write, 64, { x, value: 1, by: 1000 });
        const external = stream.external({ reads: { x }, writes: { y } }, async (raw) => {
          foreign().copy(raw, raw.pointers.y, raw.pointers.x, 256);
          for (let wait = 0; wait < n; wait++) await turn();
        });
        const read = rejectionOf(y.read());
        expect(await rejectionOf(failed.done)).toBeInstanceOf(BoundsError);
        expect(await rejectionOf(external.done)).toBeInstanceOf(UpstreamError);
        expect(await read).toBeInstanceOf(UpstreamError);
      }
      await stream.close();
    });

    rule('S528', 'bad options are ArgumentErrors at the call, and nothing is submitted', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.zeros(4, 'i32');
      using y = stream.zeros(4, 'i32');
      using pinned = device.pinned(4, 'i32');
      const disposed = stream.zeros(1);
      disposed[Symbol.dispose]();
      const { pending } = stream;
      const call = (options: unknown, fn: unknown = () => undefined) =>
        thrownBy(() => stream.external(options as Parameters<typeof stream.external>[0], fn as () => void)) as Error;
      const cases: readonly (readonly [unknown, RegExp])[] = [
        [undefined, /^The options \(undefined\) are not an object/],
        [{ read: { x } }, /^There is no option 'read' \(did you mean reads\?\)/],
        [{ reads: [x] }, /^The option reads .* is not an object with arrays by name\. Example: reads: \{ x \}/],
        [{ reads: x }, /^The option reads .* is not an object with arrays by name/],
        [{ writes: { x: 1 } }, /^Array x of writes \(1\) is not a device array\.$/],
        [{ reads: { x: pinned } }, /is not a device array: its data is host memory, .* copy it to a device array/],
        [{ reads: { x }, writes: { x: y } }, /^The name x stands for one array in reads/],
        [{ timeoutMs: -1 }, /^The option timeoutMs \(-1\) of an external function is not a number of milliseconds/],
        [{ label: 3 }, /^The label \(3\) is not a string/],
      ];
      for (const [options, message] of cases) {
        const error = call(options);
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(message);
      }
      expect(call({}, 5)).toBeInstanceOf(ArgumentError);
      expect(call({ reads: { disposed } })).toBeInstanceOf(StateError);
      expect(stream.pending).toBeLessThanOrEqual(pending);
      await stream.close();
    });
  });
});
