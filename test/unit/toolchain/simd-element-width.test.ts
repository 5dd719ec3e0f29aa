// Kernels with SIMD elements of one and two bytes: random ones compared with the IR interpreter, and ones at the limits of the range
// compared with the scalar form; for each vector width, with fused blocks and with rows that fill no group. MILLRACE_KERNELS sets the
// number of random kernels, MILLRACE_KERNEL_SEED the seed.
import { beforeAll, describe, expect, test } from 'vitest';
import type { Kernel } from '../../../src/core/kernels/kernel.js';
import { i32, input, kernel, output, u8 } from '../../../src/index.js';
import { interpret } from '../../support/oracle/interpreter.js';
import { MADE, type Memory } from '../../support/oracle/memory.js';
import { NARROW_INPUTS, narrowParams, NarrowText } from '../../support/oracle/narrow-text.js';
import { irOfText, textAsBody } from '../../support/oracle/typed-form.js';
import { randomFrom } from '../../support/random-text.js';
import { writtenOf } from '../../support/written.js';
import { simdImages, withSimd, WIDTHS } from './simd-images.js';
import { builtTogether } from './one-source.js';
import { type ImageArgument, type ImageRun, i32 as int } from './run-image.js';

const KERNELS = Number(process.env['MILLRACE_KERNELS'] ?? 3);
const SEED = Number(process.env['MILLRACE_KERNEL_SEED'] ?? 1);
const [MASKS, NO_MASKS] = WIDTHS;
const [ROWS, COLUMNS] = [7, 150];
/** Three of them are fused: groups are full, or there is a remainder, or no group is full. */
const BLOCKS = [
  [64, 2],
  [33, 3],
  [7, 4],
] as const;

const images = simdImages();

function bytesOf(made: Kernel): number {
  return Number(/MR_NARROW_LANES (\d)/.exec(writtenOf(made, 'always').simdSource ?? '')?.[1] ?? 4);
}

/** One of the type's limits half of the time. */
function valuesOf(dtype: keyof typeof MADE, seed: number): Memory {
  const random = randomFrom(seed);
  const data = new MADE[dtype](ROWS * COLUMNS) as Uint8Array;
  const ends = dtype === 'bool' ? [0, 1] : [0, 1, 255, 254, 127, 128, -1, -32_768, 32_767, 65_535];
  for (let at = 0; at < data.length; at++) data[at] = random(2) === 0 || dtype === 'bool' ? ends[random(ends.length)]! : random(65_536);
  return data;
}

interface Scalars {
  readonly t: number;
  readonly w: number;
}

/** A launch; the contents of the last array after it, and what a thread reported. */
function launchOf(
  image: string,
  made: Kernel,
  arrays: readonly Memory[],
  { t, w }: Scalars,
  [width, height]: readonly [number, number],
): { readonly run: ImageRun; readonly left: { readonly last: Memory; readonly fault: Uint32Array } } {
  const own = arrays.map((array) => array.slice());
  const shaped = own.flatMap((array): ImageArgument[] => [array as Uint8Array, int(ROWS), int(COLUMNS)]);
  const [fault, word] = [new Uint32Array(16), new Uint32Array(1)];
  const scalars: ImageArgument[] = [{ value: Uint8Array.of(t) }, int(w)];
  const args = [...shaped, ...scalars, int(COLUMNS), int(ROWS), int(2 ** 31 - 1), ...(made.build.isChecked ? [fault, word] : [])];
  const grid = [Math.ceil(COLUMNS / width), Math.ceil(ROWS / height), 1] as const;
  return { run: [image, made.build.entry, { grid, block: [width, height, 1], threads: 1 }, args], left: { last: own.at(-1)!, fault } };
}

