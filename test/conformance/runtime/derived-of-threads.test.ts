// Chapters 6 and 8: what derives from a failed kernel in another thread is failed when its promise settles.
import { Worker } from 'node:worker_threads';
import { describe, expect } from 'vitest';
import { UpstreamError, type ArrayToken } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { KERNELS, LENGTH, pick, plus, withDerived } from '../../support/derived.js';
import { rulesOf, withDevice } from '../../support/rule.js';

const PROGRAM = new URL('../../process/programs/sharing-failures.mjs', import.meta.url);
const ROUNDS = 40;

defineChapter((target) => {
  describe('8 sharing: what derives from a failure in another thread', () => {
    const rule = rulesOf(target);

    rule('S814', 'nothing that derives from a failed kernel of another thread is given out, there and back', async () => {
      await withDevice(target, {}, async (device) => {
        const worker = new Worker(PROGRAM, { workerData: { data: { device: device.share() } } });
        const messages: unknown[] = [];
        let heard = (): void => undefined;
        const hear = (message: unknown): void => {
          messages.push(message);
          heard();
        };
        worker.on('message', hear).on('error', hear);
        const exited = new Promise((resolve) => void worker.on('exit', resolve));
        const next = async <T>(): Promise<T> => {
          while (messages.length === 0) await new Promise<void>((resolve) => (heard = resolve));
          const message = messages.shift();
          if (message instanceof Error) throw message;
          return message as T;
        };
        expect(await next()).toBe('ready');
        await withDerived(device, async ({ streams, x, y, w }) => {
          const wrong: Record<string, number> = {};
          const note = (text: string | undefined): void => {
            if (text !== undefined) wrong[text] = (wrong[text] ?? 0) + 1;
          };
          const stream = streams[0]!;
          await device.compile(...KERNELS);
          for (let n = 0; n < ROUNDS; n++) {
            // This thread's kernel fails; the other thread reads its array, and this thread what that thread made of it.
            let release = (): void => undefined;
            const released = new Promise<void>((resolve) => (release = resolve));
            stream.fill(y, -7);
            stream.hold(() => released, { timeoutMs: 20_000 });
            const failed = stream.launch(pick, LENGTH, { x, at: 5000 + n, y });
            worker.postMessage({ part: 'derives', y: y.share() });
            const { z } = await next<{ readonly z: ArrayToken<'f32'> }>();
            const back = device.adopt(z);
            stream.launch(plus, LENGTH, { y: back, z: w });
            const takes = { failed: failed.done, back: back.read(), w: w.read() };
            release();
            await Promise.all(
              Object.entries(takes).map(async ([name, promise]) => note(await upstreamOf(name, promise, name !== 'failed'))),
            );
            for (const text of await next<readonly string[]>()) if (!text.includes(' UpstreamError of ')) note(`other thread: ${text}`);
            back[Symbol.dispose]();
            // The other thread's kernel fails.
            worker.postMessage({ part: 'fails', at: 6000 + n });
            const { y: token } = await next<{ readonly y: ArrayToken<'f32'> }>();
            const adopted = device.adopt(token);
            const launched = stream.launch(plus, LENGTH, { y: adopted, z: w });
            const taken = { adopted: adopted.read(), launched: launched.done, w: w.read() };
            worker.postMessage({ part: 'release' });
            await Promise.all(
              Object.entries(taken).map(async ([name, promise]) => note(await upstreamOf(`of the other thread: ${name}`, promise, true))),
            );
            for (const text of await next<readonly string[]>()) if (text.endsWith('fulfilled')) note(`other thread: ${text}`);
            adopted[Symbol.dispose]();
            // Healed, the memory is good in both threads.
            stream.fill(y, n);
            note((await y.item(3)) === n ? undefined : 'y is not healed');
          }
          expect(wrong).toEqual({});
        });
        worker.postMessage('end');
        await exited;
      });
    });
  });
});

async function upstreamOf(name: string, promise: Promise<unknown>, isUpstream: boolean): Promise<string | undefined> {
  try {
    await promise;
    return `${name} fulfilled`;
  } catch (error) {
    return isUpstream && !(error instanceof UpstreamError) ? `${name}: ${String(error)}` : undefined;
  }
}
