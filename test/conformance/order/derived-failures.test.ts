// Chapter 6, third part: what derives from a failed operation is failed when its promise settles, however early it was submitted. Each case
// is a race with the report of the failure, so each is repeated.
import { firstValueFrom, of } from 'rxjs';
import { describe, expect } from 'vitest';
import { download, launch, upload, type Operation } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { leakOf, LENGTH, leaksOf, otherThan, pick, plus, plusHere, spoil, TIMES, withDerived } from '../../support/derived.js';
import type { Derived, Takes } from '../../support/derived.js';
import { chapterDevice, rulesOf, type RuleNumber } from '../../support/rule.js';

type Case = (given: Derived, at: number) => Takes | Promise<Takes>;

const chunksOf = async (stream: AsyncIterable<unknown>): Promise<number> => {
  let chunks = 0;
  for await (const _ of stream) chunks++;
  return chunks;
};

/** Cases that need no graph, by what is between the failure and what is taken. */
const CASES: Readonly<Record<string, readonly [RuleNumber, Case]>> = {
  'a read': ['S605', ({ device: { stream }, x, y }, at) => ({ failed: stream.launch(pick, LENGTH, { x, at, y }), read: y.read() })],
  'a kernel, and only its array is read': [
    'S605',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      return { read: z.read() };
    },
  ],
  'a kernel, every promise': [
    'S605',
    ({ device: { stream }, x, y, z }, at) => {
      const failed = stream.launch(pick, LENGTH, { x, at, y });
      const next = stream.launch(plus, LENGTH, { y, z });
      return {
        failed,
        next,
        read: z.read(),
        item: z.item(5),
        into: z.read({ into: new Float32Array(LENGTH) }),
        view: z.subarray(7, 9).read(),
      };
    },
  ],
  'thirty kernels': [
    'S605',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      let launched: Operation | undefined;
      for (let n = 0; n < 15; n++) {
        stream.launch(plus, LENGTH, { y, z });
        launched = stream.launch(plus, LENGTH, { y: z, z: y });
      }
      return { launched: launched!, read: y.read() };
    },
  ],
  'kernels in place': [
    'S605',
    ({ device: { stream }, x, y }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      for (let n = 0; n < 5; n++) stream.launch(plusHere, LENGTH, { x: y });
      return { read: y.read(), item: y.item(0) };
    },
  ],
  'a kernel that failed in place': [
    'S605',
    ({ device: { stream }, y, z }, at) => {
      stream.launch(spoil, LENGTH, { x: y, at });
      stream.launch(plusHere, LENGTH, { x: y });
      stream.launch(plus, LENGTH, { y, z });
      return { first: y.read(), second: z.read() };
    },
  ],
  'a copy, whose target is read': [
    'S611',
    ({ device: { stream }, x, y, z, w }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      const copied = stream.copy(z, y);
      stream.launch(plus, LENGTH, { y: z, z: w });
      return { copied, read: z.read(), further: w.read() };
    },
  ],
  'a chain of copies, of which only the last is taken': [
    'S611',
    ({ device: { stream }, x, y, z, w }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      stream.copy(z, y);
      stream.copy(w, z);
      return { read: w.read() };
    },
  ],
  'parts of copies, dense and strided': [
    'S611',
    ({ device: { stream }, x, y, z, w }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      const dense = stream.copy(z, y, { srcOffset: 100, dstOffset: 7, count: 64 });
      const strided = stream.copy(w.reshape([32, 32]).view(undefined, 3), z.reshape([32, 32]).view(undefined, 9));
      return { dense, strided, part: z.subarray(7, 71).read(), read: w.read(), column: w.reshape([32, 32]).view(undefined, 3).read() };
    },
  ],
  'a clone and a temporary that is disposed early': [
    'S611',
    ({ device: { stream }, x, y, z }, at) => {
      const temporary = stream.zeros(LENGTH);
      stream.launch(pick, LENGTH, { x, at, y: temporary });
      const clone = temporary.clone(stream);
      temporary[Symbol.dispose]();
      stream.launch(plus, LENGTH, { y: clone, z });
      clone[Symbol.dispose]();
      // The memory, and the name, of what was disposed serve another array, which is good.
      const again = stream.full(LENGTH, 4);
      stream.copy(y, again);
      again[Symbol.dispose]();
      return { read: z.read() };
    },
  ],
  'an overwrite of a part: fill, upload, copy, kernel': [
    'S606',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      stream.fill(y.subarray(0, 10), 1);
      stream.copy(y, new Float32Array(10), { dstOffset: 20 });
      stream.copy(y, x, { dstOffset: 40, count: 10 });
      stream.launch(plus, 10, { y: x.subarray(0, 10), z: y.subarray(60, 70) });
      stream.launch(plus, LENGTH, { y, z });
      return { read: y.read(), further: z.read() };
    },
  ],
  'copies to pinned and to ordinary arrays': [
    'S605',
    ({ device, x, y, z }, at) => {
      const { stream } = device;
      const pinned = device.pinned(LENGTH);
      stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      const takes = {
        pinned: stream.copy(pinned, z),
        part: stream.copy(pinned, z, { count: 3 }),
        ordinary: stream.copy(new Float32Array(LENGTH), z),
        strided: stream.copy(new Float32Array(32), z.reshape([32, 32]).view(undefined, 1)),
      };
      pinned[Symbol.dispose]();
      return takes;
    },
  ],
  'a web stream': [
    'S935',
    ({ device: { stream }, x, y, z }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      return { chunks: chunksOf(z.toReadable({ chunkBytes: 256 })) };
    },
  ],
  'other tracked streams': [
    'S605',
    ({ streams: [a, b, c], x, y, z, w }, at) => {
      a!.launch(pick, LENGTH, { x, at, y });
      b!.launch(plus, LENGTH, { y, z });
      const last = c!.launch(plus, LENGTH, { y: z, z: w });
      return { last, read: w.read() };
    },
  ],
  'explicit streams with events': [
    'S605',
    ({ explicit: [a, b, c], x, y, z, w }, at) => {
      a!.launch(pick, LENGTH, { x, at, y });
      b!.waitEvent(a!.record());
      b!.launch(plus, LENGTH, { y, z });
      c!.waitStream(b!);
      const last = c!.launch(plus, LENGTH, { y: z, z: w });
      return { last, read: w.read(), own: c!.copy(new Float32Array(LENGTH), w) };
    },
  ],
  'a hold that reads, and reads of its function': [
    'S605',
    ({ streams: [a, b], x, y, z }, at) => {
      a!.launch(pick, LENGTH, { x, at, y });
      b!.launch(plus, LENGTH, { y, z });
      return { held: a!.hold(async () => void (await z.read()), { timeoutMs: 20_000 }) };
    },
  ],
  'a value that another kernel needs to fail itself': [
    'S605',
    ({ device: { stream }, x, y, z, w }, at) => {
      stream.launch(pick, LENGTH, { x, at, y });
      stream.launch(plus, LENGTH, { y, z });
      stream.launch(spoil, LENGTH, { x: z, at: 2 });
      stream.launch(pick, LENGTH, { x: z, at: 2, y: w });
      return { z: z.read(), w: w.read() };
    },
  ],
  'operators: upload, launch, download': [
    'S605',
    async ({ streams: [s], x }, at) => {
      const taken = (by: number): Promise<unknown> =>
        firstValueFrom(
          of(new Float32Array(LENGTH)).pipe(
            upload(s!),
            launch(s!, pick, LENGTH, (y) => ({ x, at: by, y })),
            launch(s!, plusHere, LENGTH, (y) => ({ x: y })),
            download(s!),
          ),
        );
      const good = await leakOf(at, 'good', taken(5));
      if (!good?.includes('[4, ...]')) throw new Error(`A good one beside: ${good}`);
      return { bad: taken(at) };
    },
  ],
};

