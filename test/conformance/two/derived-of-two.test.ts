// Chapter 6: what derives from a failed kernel on another device is failed when its promise settles.
import { describe, expect } from 'vitest';
import { type DeviceArray } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { KERNELS, LENGTH, leaksOf, pick, plus, plusHere, withDerived, type Derived, type Takes } from '../../support/derived.js';
import { chapterDevices, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

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

defineChapter((target) => {
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
});
