// Chapter 3: arrays as text and as lists.
import { describe, expect, vi } from 'vitest';
import {
  AbortError,
  ArgumentError,
  CaptureError,
  type DeviceArray,
  inout,
  kernel,
  type Operation,
  print,
  StateError,
  u32,
  UpstreamError,
} from 'millrace';
import { add } from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { hold } from '../../support/latch.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually, isSettled, rejectionOf, thrownBy } from '../../support/wait.js';

const outside = kernel('outside', { x: inout(u32) }, ({ x }, { i }) => {
  x[i + 2] = 1;
});

defineChapter((target) => {
  describe('3 memory: arrays as text', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S370', 'toString gives the text that NumPy prints, in the order of the shape, whatever the strides', async () => {
      const { device } = chapter;
      using x = device.from([1, 2.5, -3, 4, 1 / 3, 6], { shape: [2, 3] });
      expect(await x.toString()).toBe('[[ 1.          2.5        -3.        ]\n [ 4.          0.33333334  6.        ]]');
      expect(await x.transpose().toString({ precision: 2 })).toBe('[[ 1.    4.  ]\n [ 2.5   0.33]\n [-3.    6.  ]]');
      expect(await x.view(1, [undefined, undefined, -1]).toString()).toBe('[6.         0.33333334 4.        ]');
      expect(await x.view(0, 1).toString()).toBe('2.5');
      using flags = device.from([true, false], { dtype: 'bool' });
      using longs = device.from([-1n, 2n ** 62n], { dtype: 'i64', shape: [2, 1] });
      using none = device.zeros([3, 0]);
      using halves = device.full(2, 0.1, 'f16');
      using brains = device.full(1, 0.1, 'bf16');
      const texts = await Promise.all([flags, longs, none, halves, brains].map((array: DeviceArray) => array.toString()));
      expect(texts).toEqual(['[ True False]', '[[                 -1]\n [4611686018427387904]]', '[]', '[0.1 0.1]', '[0.1]']);
    });

    rule('S370', 'of a large array only the edges are read and shown', async () => {
      const { device } = chapter;
      const numbers = Int32Array.from({ length: 3 * 40 * 50 }, (_, n) => n);
      using x = device.from(numbers, { shape: [3, 40, 50] });
      await device.synchronize();
      const copied: Operation[] = [];
      const watching = device.operations$.subscribe((operation) => copied.push(operation));
      const edge = { threshold: 100, edgeItems: 1 };
      const plane = (first: number): string =>
        `[[${first} ... ${first + 49}]\n  ...\n  [${first + 1950} ... ${first + 1999}]]`.replaceAll(/\d+/g, (n) => n.padStart(4));
      expect(await x.toString(edge)).toBe(`[${plane(0)}\n\n ...\n\n ${plane(4000)}]`);
      const rows = (await x.view(0).transpose().toString()).split('\n');
      expect([rows.length, rows[0], rows[3]]).toEqual([7, '[[   0   50  100 ... 1850 1900 1950]', ' ...']);
      const bytes = (): number => copied.filter(({ kind }) => kind === 'copy').reduce((sum, one) => sum + (one.bytes ?? 0), 0);
      // 2 elements along each of three axes, then 6 by 6.
      await eventually('the reads are reported', () => bytes() >= 4 * (8 + 36));
      expect(bytes()).toBe(4 * (8 + 36));
      watching.unsubscribe();
      expect((await x.toString({ threshold: Infinity, lineWidth: 1e6 })).match(/\d+/g)).toHaveLength(numbers.length);
    });

    rule('S370', 'print prints arrays and other values as one line of console.log', async () => {
      const { device } = chapter;
      using x = device.from([1, 2]);
      using host = device.pinned([1, 2], 'u8');
      host.data.set([7, 80]);
      const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
      try {
        await print('100 %d', x, host, { a: 1 }, 'x', 5n);
        await print();
        using third = device.full(2, 1 / 3);
        await print('y =', third, x, { precision: 2 });
        await print({ precision: 2 }, third);
        await print(third, { a: 1 });
        expect(log.mock.calls.flat()).toEqual([
          '100 %d [1. 2.] [[ 7 80]] { a: 1 } x 5n',
          '',
          'y = [0.33 0.33] [1. 2.]',
          '{ precision: 2 } [0.33333334 0.33333334]',
          '[0.33333334 0.33333334] { a: 1 }',
        ]);
        const misspelt = await rejectionOf(print(third, { edgeitems: 2, precision: 2 }));
        expect(misspelt).toBeInstanceOf(ArgumentError);
        expect(misspelt.message).toContain('did you mean edgeItems?');
      } finally {
        log.mockRestore();
      }
    });

    rule('S371', 'list gives nested lists of JavaScript values', async () => {
      const { device } = chapter;
      using x = device.from([1, 2, 3, 4, 5, 6], { shape: [2, 3] });
      expect(await x.transpose().list()).toEqual([
        [1, 4],
        [2, 5],
        [3, 6],
      ]);
      using longs = device.full([1, 1], 5n, 'i64');
      using flag = device.full([], true, 'bool');
      using half = device.full(1, 1.5, 'f16');
      expect(await Promise.all([longs.list(), flag.list(), half.list()])).toEqual([[[5n]], true, [1.5]]);
      using host = device.pinned([2, 1], 'i8');
      host.data.set([1, -1]);
      expect(host.list()).toEqual([[1], [-1]]);
      // The rank gives the type of the lists.
      const first: number[] = await x.view(0).list({ rank: 1 });
      const rows: number[][] = await x.list({ rank: 2 });
      expect([first, rows[1], host.list({ rank: 2 })[0]?.[0]]).toEqual([[1, 2, 3], [4, 5, 6], 1]);
      for (const error of [await rejectionOf(x.list({ rank: 1 })), thrownBy(() => host.list({ rank: 0 }))]) {
        expect(error).toMatchObject({ name: 'ArgumentError', argument: 'rank' });
        expect(error.message).toContain('is not the number of dimensions of the array (2)');
      }
    });

    rule(
      'S372',
      'String of a device array says what it is and how it is shown; as a number it throws; of a pinned array it is its text',
      () => {
        const { device } = chapter;
        const x = device.zeros([2, 3]);
        const text = `DeviceArray f32 [2, 3] on ${device.info.id}`;
        expect(String(x)).toBe(`${text}: await array.toString() or print(array) shows its elements`);
        expect([x, x].join(' ')).toBe(`${String(x)} ${String(x)}`);
        expect(thrownBy(() => Math.sqrt(x as never))).toMatchObject({
          name: 'ArgumentError',
          message: expect.stringContaining('power(x, 2)') as string,
        });
        expect(thrownBy(() => add(x, `${String(x)}1` as never)).message).toContain('call add(x, 1)');
        x[Symbol.dispose]();
        expect(String(x)).toContain(`${text} (disposed)`);
        using host = device.pinned(2, 'i32');
        host.data.set([3, -4]);
        expect(String(host)).toBe('[ 3 -4]');
      },
    );

    rule('S370', 'the text has the writes that were submitted before, and fails as a read does', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      using x = stream.full(2, 4, 'u32');
      await x.read();
      await using latch = await hold(target, stream);
      stream.fill(x, 5);
      const [text, list] = [x.toString(), x.list()];
      stream.fill(x, 6);
      expect(await isSettled(text)).toBe(false);
      expect(await rejectionOf(x.toString({ signal: AbortSignal.abort() }))).toBeInstanceOf(AbortError);
      expect(await rejectionOf(x.list({ timeoutMs: 0 }))).toMatchObject({ name: 'WaitTimeoutError' });
      latch.open();
      expect([await text, await list]).toEqual(['[5 5]', [5, 5]]);
      for (const call of [() => x.toString(), () => x.list()])
        expect(await captured(() => stream.capture(() => void call()))).toBeInstanceOf(CaptureError);
      const wrong: readonly (readonly [object, string])[] = [
        [{ precision: -1 }, 'The precision (-1) is below the minimum (0).'],
        [{ precision: 101 }, 'The precision (101) exceeds the limit (100).'],
        [{ threshold: 1.5 }, 'The threshold (1.5) is not a whole number.'],
        [{ edgeItems: 0 }, 'The edgeItems (0) is below the minimum (1).'],
        [{ lineWidth: NaN }, 'The lineWidth (NaN) is not a whole number.'],
        [{ suppress: 1 }, 'The suppress (1) is not a boolean.'],
        [{ edgeitems: 2 }, "There is no option 'edgeitems' (did you mean edgeItems?); the options are precision,"],
        [{ timeoutMs: 'x' }, 'timeoutMs'],
      ];
      using host = device.pinned(2);
      for (const [style, message] of wrong) {
        for (const error of [await rejectionOf(x.toString(style)), thrownBy(() => host.toString(style))]) {
          expect(error).toBeInstanceOf(ArgumentError);
          expect(error.message).toContain(message);
        }
      }
      expect(await rejectionOf(x.list({ into: new Uint32Array(2) } as object))).toBeInstanceOf(ArgumentError);
      await rejectionOf(stream.launch(outside, 2, { x }).done);
      expect(await rejectionOf(x.toString())).toBeInstanceOf(UpstreamError);
      x[Symbol.dispose]();
      host[Symbol.dispose]();
      for (const call of [() => x.toString(), () => x.list(), async () => host.list(), async () => host.toString()])
        expect(await rejectionOf(call())).toBeInstanceOf(StateError);
      await stream.close();
    });
  });
});

async function captured(capture: () => unknown): Promise<Error> {
  return rejectionOf((async () => capture())());
}
