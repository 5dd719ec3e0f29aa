// Kernels in SIMD form compared bit for bit with the scalar form, in blocks whose rows fill no group, for each vector size and both kinds
// of masks.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { IS_LONG } from '../../support/long.js';
import { LANE_KERNELS } from '../../support/simd-kernels.js';
import { writtenOf } from '../../support/written.js';
import { i32, inout, input, kernel } from '../../../src/index.js';
import { simdImages, withSimd, WIDTHS } from './simd-images.js';
import { builtTogether } from './one-source.js';
import { type ImageArgument, type ImageRun, i32 as int } from './run-image.js';

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

/** A launch, and its results after that. `xs`: number of elements of x; with fewer than threads, some threads leave. */
function launchOf(image: string, { build }: Kernel, block: number, xs: number): { readonly run: ImageRun; readonly left: Memory } {
  const x = Int32Array.from({ length: xs }, (_, at) => hash(at) & 1023);
  const y = Int32Array.from({ length: COUNT }, (_, at) => at);
  const z = Float32Array.from({ length: COUNT }, (_, at) => hash(at) / 2 ** 23 - 0.5);
  const [b, c, fault, word] = [new Uint8Array(COUNT), new Uint32Array(16), new Uint32Array(16), new Uint32Array(1)];
  const shaped = [x, y, z, b, c].flatMap((array): ImageArgument[] => [array, int(array.length)]);
  const args = [...shaped, int(3), int(COUNT), int(NO_LIMIT), int(NO_LIMIT), ...(build.isChecked ? [fault, word] : [])];
  const shape = { grid: [Math.ceil(COUNT / block), 1, 1], block: [block, 1, 1], threads: 1 } as const;
  return { run: [image, build.entry, shape, args], left: { arrays: [y, z, b, c], fault } };
}

const NAMES = Object.keys(LANE_KERNELS);
/** Each kernel in one width, and each width with a third of the kernels, in the short form. */
const widthsOf = (name: string): readonly string[] => (IS_LONG ? WIDTHS : [WIDTHS[NAMES.indexOf(name) % WIDTHS.length]!]);

type Bounds = 'checked' | 'unchecked';
const kernelOf = (name: string, bounds: Bounds): Kernel => LANE_KERNELS[name]!(bounds) as unknown as Kernel;
/** By bounds, name and form. */
const paths = new Map<string, string>();
beforeAll(async () => {
  const build = async (bounds: Bounds): Promise<void> => {
    const forms = NAMES.flatMap((name) => {
      const made = kernelOf(name, bounds);
      const wide = bounds === 'unchecked' ? ([['always', writtenOf(made, 'always')]] as const) : [];
      const others = bounds === 'checked' ? widthsOf(name).map((width) => [width, withSimd(made, width)] as const) : wide;
      return [['off', writtenOf(made, 'off')] as const, ...others].map(([form, spec]) => ({ key: `${bounds} ${name} ${form}`, spec }));
    });
    const built = await builtTogether(
      images,
      forms.map(({ spec }) => spec),
    );
    for (const [at, { key }] of forms.entries()) paths.set(key, built[at]!);
  };
  await Promise.all([build('checked'), build('unchecked')]);
}, 120_000);

/** The form gives the same bits as one thread after the other. */
function expectSame(name: string, bounds: Bounds, form: string, cases: readonly { readonly block: number; readonly xs: number }[]): void {
  const made = kernelOf(name, bounds);
  const launches = cases.map(({ block, xs }) =>
    ['off', form].map((each) => launchOf(paths.get(`${bounds} ${name} ${each}`)!, made, block, xs)),
  );
  images.runAll(launches.flat().map(({ run }) => run));
  for (const [at, [expected, actual]] of launches.entries()) {
    const { block, xs } = cases[at]!;
    expect(actual!.left, `block ${block}, ${xs} elements`).toEqual(expected!.left);
    // The array that threads left is left alone, and the first of them is named.
    if (xs < COUNT) expect(expected!.left.fault[0]).toBe(2);
  }
}

const WHOLE = BLOCKS.map((block) => ({ block, xs: COUNT }));
describe.each(NAMES)('%s', (name) => {
  test.each(widthsOf(name))('vectors of %s bytes give the same bits as one thread after the other', (width) => {
    expectSame(name, 'checked', width, [...WHOLE, ...[16, 33].map((block) => ({ block, xs: COUNT - 50 }))]);
  });

  test('so do unchecked kernels', () => expectSame(name, 'unchecked', 'always', WHOLE));
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