describe('random kernels', () => {
  const found = new Map<number, number>();

  test.each(Array.from({ length: KERNELS }, (_, at) => SEED + at))('%i', { timeout: 60_000 }, async (seed) => {
    const { text, output: dtype, isChecked } = new NarrowText(seed);
    const params = narrowParams(dtype);
    const made = kernel(`narrow_${seed}`, params, textAsBody(text), { bounds: isChecked ? 'checked' : 'unchecked' }) as unknown as Kernel;
    found.set(bytesOf(made), (found.get(bytesOf(made)) ?? 0) + 1);
    const names = [...Object.keys(NARROW_INPUTS), 'o'];
    const types = [...Object.values(NARROW_INPUTS).map((type) => type.dtype), dtype] as (keyof typeof MADE)[];
    const arrays = types.map((type, at) => valuesOf(type, seed + 100 * at));
    const random = randomFrom(seed + 5);
    const scalars = { t: [0, 255, random(256)][random(3)]!, w: [-1, 300, 2 ** 31 - 1, random(150)][random(4)]! };
    const wanted = arrays.map((array) => array.slice());
    const shaped = wanted.map((data, at) => [names[at]!, { data, shape: [ROWS, COLUMNS] }] as const);
    interpret(irOfText(text, params, {}, {}), {
      arrays: Object.fromEntries(shaped),
      scalars: { ...scalars },
      extent: [COLUMNS, ROWS, 2 ** 31 - 1],
      grid: [Math.ceil(COLUMNS / 50), ROWS, 1],
      block: [50, 1, 1],
    });
    const built = await Promise.all(WIDTHS.map(async (width) => ({ width, image: await images.built(withSimd(made, width)) })));
    const launches = built.flatMap(({ width, image }) =>
      BLOCKS.map((block) => ({ width, block, ...launchOf(image, made, arrays, scalars, block) })),
    );
    images.runAll(launches.map(({ run }) => run));
    for (const { width, block, left } of launches) {
      const at = left.last.findIndex((value, place) => value !== wanted.at(-1)![place]);
      expect(at < 0 ? '' : `${left.last[at]}, not ${wanted.at(-1)![at]}, at ${at}, ${width} bytes, block ${block[0]}:\n${text}`).toBe('');
      expect(left.fault[0]).toBe(0);
    }
  });

  test('some have elements of one byte, and some of two', () => {
    expect(found.get(1) ?? 0).toBeGreaterThan(0);
    expect(found.get(2) ?? 0).toBeGreaterThan(0);
  });
});

const PARAMS = { a: input(u8, 2), o: output(u8, 2), t: u8, w: i32 };
type Body = Parameters<typeof kernel<typeof PARAMS>>[2];
/** Kernels with their element width in bytes. */
const AT_LIMITS: Readonly<Record<string, readonly [number, Body]>> = {
  'the sum of two is 255 at most': [
    1,
    ({ a, o }, { i, j }) => void (o[i]![j] = (a[i]![j]! >= 3 ? (a[i]![j]! & 127) + (a[i]![j]! & 127) : 0) ^ 1),
  ],
  'the sum of two is 510 and compared with 254': [1, ({ a, o }, { i, j }) => void (o[i]![j] = a[i]![j]! + a[i]![j]! > 254 ? 1 : 0)],
  'a sum of 255 beside another': [1, ({ a, o }, { i, j, max }) => void (o[i]![j] = j > 2 ? max((a[i]![j]! & 254) + 1, 3) : 1)],
  'a sum of 256 beside another': [2, ({ a, o }, { i, j, max }) => void (o[i]![j] = j > 2 ? max(a[i]![j]! + 1, 3) : 1)],
  'a sum of 32767 beside another': [2, ({ a, o }, { i, j, max }) => void (o[i]![j] = j > 2 ? max(a[i]![j]! * 128 + 127, 3) >> 8 : 1)],
  'a sum of 32768 beside another': [4, ({ a, o }, { i, j, max }) => void (o[i]![j] = j > 2 ? max(a[i]![j]! * 128 + 128, 3) >> 8 : 1)],
  'a sum is cut off at 255': [1, ({ a, o, t }, { i, j, min }) => void (o[i]![j] = j > 2 ? min(a[i]![j]! + t + 1, 255) : 1)],
  'and between others': [1, ({ a, o, t }, { i, j, clamp }) => void (o[i]![j] = j > 2 ? clamp(a[i]![j]! + t, 3, 254) : 1)],
  'and with 255, which it would stop at': [2, ({ a, o }, { i, j }) => void (o[i]![j] = a[i]![j]! + a[i]![j]! > 255 ? 1 : 0)],
  'a stopped sum is stored: its low bits are wanted': [
    1,
    ({ a, o }, { i, j }) => {
      const sum = a[i]![j]! + a[i]![j]!;
      if (j > 3) o[i]![j] = sum;
    },
  ],
  'low bits and a comparison of one sum': [
    2,
    ({ a, o }, { i, j }) => {
      const sum = a[i]![j]! + a[i]![j]!;
      o[i]![j] = sum > 300 ? sum : 7;
    },
  ],
  'a product of 32640': [2, ({ a, o }, { i, j }) => void (o[i]![j] = a[i]![j]! > 1 ? (a[i]![j]! * 128) >> 7 : 0)],
  'a product of 32895, which is too much': [4, ({ a, o }, { i, j }) => void (o[i]![j] = a[i]![j]! > 1 ? (a[i]![j]! * 129) >> 7 : 0)],
  'a difference of -255': [2, ({ a, o, t }, { i, j }) => void (o[i]![j] = a[i]![j]! - t < -254 ? 1 : 2)],
  'a number of any size beside': [2, ({ a, o, w }, { i, j }) => void (o[i]![j] = a[i]![j]! > w ? 1 : w === a[i]![j]! ? 2 : 3)],
  'an index beside a number of any size': [
    1,
    ({ a, o, w }, { i, j }) => void (o[i]![j] = (j + 5 > w || w === j ? 1 : 0) | (w <= j - 7 && a[i]![j]! > 0 ? 2 : 0)),
  ],
  'elements a step apart': [
    1,
    ({ a, o }, { i, j, idiv }) => void (j < idiv(a.shape[1], 2) && (o[i]![2 * j + 1] = a[i]![2 * j]! ^ a[i]![j]!)),
  ],
  'whose threads may leave an array': [1, ({ a, o }, { i, j }) => void (o[i]![j + 9] = a[i]![j]! > 7 || i > 3 ? 1 : 0)],
};

