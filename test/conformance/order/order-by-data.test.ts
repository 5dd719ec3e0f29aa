// Chapter 1, third part: order by arrays, byte range by byte range, and the calls that a checked stream refuses.
import { describe, expect } from 'vitest';
import { MillraceError, StreamHazardError, type Device, type DeviceArray, type Stream } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { mixed, mixKernel } from '../../support/kernels.js';
import { hold } from '../../support/latch.js';
import { witness } from '../../support/order.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { busyUntil, eventually, thrownBy } from '../../support/wait.js';

/** One use of an array of four numbers, or of a part of it. */
interface Use {
  readonly name: string;
  readonly access: 'read' | 'write';
  readonly kind: string;
  readonly perform: (stream: Stream, x: DeviceArray<'u32'>, scratch: DeviceArray<'u32'>) => unknown;
}
const USES: readonly Use[] = [
  { name: 'a fill', access: 'write', kind: 'fill', perform: (s, x) => s.fill(x, 1) },
  { name: 'a copy into it', access: 'write', kind: 'copy', perform: (s, x, y) => s.copy(x, y) },
  { name: 'an upload', access: 'write', kind: 'copy', perform: (s, x) => s.copy(x, new Uint32Array(4)) },
  { name: 'a launch', access: 'write', kind: 'launch', perform: (s, x) => s.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 1 }) },
  { name: 'a copy from it', access: 'read', kind: 'copy', perform: (s, x, y) => s.copy(y, x) },
];

