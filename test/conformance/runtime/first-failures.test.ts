// Chapter 6: of several failures, the one that the `cause` of an UpstreamError is.
import { describe, expect } from 'vitest';
import {
  cudaKernel,
  type DeviceArray,
  f32,
  i32,
  inout,
  input,
  kernel,
  type MillraceError,
  output,
  type Stream,
  UpstreamError,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

const LENGTH = 256;
const FAR = 1 << 20;

/** Two kernels of the same text, told apart by their names. */
const first = kernel('first', { y: inout(f32), by: i32 }, ({ y, by }, { i }) => {
  y[i + by] = 1;
});
const second = kernel('second', { y: inout(f32), by: i32 }, ({ y, by }, { i }) => {
  y[i + by] = 2;
});
const firstWhole = kernel('first_whole', { y: output(f32), by: i32 }, ({ y, by }, { i }) => {
  y[i] = 1;
  y[i + by] = 1;
});
const secondWhole = kernel('second_whole', { y: output(f32), by: i32 }, ({ y, by }, { i }) => {
  y[i] = 2;
  y[i + by] = 2;
});
const sum = kernel('sum', { a: input(f32), b: input(f32), z: output(f32) }, ({ a, b, z }, { i }) => {
  z[i] = a[i]! + b[i]!;
});

type Floats = DeviceArray<'f32'>;
interface Given {
  readonly streams: readonly [Stream, Stream];
  readonly x: Floats;
  readonly y: Floats;
  readonly z: Floats;
  readonly w: Floats;
}
/** Submits operations that fail; `settled` waits for them before it goes on, if the run is one that knows of its failures. */
type Case = (given: Given, settled: (op: { readonly done: Promise<unknown> }) => Promise<unknown>) => Promise<unknown>;

const CASES: Readonly<Record<string, Case>> = {
  'two kernels of one stream, then one that reads the later failure first': async ({ streams: [s], x, y, z }, settled) => {
    await settled(s.launch(first, LENGTH, { y: x, by: FAR }));
    await settled(s.launch(second, LENGTH, { y, by: FAR }));
    return s.launch(sum, LENGTH, { a: y, b: x, z }).done;
  },
  'two kernels that use one array, then a copy': async ({ streams: [s], x, y }, settled) => {
    await settled(s.launch(first, LENGTH, { y: x, by: FAR }));
    await settled(s.launch(second, LENGTH, { y: x, by: FAR }));
    return s.copy(y, x).done;
  },
  'two kernels that write parts of one array, then a copy': async ({ streams: [s], x, y }, settled) => {
    await settled(s.launch(firstWhole, LENGTH / 2, { y: x.view([LENGTH / 2, LENGTH]), by: FAR }));
    await settled(s.launch(secondWhole, LENGTH / 2, { y: x.view([0, LENGTH / 2]), by: FAR }));
    return s.copy(y, x).done;
  },
  'two streams that an event joins': async ({ streams: [s, t], x, y, z }, settled) => {
    await settled(s.launch(first, LENGTH, { y: x, by: FAR }));
    t.waitEvent(s.record());
    await settled(t.launch(second, LENGTH, { y, by: FAR }));
    return t.launch(sum, LENGTH, { a: y, b: x, z }).done;
  },
  'a copy that fails, then a kernel': async ({ streams: [s], x, y, z, w }, settled) => {
    await settled(s.launch(first, LENGTH, { y: x, by: FAR }));
    await settled(s.copy(w, x));
    await settled(s.launch(second, LENGTH, { y, by: FAR }));
    return s.launch(sum, LENGTH, { a: y, b: w, z }).done;
  },
  'a batch of copies': async ({ streams: [s], x, y, z, w }, settled) => {
    await settled(s.launch(first, LENGTH, { y: x, by: FAR }));
    await settled(s.launch(second, LENGTH, { y, by: FAR }));
    return s.copyBatch([
      [z, y],
      [w, x],
    ]).done;
  },
  'a graph that reads both, and one whose node failed': async ({ streams: [s], x, y, z }, settled) => {
    await using failing = s.capture((captured) => captured.launch(first, LENGTH, { y: x, by: FAR }));
    await using reading = s.capture((captured) => captured.launch(sum, LENGTH, { a: y, b: x, z }));
    await settled(s.launch(failing));
    await settled(s.launch(second, LENGTH, { y, by: FAR }));
    const { done } = s.launch(reading);
    await done.catch(() => undefined);
    return done;
  },
};

defineChapter((target) => {
  describe('6 failure: of several', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    const causeOf = async (run: Case, isSettled: boolean): Promise<unknown> => {
      const { device } = chapter;
      const streams = [device.createStream(), device.createStream()] as const;
      const arrays = Array.from({ length: 4 }, () => device.zeros(LENGTH));
      const [x, y, z, w] = arrays as [Floats, Floats, Floats, Floats];
      const failed: Promise<unknown>[] = [];
      const settled = async ({ done }: { readonly done: Promise<unknown> }): Promise<void> => {
        const ended = rejectionOf(done);
        failed.push(ended);
        if (isSettled) await ended;
      };
      const error = await rejectionOf(run({ streams, x, y, z, w }, settled));
      await Promise.all(failed);
      expect(error).toBeInstanceOf(UpstreamError);
      for (const array of arrays) array[Symbol.dispose]();
      for (const stream of streams) await stream.close();
      return (error as UpstreamError).cause;
    };

    rule('S627', 'the cause is the first failure in the order of execution, whether the others were known or not', async () => {
      await chapter.device.compile(first, second, firstWhole, secondWhole, sum);
      for (const [name, run] of Object.entries(CASES)) {
        for (const isSettled of [false, true]) {
          const cause = (await causeOf(run, isSettled)) as MillraceError;
          expect(cause.message, `${name}, ${isSettled ? 'known' : 'in flight'}`).toMatch(/Kernel first|kernel first/);
        }
      }
    });

    rule('S627', 'a launch that was refused after a fault of an earlier one is not first, though it was known earlier', async () => {
      const cause = await causeOf(async ({ streams: [s], x, y, z }, settled) => {
        // The refusal is known when it is issued, the fault when the kernel has run. The build fails here already.
        const text = 'extern "C" __global__ void unbuilt(float* y) { y[0] = nothing; }';
        const unbuilt = cudaKernel('unbuilt', { y: inout(f32) }, text);
        await rejectionOf(chapter.device.compile(unbuilt));
        await Promise.all([s.launch(first, LENGTH, { y: x, by: FAR }), s.launch(unbuilt, 1, { y })].map(settled));
        return s.launch(sum, LENGTH, { a: y, b: x, z }).done;
      }, true);
      expect((cause as Error).message).toMatch(/Kernel first/);
    });

    rule('S627', 'of two failures that write all of an array, the later one is the cause', async () => {
      for (const isSettled of [false, true]) {
        const cause = await causeOf(async ({ streams: [s], x, y }, settled) => {
          await settled(s.launch(firstWhole, LENGTH, { y: x, by: FAR }));
          await settled(s.launch(secondWhole, LENGTH, { y: x, by: FAR }));
          return s.copy(y, x).done;
        }, isSettled);
        expect((cause as Error).message).toMatch(/Kernel second_whole/);
      }
    });
  });
});
