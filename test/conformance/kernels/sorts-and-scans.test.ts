// Chapter 11: sorts, scans and reductions at the sizes where a GPU takes another way: above and below the elements of a tile, several tiles, several
// chunks, many rows; against plain JavaScript.
import { describe, expect } from 'vitest';
import type { DeviceArray, DType } from 'millrace';
import * as ops from 'millrace/ops';
import { defineChapter } from '../../support/chapter.js';
import { narrowed, HALF, widened } from '../../support/half-numbers.js';
import { readValues } from '../../support/random-views.js';
import { type RandomNumber, randomFrom } from '../../support/random-text.js';
import { IS_LONG } from '../../support/long.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

type Value = number | bigint;

/** Elements of a type with many equal ones, its extremes, and what is special. */
const ELEMENTS: Readonly<Partial<Record<DType, (random: RandomNumber) => Value>>> = {
  bool: (random) => random(2),
  u8: (random) => random(256),
  i8: (random) => random(256) - 128,
  u16: (random) => random(2 ** 16),
  i16: (random) => random(2 ** 16) - 2 ** 15,
  i32: (random) => (random(3) === 0 ? random(7) - 3 : random(2 ** 32) - 2 ** 31),
  u32: (random) => random(2 ** 32),
  i64: (random) => BigInt.asIntN(64, (BigInt(random(2 ** 32)) << 32n) + BigInt(random(5))),
  u64: (random) => (BigInt(random(2 ** 32)) << 32n) + BigInt(random(2)),
  f16: (random) => widened(HALF, narrowed(HALF, special(random) ?? random(64) - 32.5)),
  f32: (random) => special(random) ?? Math.fround((random(2 ** 20) - 2 ** 19) * 2 ** (random(60) - 30)),
  f64: (random) => special(random) ?? (random(2 ** 20) - 2 ** 19) * 2 ** (random(600) - 300),
};

function special(random: RandomNumber): number | undefined {
  return [Number.NaN, -0, 0, Infinity, -Infinity, 1, -1][random(20)];
}

/** -1, 0 or 1: NaN last in both directions, and both zeros equal. */
function order(a: Value, b: Value, isDescending: boolean): number {
  if (a !== a || b !== b) return Number(a !== a) - Number(b !== b);
  return (a < b ? -1 : a > b ? 1 : 0) * (isDescending ? -1 : 1);
}

/** The numbers of the elements of a row in their order. */
function ordered(row: readonly Value[], isDescending: boolean): number[] {
  return row.map((_, at) => at).toSorted((p, q) => order(row[p]!, row[q]!, isDescending) || p - q);
}

/** Elements of integers are read as bigint. */
const isAlike = (a: Value, b: Value): boolean => (typeof a === typeof b ? Object.is(a, b) : Number(a) === Number(b));
/** What \`from\` takes: booleans have no other list. */
const hostOf = (dtype: DType, values: readonly Value[]): never => (dtype === 'bool' ? values.map((value) => value !== 0) : values) as never;

