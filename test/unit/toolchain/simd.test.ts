// Kernels in SIMD form compared bit for bit with the scalar form, in blocks whose rows fill no group, for each vector size and both kinds
// of masks.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { IS_LONG } from '../../support/long.js';
import { LANE_KERNELS } from '../../support/simd-kernels.js';
import { writtenOf } from '../../support/written.js';
import { i32, inout, input, kernel } from '../../../src/index.js';
import { simdImages, withSimd, WIDTHS } from './simd-images.js';
import { type ImageArgument, i32 as int } from './run-image.js';

const NO_LIMIT = 2 ** 31 - 1;
const COUNT = 333;
/** Rows that fill groups, that do not, and that are shorter than one. */
const BLOCKS = [1, 7, 16, 33, 250];

const images = simdImages();

const hash = (at: number): number => Math.imul(at + 1, 2_654_435_761) >>> 8;

interface Memory {
  readonly arrays: readonly (Int32Array | Float32Array | Uint8Array | Uint32Array)[];
  readonly fault: Uint32Array;
}

/** The results of a launch. `xs`: number of elements of x; with fewer than threads, some threads leave. */
function launch(image: string, { build }: Kernel, block: number, xs: number): Memory {
  const x = Int32Array.from({ length: xs }, (_, at) => hash(at) & 1023);
  const y = Int32Array.from({ length: COUNT }, (_, at) => at);
  const z = Float32Array.from({ length: COUNT }, (_, at) => hash(at) / 2 ** 23 - 0.5);
  const [b, c, fault, word] = [new Uint8Array(COUNT), new Uint32Array(16), new Uint32Array(16), new Uint32Array(1)];
  const shaped = [x, y, z, b, c].flatMap((array): ImageArgument[] => [array, int(array.length)]);
  const args = [...shaped, int(3), int(COUNT), int(NO_LIMIT), int(NO_LIMIT), ...(build.isChecked ? [fault, word] : [])];
  images.run(image, build.entry, { grid: [Math.ceil(COUNT / block), 1, 1], block: [block, 1, 1], threads: 1 }, args);
  return { arrays: [y, z, b, c], fault };
}

/** Each kernel in one width, and each width with a third of the kernels, in the short form. */
const widthsOf = (name: string): readonly string[] =>
  IS_LONG ? WIDTHS : [WIDTHS[Object.keys(LANE_KERNELS).indexOf(name) % WIDTHS.length]!];

describe.each(Object.entries(LANE_KERNELS))('%s', (name, make) => {
  const checked = make('checked') as unknown as Kernel;
  let expected: string;
  beforeAll(async () => {
    expected = await images.built(writtenOf(checked, 'off'));
  });

  test.each(widthsOf(name))('vectors of %s bytes give the same bits as one thread after the other', async (width) => {
    const actual = await images.built(withSimd(checked, width));
    for (const block of BLOCKS)
      expect(launch(actual, checked, block, COUNT), `block ${block}`).toEqual(launch(expected, checked, block, COUNT));
    // Some threads leave an array: it is left alone, and the first of them is named.
    for (const block of [16, 33]) {
      const [one, other] = [launch(actual, checked, block, COUNT - 50), launch(expected, checked, block, COUNT - 50)];
      expect(other.fault[0]).toBe(2);
      expect(one, `block ${block}`).toEqual(other);
    }
  });

  test('so do unchecked kernels', async () => {
    const unchecked = make('unchecked') as unknown as Kernel;
    const [plain, actual] = await Promise.all([images.built(writtenOf(unchecked, 'off')), images.built(writtenOf(unchecked, 'always'))]);
    for (const block of BLOCKS) expect(launch(actual, unchecked, block, COUNT)).toEqual(launch(plain, unchecked, block, COUNT));
  });
});

const lanes = (made: unknown): string | undefined => writtenOf(made as Kernel, 'always').simdSource;

test('a false condition prevents a load, although ranges prove it in bounds', () => {
  const guarded = kernel('guarded', { x: input(i32), y: inout(i32) }, ({ x, y }, { i }) => {
    const at = (place: number): number => x[place]!;
    y[i] = (i > 3 ? at(i - 4) : 7) + (i > 5 && at(i - 6) > 3 ? 1 : 2);
  });
  expect(lanes(guarded)).toContain('bool mr_is_fast_1');
  expect(lanes(guarded)!.match(/mr_load\(&x_\[\w+\], mr_m\d+\)/g)).toHaveLength(4);
  expect(lanes(guarded)).not.toMatch(/mr_load\(&x_\[\w+\]\)/);
});

test('a kernel that uses no array has one', async () => {
  const leaves = kernel('leaves', { y: inout(i32) }, (_, { i }) => {
    if (i > 3) return;
  });
  for (const idle of [kernel('empty', {}, () => {}), leaves]) {
    expect(lanes(idle)).toBeDefined();
    await images.built(writtenOf(idle as unknown as Kernel, 'always'));
  }
});

describe('no SIMD form', () => {
  test('for a loop that waits for a neighbour: none would release the lock', () => {
    const lock = kernel('lock', { l: inout(i32), c: inout(i32) }, ({ l, c }, { atomicCAS, atomicExch, threadfence }) => {
      while (atomicCAS(l, 0, 0, 1) !== 0) {}
      threadfence();
      c[0] = c[0]! + 1;
      threadfence();
      atomicExch(l, 0, 0);
    });
    const ticket = kernel('ticket', { l: inout(i32), c: inout(i32) }, ({ l, c }, { atomicAdd }) => {
      const mine = atomicAdd(l, 0, 1);
      for (;;) {
        const served = atomicAdd(l, 1, 0);
        if (served !== mine) continue;
        break;
      }
      c[0] = c[0]! + 1;
      atomicAdd(l, 1, 1);
    });
    expect(lanes(lock)).toBeUndefined();
    expect(lanes(ticket)).toBeUndefined();
  });

  test('but a loop that takes work from a queue has one', () => {
    const queue = kernel('queue', { head: inout(i32), y: inout(i32) }, ({ head, y }, { atomicAdd, atomicMax }) => {
      for (let next = atomicAdd(head, 0, 1); next < y.length; next = atomicAdd(head, 0, 1)) y[next] = next + atomicMax(head, 1, next);
    });
    expect(lanes(queue)).toBeDefined();
  });

  test('for threads with more local memory than a stack holds 16 times', () => {
    const make = (size: number): unknown =>
      kernel(
        'own',
        { y: inout(i32) },
        ({ y }, { i, local }) => {
          const mine = local(i32, size);
          for (let k = 0; k < size; k++) mine[k] = k * i;
          y[i] = mine[i % size]!;
        },
        { constants: { size } },
      );
    expect(lanes(make(4096))).toBeDefined();
    expect(lanes(make(4097))).toBeUndefined();
  });
});
