// Chapter 7: limits, and back-pressure for a loop that submits faster than the device works.
import { describe, expect } from 'vitest';
import { bytes, cudaKernel, LimitError, output, u32 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { mixed, mixKernel, unbuiltKernel } from '../../support/kernels.js';
import { rulesOf, withDevice } from '../../support/rule.js';
import { collectGarbage, isSettled, thrownBy } from '../../support/wait.js';

const MAX_PENDING = 256;
const MILLION = 1_000_000;
const MIB = 1 << 20;

const largeArguments = cudaKernel(
  'largeArguments',
  { x: output(u32), values: bytes(32_000) },
  `struct Values { unsigned char each[32000]; };
extern "C" __global__ void largeArguments(unsigned* x, Values values) { x[0] = values.each[7]; }`,
);

defineChapter((target) => {
  describe('7 limits', () => {
    const rule = rulesOf(target);
    const { launches = MILLION } = target;

    rule('S701', 'one record over maxPending is a LimitError, and nothing is lost', async () => {
      await withDevice(target, { maxPending: MAX_PENDING }, async (device) => {
        await device.compile(mixKernel);
        const stream = device.createStream();
        using x = stream.zeros(1, 'u32');
        using gate = stream.zeros(1, 'i32');
        await stream.synchronize();
        // A launch whose kernel is being built parks its stream, so everything after it stays pending.
        stream.launch(unbuiltKernel(), { grid: 1, block: 1 }, { x: gate });
        const [accepted, error] = fillUp((k) => stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k }));
        expect(error).toBeInstanceOf(LimitError);
        expect(error.limit).toBe(MAX_PENDING);
        expect(error.message).toContain(String(MAX_PENDING));
        expect(accepted).toBeLessThanOrEqual(MAX_PENDING);
        expect(accepted).toBeGreaterThan(MAX_PENDING - 8);
        await error.retryAfter;
        stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k: accepted });
        expect((await x.read())[0]).toBe(mixed(0, 0, accepted + 1));
        await stream.close();
      });
    });

    // It copies 500 MiB, so one target shows it.
    if (target.name === 'cpu') {
      rule('S708', 'records with large arguments are a LimitError before they fill the memory of the host', async () => {
        await withDevice(target, {}, async (device) => {
          const stream = device.createStream();
          using x = stream.zeros(1, 'u32');
          const values = new Uint8Array(32_000);
          await stream.launch(largeArguments, { grid: 1, block: 1 }, { x, values }).done;
          let open = (): void => undefined;
          await new Promise<void>((held) => {
            const isOpen = new Promise<void>((resolve) => (open = resolve));
            stream.hold(() => (held(), isOpen), { timeoutMs: 60_000 });
          });
          const [accepted, error] = fillUp(() => stream.launch(largeArguments, { grid: 1, block: 1 }, { x, values }));
          expect(error).toBeInstanceOf(LimitError);
          expect(error.message).toContain('268435456 bytes');
          expect(accepted).toBeGreaterThan(8000);
          expect(accepted).toBeLessThan(8400);
          open();
          await stream.synchronize();
          await stream.launch(largeArguments, { grid: 1, block: 1 }, { x, values }).done;
          await stream.close();
        });
      });
    }

    rule('S702', 'retryAfter resolves when there is room, not before', async () => {
      await withDevice(target, { maxPending: MAX_PENDING }, async (device) => {
        await device.compile(mixKernel);
        const stream = device.createStream();
        using x = stream.zeros(1, 'i32');
        await stream.synchronize();
        const build = stream.launch(unbuiltKernel(), { grid: 1, block: 1 }, { x });
        const [, error] = fillUp(() => stream.fill(x, 1));
        const wasBuilt = build.isComplete;
        const { retryAfter } = error;
        expect(wasBuilt || !(await isSettled(retryAfter)) || build.isComplete).toBe(true);
        await retryAfter;
        expect(build.isComplete).toBe(true);
        await stream.fill(x, 2).done;
        expect((await x.read())[0]).toBe(2);
        await stream.close();
      });
    });

    rule('S703', 'ready resolves when fewer than `below` operations are pending', async () => {
      await withDevice(target, {}, async (device) => {
        const stream = device.createStream();
        using x = device.zeros(1, 'i32');
        await stream.ready();
        await using latch = await hold(target, stream);
        for (let n = 0; n < 100; n++) stream.fill(x, n);
        expect(stream.pending).toBeGreaterThanOrEqual(100);
        await stream.ready({ below: 1000 });
        expect(latch.operation.isComplete).toBe(false);
        const ready = stream.ready({ below: 4 });
        latch.open();
        await ready;
        expect(stream.pending).toBeLessThan(4);
        await stream.close();
      });
    });

    rule('S704', 'a stream with many pending operations does not delay the others', async () => {
      await withDevice(target, {}, async (device) => {
        const flooded = device.createStream();
        const other = device.createStream();
        using x = device.zeros(1, 'i32');
        using y = device.zeros(1, 'i32');
        await device.synchronize();
        await using latch = await hold(target, flooded);
        for (let n = 0; n < 5000; n++) flooded.fill(x, n);
        await other.fill(y, 7).done;
        expect(latch.operation.isComplete).toBe(false);
        latch.open();
        expect((await x.read())[0]).toBe(4999);
        await Promise.all([flooded.close(), other.close()]);
      });
    });

    rule(
      'S705',
      `${launches} launches in one synchronous loop keep their order, and memory does not grow afterwards`,
      async () => {
        await withDevice(target, {}, async (device) => {
          await device.compile(mixKernel);
          const stream = device.createStream();
          const afterRound: number[] = [];
          for (let round = 0; round < 2; round++) {
            using x = stream.zeros(1, 'u32');
            await stream.synchronize();
            const before = process.memoryUsage().rss;
            for (let k = 0; k < launches; k++) stream.launch(mixKernel, { grid: 1, block: 1 }, { x, k });
            expect(process.memoryUsage().rss - before).toBeLessThan(launches * 1024);
            expect((await x.read())[0]).toBe(mixed(0, 0, launches));
            collectGarbage();
            afterRound.push(process.memoryUsage().rss);
          }
          expect(afterRound[1]! - afterRound[0]!).toBeLessThan(Math.min(96 * MIB, launches * 1024));
          await stream.close();
        });
      },
      { timeoutMs: 300_000 },
    );
  });
});

/** Submits until a call is refused. Returns the number of accepted operations and the error. */
function fillUp(submit: (n: number) => unknown): readonly [accepted: number, error: LimitError] {
  let accepted = 0;
  const error = thrownBy(() => {
    for (; accepted < 100 * MAX_PENDING; accepted++) submit(accepted);
  });
  if (!(error instanceof LimitError)) throw error;
  return [accepted, error];
}