defineChapter((target) => {
  describe('1 streams: order by data', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S120', 'disjoint halves of one array do not wait for each other, overlapping parts do', async () => {
      const { device } = chapter;
      const [a, b] = [device.createStream(), device.createStream()];
      using x = device.zeros(8, 'i32');
      await device.synchronize();
      await using latch = await hold(target, a);
      a.fill(x.subarray(0, 4), 1);
      await b.fill(x.subarray(4, 8), 2).done;
      await b.fill(x.subarray(5), 3).done;
      const across = b.fill(x.subarray(3, 6), 4);
      await witness(a);
      expect([across.isComplete, latch.operation.isComplete]).toEqual([false, false]);
      latch.open();
      expect([...(await x.read())]).toEqual([1, 1, 1, 4, 4, 4, 3, 3]);
      await Promise.all([a.close(), b.close()]);
    });

    rule('S120', 'a read of one half does not wait for the writer of the other', async () => {
      const { device } = chapter;
      const a = device.createStream();
      using x = device.full(8, 7, 'i32');
      await device.synchronize();
      await using latch = await hold(target, a);
      a.fill(x.subarray(0, 4), 1);
      expect([...(await x.subarray(4).read())]).toEqual([7, 7, 7, 7]);
      const whole = x.read();
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect([...(await whole)]).toEqual([1, 1, 1, 1, 7, 7, 7, 7]);
      await a.close();
    });

    rule('S120', 'a reader of a range waits for the last writer of each of its bytes', async () => {
      const { device } = chapter;
      const writers = Array.from({ length: 4 }, () => device.createStream());
      const reader = device.createStream();
      using x = device.zeros(16, 'i32');
      using y = device.zeros(16, 'i32');
      await device.synchronize();
      for (const [held, stream] of writers.entries()) {
        await using latch = await hold(target, stream);
        for (const [n, one] of writers.entries()) one.fill(x.subarray(4 * n, 4 * n + 4), n + 1);
        const copy = reader.copy(y, x);
        await witness(reader);
        expect(copy.isComplete, `writer ${held} is held`).toBe(false);
        latch.open();
        await copy.done;
      }
      expect([...(await y.read())]).toEqual([1, 2, 3, 4].flatMap((n) => [n, n, n, n]));
      await Promise.all([...writers, reader].map((stream) => stream.close()));
    });

    rule('S120', 'work on chunks of one array stays parallel on several streams', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: 8 }, () => device.createStream());
      using x = device.zeros(8, 'u32');
      await device.compile(mixKernel);
      await device.synchronize();
      await using latch = await hold(target, streams[0]!);
      for (let k = 0; k < 50; k++) {
        for (const [n, stream] of streams.entries()) {
          stream.launch(mixKernel, { grid: 1, block: 1 }, { x: x.subarray(n, n + 1), k });
        }
      }
      await Promise.all(streams.slice(1).map((stream) => stream.synchronize()));
      expect(latch.operation.isComplete).toBe(false);
      latch.open();
      expect([...(await x.read())]).toEqual(Array.from({ length: 8 }, () => mixed(0, 0, 50)));
      await Promise.all(streams.map((stream) => stream.close()));
    });

    rule('S121', 'a tracked stream, a read and a free wait for the uses of an explicit one', async () => {
      const { device } = chapter;
      const [explicit, tracked] = [device.createStream({ ordering: 'explicit' }), device.createStream()];
      using x = device.zeros(4, 'i32');
      using y = device.zeros(4, 'i32');
      await device.synchronize();
      await using latch = await hold(target, explicit);
      explicit.fill(x, 1);
      const copy = tracked.copy(y, x);
      const read = x.read();
      await witness(tracked);
      expect(copy.isComplete).toBe(false);
      latch.open();
      expect([[...(await read)], [...(await y.read())]]).toEqual([
        [1, 1, 1, 1],
        [1, 1, 1, 1],
      ]);
      await Promise.all([explicit.close(), tracked.close()]);
    });

    rule('S121', 'memory that several explicit streams still use is not reused', async () => {
      const { device } = chapter;
      const users = Array.from({ length: 3 }, () => device.createStream({ ordering: 'explicit' }));
      const source = device.full(4096, 0xabcd, 'u32');
      const copies = users.map(() => device.zeros(4096, 'u32'));
      await device.synchronize();
      await using latch = await hold(target, users[1]!);
      for (const [n, user] of users.entries()) user.copy(copies[n]!, source);
      source[Symbol.dispose]();
      const others = Array.from({ length: 6 }, (_, n) => device.full(4096, n, 'u32'));
      await others[5]!.read();
      latch.open();
      for (const copy of copies) expect((await copy.read()).every((value) => value === 0xabcd)).toBe(true);
      for (const array of [...copies, ...others]) array[Symbol.dispose]();
      await Promise.all(users.map((user) => user.close()));
    });

    for (const first of USES) {
      for (const second of USES) {
        const isHazard = first.access === 'write' || second.access === 'write';
        rule('S122', `${first.name}, then ${second.name} on another stream: ${isHazard ? 'a hazard' : 'none'}`, async () => {
          await withPair(chapter.device, async (a, b, make) => {
            const [x, forFirst, forSecond] = [make(), make(), make()];
            first.perform(a, x, forFirst);
            const racing = (): unknown => second.perform(b, x, forSecond);
            if (isHazard) {
              expect(hazardOf(racing)).toMatchObject({ first: { access: first.access }, second: { access: second.access } });
              b.waitStream(a);
            }
            racing();
          });
        });
      }
    }

    rule('S122', 'a typical hazard: an array made on the current stream, used on a new one without a wait', async () => {
      const { device } = chapter;
      const current = device.createStream({ ordering: 'checked', label: 'current' });
      const fresh = device.createStream({ ordering: 'checked', label: 'fresh' });
      const x = current.run(() => device.zeros(4, 'u32'), { syncEnter: false });
      const use = (): unknown => fresh.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 3 });
      const hazard = hazardOf(use);
      expect([hazard.first.stream, hazard.second.stream]).toEqual(['current', 'fresh']);
      expect([hazard.first.access, hazard.second.access]).toEqual(['write', 'write']);
      fresh.waitStream(current);
      use();
      expect((await x.read())[0]).toBe(mixed(0, 3, 1));
      x[Symbol.dispose]();
      await Promise.all([current.close(), fresh.close()]);
    });

    rule('S122', 'disjoint ranges, and uses on one stream, are no hazard', async () => {
      await withPair(chapter.device, async (a, b, make) => {
        const x = make();
        a.fill(x.subarray(0, 2), 1);
        b.fill(x.subarray(2, 4), 2);
        a.fill(x.subarray(0, 2), 3);
        b.launch(mixKernel, { grid: 1, block: 1 }, { x: x.subarray(3), k: 3 });
        expect(hazardOf(() => b.fill(x.subarray(1, 3), 4)).first.stream).toBe(a.label);
        b.fill(x.subarray(3), 5);
      });
    });

    rule('S122', 'the stream of the second use decides: tracked waits, explicit does nothing', async () => {
      await withPair(chapter.device, async (checked, _other, make) => {
        const { device } = checked;
        const [tracked, explicit] = [device.createStream(), device.createStream({ ordering: 'explicit' })];
        const x = make();
        checked.fill(x, 1);
        tracked.fill(x, 2);
        expect(hazardOf(() => checked.fill(x, 3)).first.stream).toBe(tracked.label);
        explicit.fill(x, 4);
        expect(hazardOf(() => checked.fill(x, 3))).toBeInstanceOf(StreamHazardError);
        checked.waitStream(explicit);
        checked.waitStream(tracked);
        checked.fill(x, 5);
        await Promise.all([tracked.close(), explicit.close()]);
      });
    });

    rule('S123', 'the error shows the array and both uses, and nothing was submitted', async () => {
      await withPair(chapter.device, async (a, b, make) => {
        const x = make();
        a.fill(x, 1);
        const pending = b.record();
        const before = b.pending;
        const hazard = hazardOf(() => b.launch(mixKernel, { grid: 1, block: 1, label: 'the second' }, { x, k: 1 }));
        expect(b.pending).toBeLessThanOrEqual(before);
        expect(hazard).toBeInstanceOf(MillraceError);
        expect(hazard.code).toMatch(/^ERR_MILLRACE_/);
        expect(hazard.array).toBe(x.label);
        expect(hazard.first).toMatchObject({ stream: a.label, access: 'write', operation: { kind: 'fill', device: a.device.info.id } });
        expect(hazard.second).toMatchObject({ stream: b.label, access: 'write', operation: { kind: 'launch' } });
        for (const place of [hazard.madeAt, hazard.first.at, hazard.second.at]) expect(place).toMatch(/order-by-data\.test\.ts:\d+/);
        for (const part of [x.label, a.label, b.label]) expect(hazard.message).toContain(part);
        // A repeated call is checked again.
        hazardOf(() => b.launch(mixKernel, { grid: 1, block: 1 }, { x, k: 1 }));
        await pending.done;
        expect([...(await x.read())]).toEqual([1, 1, 1, 1]);
      });
    });

    const orders: readonly (readonly [string, (a: Stream, b: Stream, x: DeviceArray<'u32'>) => unknown])[] = [
      ['waitStream', (a, b) => b.waitStream(a)],
      ['waitEvent', (a, b) => b.waitEvent(a.record())],
      [
        'a wait through a third stream',
        (a, b) => {
          const third = a.device.createStream({ ordering: 'explicit' });
          third.waitStream(a);
          b.waitEvent(third.record());
          void third.close();
        },
      ],
      ['run, which waits when it is entered', (a, b) => a.run(() => b.run(() => undefined), { syncEnter: false })],
      ['setCurrentStream with sync', (a, b) => a.run(() => a.device.setCurrentStream(b, { sync: true }), { syncEnter: false })],
      ['stream.synchronize', (a) => a.synchronize()],
      ['device.synchronize', (a) => a.device.synchronize()],
      ['event.done', (a) => a.record().done],
      ['event.synchronize', (a) => a.record().synchronize()],
      ['ready', (a) => a.ready({ below: 1 })],
      ['a read of the array', (_a, _b, x) => x.read()],
      [
        'isComplete of an event that answered true',
        async (a) => {
          const event = a.record();
          await eventually('the event is reached', () => event.isComplete);
        },
      ],
      ['isComplete of the stream that answered true', (a) => expect(busyUntil(() => a.isComplete, 10_000)).toBe(true)],
    ];
    for (const [name, order] of orders) {
      rule('S124', `${name} orders`, async () => {
        await withPair(chapter.device, async (a, b, make) => {
          const x = make();
          a.fill(x, 1);
          await order(a, b, x);
          await b.fill(x, 2).done;
          expect([...(await x.read())]).toEqual([2, 2, 2, 2]);
        });
      });
    }

    rule('S124', 'the done of an operation orders it and earlier operations, and no later ones', async () => {
      await withPair(chapter.device, async (a, b, make) => {
        const [x, y] = [make(), make()];
        a.fill(x, 1);
        const second = a.fill(x, 2);
        a.fill(y, 3);
        await second.done;
        b.fill(x, 4);
        hazardOf(() => b.fill(y, 5));
      });
    });

    rule('S124', 'an event orders the work before its record, not the work after', async () => {
      await withPair(chapter.device, async (a, b, make) => {
        const [x, y] = [make(), make()];
        a.fill(x, 1);
        const event = a.record();
        a.fill(y, 2);
        b.waitEvent(event);
        b.fill(x, 3);
        hazardOf(() => b.fill(y, 4));
      });
    });

    rule('S124', 'an operation that has finished unobserved orders nothing', async () => {
      await withPair(chapter.device, async (a, b, make) => {
        const x = make();
        a.fill(x, 1);
        const aside = a.device.createStream({ ordering: 'explicit' });
        using z = aside.zeros(1);
        for (let n = 0; n < 20; n++) await aside.fill(z, n).done;
        hazardOf(() => b.fill(x, 2));
        await aside.close();
      });
    });

    rule('S125', 'reads and frees are never hazards', async () => {
      await withPair(chapter.device, async (a, b, make) => {
        const x = make();
        a.fill(x, 6);
        expect([...(await x.read())]).toEqual([6, 6, 6, 6]);
        a.fill(x, 7);
        expect(await x.item(2)).toBe(7);
        const gone = b.zeros(4, 'u32');
        a.waitStream(b);
        a.fill(gone, 1);
        gone[Symbol.dispose]();
        await b.synchronize();
      });
    });
  });
});

function hazardOf(call: () => unknown): StreamHazardError {
  const error = thrownBy(call);
  expect(error).toBeInstanceOf(StreamHazardError);
  return error as StreamHazardError;
}

/** Two checked streams, and arrays of four numbers whose creation both streams have waited for. */
async function withPair(device: Device, body: (a: Stream, b: Stream, make: () => DeviceArray<'u32'>) => Promise<void>): Promise<void> {
  const [a, b] = [device.createStream({ ordering: 'checked' }), device.createStream({ ordering: 'checked' })];
  const made: DeviceArray<'u32'>[] = [];
  await body(a, b, () => {
    const array = a.zeros(4, 'u32');
    b.waitStream(a);
    made.push(array);
    return array;
  });
  await device.synchronize();
  for (const array of made) array[Symbol.dispose]();
  await Promise.all([a.close(), b.close()]);
}
