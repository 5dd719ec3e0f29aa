// Chapters 6 and 8: what derives from a failed kernel on another device, and in another thread, is failed when its promise settles.
import { Worker } from 'node:worker_threads';
import { describe, expect } from 'vitest';
import { UpstreamError, type ArrayToken, type DeviceArray } from 'millrace';
import { KERNELS, LENGTH, leaksOf, pick, plus, plusHere, withDerived, type Derived, type Takes } from '../support/derived.js';
import { chapterDevices, rulesOf, withDevice } from '../support/rule.js';
import type { Target } from '../support/target.js';
import { rejectionOf } from '../support/wait.js';

type F32 = DeviceArray<'f32'>;
type Case = (given: Derived, there: readonly [F32, F32], at: number) => Takes;

/** The arrays of `there` are on the other device. */
const CASES: Readonly<Record<string, Case>> = {
  'a copy to the other device, and a kernel there': ({ device: { stream }, x, y }, [there, further], at) => {
    stream.launch(pick, LENGTH, { x, at, y });
    const other = there.device.stream;
    const copied = other.copy(there, y);
    const launched = other.launch(plus, LENGTH, { y: there, z: further });
    return { copied, launched, there: there.read(), further: further.read() };
  },
  'a copy by a stream of the first device': ({ device: { stream }, x, y }, [there, further], at) => {
    stream.launch(pick, LENGTH, { x, at, y });
    stream.copy(there, y, { count: 100 });
    there.device.stream.launch(plus, LENGTH, { y: there, z: further });
    return { further: further.read() };
  },
  'a copy that is over when the other device gets its kernel': ({ device: { stream }, x, y }, [there, further], at) => {
    stream.launch(pick, LENGTH, { x, at, y });
    stream.copy(there, y, { count: 100 });
    // Nothing settles meanwhile: this thread stands still.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    there.device.stream.launch(plus, LENGTH, { y: there, z: further });
    return { further: further.read() };
  },
  'explicit streams, and a host that sees the event complete': ({ explicit: [a], x, y }, [there, further], at) => {
    const b = there.device.createStream({ ordering: 'explicit' });
    b.waitStream(there.device.stream);
    a!.waitStream(there.device.stream);
    a!.launch(pick, LENGTH, { x, at, y });
    a!.copy(there, y);
    const copied = a!.record();
    while (!copied.isComplete);
    const launched = b.launch(plus, LENGTH, { y: there, z: further });
    void b.close();
    return { launched };
  },
  'there and back': ({ device: { stream }, x, y, z, w }, [there, further], at) => {
    stream.launch(pick, LENGTH, { x, at, y });
    const other = there.device.stream;
    other.copy(there, y);
    other.launch(plus, LENGTH, { y: there, z: further });
    stream.copy(z, further);
    const last = stream.launch(plus, LENGTH, { y: z, z: w });
    return { last, w: w.read() };
  },
  'explicit streams that wait for each other': ({ explicit: [a], x, y, w }, [there], at) => {
    const b = there.device.createStream({ ordering: 'explicit' });
    a!.launch(pick, LENGTH, { x, at, y });
    b.waitEvent(a!.record());
    b.waitStream(there.device.stream);
    b.copy(there, y);
    b.launch(plusHere, LENGTH, { x: there });
    a!.waitStream(b);
    const back = a!.copy(w, there);
    void b.close();
    return { back, w: w.read() };
  },
  'a column to the other device': ({ device: { stream }, x, y }, [there, further], at) => {
    stream.launch(pick, LENGTH, { x, at, y });
    const other = there.device.stream;
    const column = other.copy(there.reshape([32, 32]).view(undefined, 3), y.reshape([32, 32]).view(undefined, 5));
    other.launch(plus, LENGTH, { y: there, z: further });
    return { column, further: further.read() };
  },
};

export function derivedOfTwo(target: Target): void {
  describe('6 failure: what derives from it on another device', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevices(target);

    for (const [name, once] of Object.entries(CASES)) {
      rule('S611', `nothing that derives from a failed kernel of another device is given out: ${name}`, async () => {
        const { device, other } = chapter;
        await other.compile(...KERNELS);
        const errors = other.errors$.subscribe(() => undefined);
        using there = other.zeros(LENGTH);
        using further = other.zeros(LENGTH);
        await withDerived(device, async (given) => {
          const leaks = await leaksOf(given, (all, at) => {
            for (const array of [there, further]) other.stream.fill(array, -7);
            return once(all, [there, further], at);
          });
          expect(leaks).toEqual({});
        });
        errors.unsubscribe();
      });
    }

    rule('S612', 'work of the other device that does not derive from it fulfils', async () => {
      const { device, other } = chapter;
      await other.compile(...KERNELS);
      using there = other.zeros(LENGTH);
      using further = other.zeros(LENGTH);
      await withDerived(device, async ({ x, y }) => {
        const seen: (number | undefined)[] = [];
        for (let n = 0; n < 100; n++) {
          const failed = rejectionOf(device.stream.launch(pick, LENGTH, { x, at: 5000, y }).done);
          other.stream.waitStream(device.stream);
          other.stream.copy(there, x);
          await other.stream.launch(plus, LENGTH, { y: there, z: further }).done;
          seen.push((await further.read())[n]);
          await failed;
        }
        expect(seen).toEqual(seen.map(() => 1));
      });
    });
  });
}

const PROGRAM = new URL('../process/programs/sharing-failures.mjs', import.meta.url);
const ROUNDS = 40;

export function derivedOfThreads(target: Target): void {
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
}

async function upstreamOf(name: string, promise: Promise<unknown>, isUpstream: boolean): Promise<string | undefined> {
  try {
    await promise;
    return `${name} fulfilled`;
  } catch (error) {
    return isUpstream && !(error instanceof UpstreamError) ? `${name}: ${String(error)}` : undefined;
  }
}