defineChapter((target) => {
  describe('11 operations on arrays: long rows', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    /** Compares `sort`, `argsort` and `topk` of rows with the order that JavaScript gives them. */
    async function compare(values: readonly Value[], x: DeviceArray, axis: number, isDescending: boolean, k: number): Promise<void> {
      const opts = { axis, descending: isDescending };
      const [rows, length] = axis === 0 ? [x.shape[1]!, x.shape[0]!] : [x.shape[0]!, x.shape[1]!];
      using sorted: DeviceArray = ops.sort(x, opts);
      using places = ops.argsort(x, opts);
      const best = ops.topk(x, k, opts);
      using bestValues: DeviceArray = best.values;
      using bestPlaces = best.indices;
      const [own, numbers, top, topNumbers] = await Promise.all([sorted, places, bestValues, bestPlaces].map((one) => readValues(one)));
      const at = (row: number, place: number, extent: number): number => (axis === 0 ? place * rows + row : row * extent + place);
      const wrong: string[] = [];
      for (let row = 0; row < rows; row++) {
        const of = Array.from({ length }, (_, place) => values[at(row, place, length)]!);
        const wanted = ordered(of, isDescending);
        const place = wanted.findIndex(
          (from, to) => !isAlike(numbers![at(row, to, length)]!, from) || !isAlike(own![at(row, to, length)]!, of[from]!),
        );
        if (place >= 0) wrong.push(`row ${row} differs at ${place}`);
        const first = wanted
          .slice(0, k)
          .findIndex((from, to) => !isAlike(topNumbers![at(row, to, k)]!, from) || !isAlike(top![at(row, to, k)]!, of[from]!));
        if (first >= 0) wrong.push(`the largest of row ${row} differ at ${first}`);
      }
      expect(wrong).toEqual([]);
    }

    // The fake driver compiles each kernel for the CPU and runs it thread by thread: an integer and a floating-point type. The orders differ in one constant.
    // On the CPU, each width and each kind of key; sorts.test.ts has longer rows of i32, i64, f32 and f64.
    const isShort = target.name.startsWith('fake') && !IS_LONG;
    const FEW =
      IS_LONG || target.name === 'cuda' ? Object.keys(ELEMENTS) : isShort ? ['i64', 'f32'] : ['bool', 'i8', 'u16', 'u64', 'f16', 'f32'];
    for (const [at, [dtype, element]] of Object.entries(ELEMENTS).entries()) {
      if (!FEW.includes(dtype)) continue;
      const orders = IS_LONG || (dtype === 'f32' && !isShort) ? [false, true] : [at % 2 === 0];
      rule('S1112', `sorts rows of ${dtype} of several tiles`, async () => {
        const { device } = chapter;
        const random = randomFrom(dtype.length * 31 + dtype.charCodeAt(1));
        for (const [rows, length, k] of [
          [1, 2048, 9],
          [2, 4097, 500],
          [1, 9000, 4000],
        ] as const) {
          const values = Array.from({ length: rows * length }, () => element(random));
          using x = device.from(hostOf(dtype as DType, values), { shape: [rows, length], dtype: dtype as DType });
          for (const isDescending of orders) await compare(values, x as DeviceArray, 1, isDescending, k);
        }
      });
    }

    rule('S1112', 'sorts along an axis that is not the last, and a reversed view', async () => {
      const { device } = chapter;
      const values = Array.from({ length: 3 * 5000 }, (_, at) => (at * 7919) % 101);
      using x = device.from(values, { shape: [5000, 3] });
      await compare(values, x, 0, true, 100);
      const first = values.slice(0, 5000);
      using line = device.from(first, { shape: [1, 5000] });
      await compare(first.toReversed(), line.view(undefined, [undefined, undefined, -1]), 1, false, 3);
    });

    rule('S1112', 'equal elements keep their order in all chunks', async () => {
      const { device } = chapter;
      using x = device.full(IS_LONG ? 150_000 : 70_000, 3, 'i32');
      using places = ops.argsort(x);
      const best = ops.topk(x, 10_000);
      expect((await places.read()).every((from, to) => from === to)).toBe(true);
      expect((await best.indices.read()).every((from, to) => from === to)).toBe(true);
      best.values[Symbol.dispose]();
      best.indices[Symbol.dispose]();
    });

    rule('S1112', 'sorts more rows than there are chunks', async () => {
      const { device } = chapter;
      const [rows, length] = [530, 4100];
      const host = Uint8Array.from({ length: rows * length }, (_, at) => (at * 7919) % 251);
      using x = device.from(host, { shape: [rows, length] });
      using sorted = ops.sort(x, { axis: 1 });
      const own = await sorted.read();
      const wrong = Array.from({ length: rows }, (_, row) => row).filter((row) => {
        const [from, to] = [row * length, (row + 1) * length];
        return !Buffer.from(own.subarray(from, to)).equals(Buffer.from(host.slice(from, to).toSorted()));
      });
      expect(wrong).toEqual([]);
    });

    for (const dtype of ['f16', 'f32', 'f64', 'i32', 'u8', 'bool'] as const) {
      if (isShort && dtype !== 'f32' && dtype !== 'bool') continue;
      if (target.name === 'cpu' && !IS_LONG && (dtype === 'f64' || dtype === 'u8')) continue;
      rule('S1113', `scans rows of ${dtype} of several tiles and chunks`, async () => {
        const { device } = chapter;
        for (const [rows, length] of [
          [1, 65],
          [3, 256],
          [2, 257],
          [1, 4096],
          [2, 4097],
          ...(dtype === 'f32' ? [[530, 4100] as const] : []),
          // So many rows that each is one chunk of two tiles, and more than a grid has along y.
          ...(dtype === 'f32' && target.name === 'cuda' ? [[4300, 4100] as const, [65_600, 66] as const] : []),
        ] as const) {
          // Sums of these are exact in every type.
          const [most, middle] = dtype === 'bool' ? [2, 0] : dtype === 'f16' ? [5, 2] : [13, 0];
          const values = Array.from({ length: rows * length }, (_, at) => ((at * 7919) % most) - middle);
          using x = device.from(hostOf(dtype, values), { shape: [rows, length], dtype });
          using sums: DeviceArray = ops.cumsum(x);
          const own = await readValues(sums);
          let sum = 0;
          const wrong = values.findIndex((value, at) => {
            sum = at % length === 0 ? value : sum + value;
            return Number(own[at]) !== sum;
          });
          expect([rows, length, wrong]).toEqual([rows, length, -1]);
        }
      });
    }

    rule('S1113', 'a scan gives the same bits at each call', async () => {
      const { device } = chapter;
      using x = ops.generator(5).normal(200_000, { device });
      using one = ops.cumsum(x);
      using other = ops.cumsum(x);
      const [first, second] = await Promise.all([one.read(), other.read()]);
      expect(Buffer.from(first.buffer).equals(Buffer.from(second.buffer))).toBe(true);
    });

    const isWhole = IS_LONG || target.name === 'cuda';
    rule('S1107', 'reductions load several elements at once, along rows and columns', async () => {
      const { device } = chapter;
      for (const [rows, columns] of [
        [1, 16 * 1024 + 7],
        [3, 2049],
        [2047, 3],
        [7, 65],
        [9, 1],
      ] as const) {
        const values = Array.from({ length: rows * columns }, (_, at) => ((at * 7919) % 97) - 40);
        using x = device.from(values, { shape: [rows, columns] });
        for (const axis of [0, 1]) {
          const lines = Array.from({ length: axis === 0 ? columns : rows }, (_, line) =>
            axis === 0
              ? Array.from({ length: rows }, (_row, at) => values[at * columns + line]!)
              : values.slice(line * columns, (line + 1) * columns),
          );
          using sums = ops.sum(x, { axis });
          expect([...(await sums.read())]).toEqual(lines.map((line) => line.reduce((sum, value) => sum + value, 0)));
          // The short form has one of the two others for each shape, along its longer axis.
          if (!isWhole && axis !== Number(columns > rows)) continue;
          if (isWhole || rows % 4 === 1) {
            using places = ops.argmax(x, { axis });
            expect([...(await places.read())]).toEqual(lines.map((line) => line.indexOf(Math.max(...line))));
          }
          if (isWhole || rows % 4 !== 1) {
            using least = ops.min(x.transpose(), { axis: 1 - axis });
            expect([...(await least.read())]).toEqual(lines.map((line) => Math.min(...line)));
          }
        }
      }
    });
  });
});