defineChapter((target) => {
  describe('6 failure: what derives from it', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [name, [number, once]] of Object.entries(CASES)) {
      rule(number, `nothing that derives from a failed kernel is given out: ${name}`, async () => {
        await withDerived(chapter.device, async (given) => expect(await leaksOf(given, once)).toEqual({}));
      });
    }

    rule('S605', 'inside a host function and a hold, what derives from a failed kernel is not finished', async () => {
      await withDerived(chapter.device, async (given) => {
        const { device, streams } = given;
        const seen: Record<string, number> = {};
        using pinned = device.pinned(LENGTH);
        const note = (where: string, { status }: Operation): void => {
          const key = `${where}: ${status}`;
          if (status === 'finished') seen[key] = (seen[key] ?? 0) + 1;
        };
        const leaks = await leaksOf(given, ({ x, y, z, w }, at) => {
          const stream = streams[0]!;
          const failed = stream.launch(pick, LENGTH, { x, at, y });
          const next = stream.launch(plus, LENGTH, { y, z });
          const copied = stream.copy(w, z);
          const taken = stream.copy(pinned, w);
          const all = { failed, next, copied, taken };
          const look = (where: string) => (): void => {
            for (const [name, operation] of Object.entries(all)) note(`${where}, ${name}`, operation);
          };
          const called = [stream.host(look('host')), stream.hold(look('hold'), { timeoutMs: 20_000 })];
          const after = Promise.all(called.map(({ done }) => done)).then(look('afterwards'));
          return { ...all, later: after.then(() => taken.done) };
        });
        expect([leaks, seen]).toEqual([{}, {}]);
      });
    });

    rule('S923', 'what operations$ and for await emit of it has the status failed, and its error', async () => {
      await withDerived(chapter.device, async (given) => {
        const stream = given.streams[0]!;
        const wrong: Record<string, number> = {};
        // By the id of the operation. Overwrites that prepare and heal run on the device's own stream.
        const indices = new Map<number, number>();
        let seen = 0;
        const check = (how: string, { id, kind, label, status, error }: Operation): void => {
          const at = indices.get(id);
          if (at === undefined) return;
          seen++;
          const other = status === 'failed' ? otherThan(at, error) : status;
          if (other === undefined) return;
          const key = `${how} ${kind} ${label ?? ''}: ${other}`;
          wrong[key] = (wrong[key] ?? 0) + 1;
        };
        const subscription = stream.operations$.subscribe((operation) => check('operations$', operation));
        const iterated = (async () => {
          for await (const operation of stream) check('for await', operation);
        })();
        const leaks = await leaksOf(given, ({ x, y, z, w }, at) => {
          const failed = stream.launch(pick, LENGTH, { x, at, y });
          const next = stream.launch(plus, LENGTH, { y, z });
          const last = stream.copy(w, z);
          for (const { id } of [failed, next, last]) indices.set(id, at);
          return { last };
        });
        await stream.close();
        await iterated;
        subscription.unsubscribe();
        expect([leaks, wrong, seen]).toEqual([{}, {}, 6 * TIMES]);
      });
    });

    rule('S604', 'work of the same stream that does not derive from it fulfils with its own values', async () => {
      await withDerived(chapter.device, async (given) => {
        const { device, streams, x, y, z, w } = given;
        await device.compile(pick, plus, plusHere);
        const wrong: string[] = [];
        using other = device.zeros(LENGTH);
        const graph = streams[0]!.capture((s) => void s.launch(plusHere, LENGTH, { x: other }));
        for (let n = 0; n < 100; n++) {
          const stream = n % 2 === 0 ? device.stream : streams[0]!;
          const failed = stream.launch(pick, LENGTH, { x, at: 5000 + n, y });
          stream.launch(plus, LENGTH, { y, z });
          stream.fill(other, n);
          stream.launch(graph);
          const beside = stream.launch(plus, LENGTH, { y: other, z: w });
          const record = stream.record();
          const ends = await Promise.allSettled([
            failed.done,
            beside.done,
            w.read(),
            x.read(),
            other.item(3),
            record.done,
            stream.host(() => 1).done,
          ]);
          const states = ends.map(({ status }) => status.slice(0, 3)).join(' ');
          const values = [ends[2], ends[3]].map(
            (end) =>
              (end as { value?: Float32Array }).value?.every((one, _, all) => one === all[0]) && (end as { value: Float32Array }).value[0],
          );
          const text = `${states} ${values.join(' ')} ${String((ends[4] as { value?: number }).value)}`;
          if (text !== `rej ful ful ful ful ful ful ${n + 2} 0 ${n + 1}`) wrong.push(`${n}: ${text}`);
        }
        await graph.close();
        expect(wrong).toEqual([]);
      });
    });

    rule('S606', 'what overwrites the whole array before anything is known heals it', async () => {
      await withDerived(chapter.device, async (given) => {
        const { device, streams, x, y, z, w } = given;
        await device.compile(pick, plus, plusHere);
        using pinned = device.pinned(LENGTH);
        pinned.data.fill(8);
        const { stream } = device;
        stream.fill(x, 8);
        const whole = stream.capture((s) => void s.copy(y, x));
        const ways: Readonly<Record<string, () => Operation>> = {
          fill: () => stream.fill(y, 8),
          'copy of an array': () => stream.copy(y, x),
          'copy of a pinned array': () => stream.copy(y, pinned),
          upload: () => stream.copy(y, new Float32Array(LENGTH).fill(8)),
          'strided copy': () => stream.copy(y.reshape([32, 32]).transpose(), x.reshape([32, 32])),
          kernel: () => stream.launch(pick, LENGTH, { x, at: 1, y }),
          graph: () => stream.launch(whole),
          'another stream': () => streams[1]!.fill(y, 8),
        };
        const wrong: Record<string, number> = {};
        for (let n = 0; n < 25; n++) {
          for (const [name, heal] of Object.entries(ways)) {
            const at = 5000 + n;
            const failed = streams[0]!.launch(pick, LENGTH, { x, at, y });
            // What was taken before the overwrite is failed, what is taken after it is good.
            const before = streams[2]!.launch(plus, LENGTH, { y, z });
            const early = y.read();
            early.catch(() => undefined); // It may reject before its turn below.
            const healed = heal();
            stream.launch(plus, LENGTH, { y, z: w });
            const notes = [
              await leakOf(at, 'failed', failed.done),
              await leakOf(at, 'before', before.done),
              await leakOf(at, 'early', early),
              await leakOf(at, 'z', z.read()),
              ...(await Promise.allSettled([healed.done, y.read(), w.read()])).map((end, which) => {
                if (end.status === 'rejected') return `${['healed', 'y', 'w'][which]} rejected: ${String(end.reason)}`;
                if (which === 0) return undefined;
                return (end.value as Float32Array).every((one) => one === 7 + which) ? undefined : `${'-yw'[which]} has wrong values`;
              }),
            ];
            for (const note of notes) if (note !== undefined) wrong[`${name}: ${note}`] = (wrong[`${name}: ${note}`] ?? 0) + 1;
          }
        }
        await whole.close();
        expect(wrong).toEqual({});
      });
    });
  });
});
