// Chapter 3, third part: copies whose ends are strided.
import { describe, expect } from 'vitest';
import { ArgumentError, type DeviceArray, type DType, type HostOf, type Shape } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { counted, DTYPES, valueOf, zerosOf } from '../../support/values.js';
import { thrownBy } from '../../support/wait.js';

defineChapter((target) => {
  describe('3 memory: strided copies', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const dtype of DTYPES) {
      rule('S330', `every mix of contiguous, strided, pinned and plain keeps each element's index: ${dtype}`, async () => {
        const { device } = chapter;
        const { stream } = device;
        const source = counted(dtype, 12);
        const shape: Shape = [3, 4];
        using contiguous = device.from(source as never, { dtype, shape }) as DeviceArray;
        using wide = device.zeros([3, 8], dtype) as DeviceArray;
        using tall = device.zeros([4, 3], dtype) as DeviceArray;
        using pinned = device.pinned(shape, dtype);
        const strided = [
          wide.view(undefined, [undefined, undefined, 2]),
          wide.view([undefined, undefined, -1], [7, undefined, -2]),
          tall.transpose(),
        ];
        for (const one of strided) {
          stream.copy(one, contiguous);
          for (const two of strided) if (bases(one) !== bases(two)) stream.copy(two, one);
          stream.copy(pinned as never, one);
          await stream.synchronize();
          expect([...(pinned.data as Iterable<number | bigint>)]).toEqual([...(source as Iterable<number | bigint>)]);
          stream.fill(one, valueOf(dtype)[0] as never);
          stream.copy(one, pinned as never);
          expect([...((await one.read()) as Iterable<number | bigint>)]).toEqual([...(source as Iterable<number | bigint>)]);
        }
        // An ordinary typed array has one dimension.
        using line = device.zeros(36, dtype) as DeviceArray;
        const every = line.view([undefined, undefined, -3]);
        stream.copy(every, source as never);
        const plain = zerosOf(dtype, 12) as HostOf[DType];
        await stream.copy(plain as never, every).done;
        expect([...(plain as Iterable<number | bigint>)]).toEqual([...(source as Iterable<number | bigint>)]);
      });
    }

    rule('S330', 'different shapes are refused, and the error shows both', () => {
      const { device } = chapter;
      using x = device.zeros([3, 4], 'i32');
      using y = device.zeros([4, 3], 'i32');
      const error = thrownBy(() => device.stream.copy(x, y.view(undefined, [undefined, undefined, -1])));
      expect(error).toBeInstanceOf(ArgumentError);
      expect(error.message).toMatch(/3\D+4/);
      expect(error.message).toMatch(/4\D+3/);
    });

    rule('S331', 'offsets and counts of one dimension count elements of the view', async () => {
      const { device } = chapter;
      const { stream } = device;
      using x = device.from(counted('i32', 10));
      using y = device.zeros(12, 'i32');
      const even = x.view([undefined, undefined, 2]);
      const back = y.view([undefined, undefined, -1]);
      stream.copy(back, even, { srcOffset: 1, dstOffset: 2, count: 3 });
      expect([...(await back.read())]).toEqual([0, 0, 2, 4, 6, 0, 0, 0, 0, 0, 0, 0]);
      stream.fill(y, 0);
      stream.copy(back, even);
      expect([...(await back.read())]).toEqual([0, 2, 4, 6, 8, 0, 0, 0, 0, 0, 0, 0]);
      stream.copy(back, even, { count: 0 });
      for (const options of [{ srcOffset: 6 }, { count: 6 }, { dstOffset: 9 }, { srcOffset: -1 }, { count: 1.5 }]) {
        expect(
          thrownBy(() => stream.copy(back, even, options)),
          JSON.stringify(options),
        ).toBeInstanceOf(ArgumentError);
      }
    });

    rule('S331', 'with more dimensions, offsets are refused if an array is not contiguous', () => {
      const { device } = chapter;
      using x = device.zeros([4, 4], 'i32');
      using y = device.zeros([4, 4], 'i32');
      for (const options of [{ srcOffset: 1 }, { dstOffset: 1 }, { count: 4 }]) {
        expect(thrownBy(() => device.stream.copy(x, y.transpose(), options))).toBeInstanceOf(ArgumentError);
        expect(thrownBy(() => device.stream.copy(x.transpose(), y, options))).toBeInstanceOf(ArgumentError);
      }
    });

    rule('S332', 'a copy between views that share an element is refused, between interleaved views it is not', async () => {
      const { device } = chapter;
      const { stream } = device;
      using x = device.from(counted('i32', 8));
      for (const [dst, src] of [
        [x.subarray(0, 4), x.subarray(2, 6)],
        [x.view([undefined, undefined, -1]), x],
      ] as const) {
        const error = thrownBy(() => stream.copy(dst, src));
        expect(error).toBeInstanceOf(ArgumentError);
        expect(error.message).toMatch(/overlap/i);
      }
      stream.copy(x.subarray(0, 4), x.subarray(4, 8));
      stream.copy(x.view([0, 8, 2]), x.view([1, 8, 2]));
      expect([...(await x.read())]).toEqual([5, 5, 7, 7, 5, 5, 7, 7]);
    });
  });
});

function bases(view: DeviceArray): string {
  return view.length === 12 && view.strides.includes(3) ? 'tall' : 'wide';
}