describe('at the limits', () => {
  const FORMS = ['off', MASKS!, NO_MASKS!];
  const limits = Object.entries(AT_LIMITS).map(([name, [bytes, body]], at) => ({
    name,
    bytes,
    body,
    made: kernel(`limit_${at}`, PARAMS, body) as unknown as Kernel,
  }));
  /** The images of a kernel, by its name, in each form. */
  const built = new Map<string, readonly string[]>();
  beforeAll(async () => {
    const specs = limits.flatMap(({ made }) => FORMS.map((form) => (form === 'off' ? writtenOf(made, 'off') : withSimd(made, form))));
    const paths = await builtTogether(images, specs);
    for (const [at, { name }] of limits.entries()) built.set(name, paths.slice(FORMS.length * at, FORMS.length * (at + 1)));
  }, 120_000);

  test.each(limits)('$name', { timeout: 60_000 }, ({ name, bytes, body, made }) => {
    expect(bytesOf(made)).toBe(bytes);
    const arrays = [valuesOf('u8', 3), valuesOf('u8', 4)];
    const beside = /\bw\b/.test(String(body)) ? [-(2 ** 31), -1, 0, 70, 255, 2 ** 31 - 1] : [0];
    const cases = BLOCKS.flatMap((block) => beside.map((w) => ({ block, w })));
    const launches = cases.map(({ block, w }) => built.get(name)!.map((image) => launchOf(image, made, arrays, { t: 255, w }, block)));
    images.runAll(launches.flat().map(({ run }) => run));
    for (const [at, [wanted, ...others]] of launches.entries()) {
      const { block, w } = cases[at]!;
      for (const [form, { left }] of others.entries()) {
        expect(left, `${FORMS[form + 1]} bytes, block ${block[0]}, w ${w}`).toEqual(wanted!.left);
        expect(left.fault[0]).toBe(name.startsWith('whose') ? 2 : 0);
      }
    }
  });
});

test('64 lanes on a processor without mask registers', { timeout: 60_000 }, async () => {
  const made = kernel('unmasked', PARAMS, ({ a, o }, { i, j }) => {
    if (a[i]![j]! > 127) o[i]![j] = a[i]![j]! + 1;
  }) as unknown as Kernel;
  const arrays = [valuesOf('u8', 3), valuesOf('u8', 4)];
  const wide = withSimd(made, '64');
  const image = await images.built({ ...wide, simdSource: `#undef __AVX512BW__\n${wide.simdSource!}` });
  const expected = arrays[1]!.map((value, at) => (Number(arrays[0]![at]) > 127 ? Number(arrays[0]![at]) + 1 : Number(value)) as never);
  const launches = BLOCKS.map((block) => launchOf(image, made, arrays, { t: 0, w: 0 }, block));
  images.runAll(launches.map(({ run }) => run));
  for (const { left } of launches) expect(left.last).toEqual(expected);
});
