// Chapter 4: operators and functions of TypeScript kernels on floats against JavaScript's own: over bit patterns of f32, and random numbers
// of f64. A quarter of a million patterns each day; MILLRACE_LONG takes all 2^32.
import { describe, expect } from 'vitest';
import { type DeviceArray, f32, f64, input, kernel, output, u32, type Kernel } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import { textAsBody } from '../../support/oracle/typed-form.js';
import { randomFrom } from '../../support/random-text.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const COUNT = 2 ** 16;
/** Of 2^32 patterns; odd, so that the patterns have all endings. */
const STEP = IS_LONG ? 1 : 16_411;
/** A kernel whose results are floats, and one whose results are integers. In f64, NaN of any bits is one number. */
type Form = 'f' | 'i';
type Row = readonly [form: Form, text: string, of: (x: number, y: number) => number];

const wrapped = (x: number): number => x | 0;
const limited = (low: number, high: number) => (x: number) => (Number.isNaN(x) ? 0 : Math.trunc(Math.min(Math.max(x, low), high)) + 0);
const ROWS: readonly Row[] = [
  ['f', '-x', (x) => -x],
  ['f', 'Math.abs(x)', Math.abs],
  ['f', 'Math.sign(x)', Math.sign],
  ['f', 'Math.floor(x)', Math.floor],
  ['f', 'Math.ceil(x)', Math.ceil],
  ['f', 'Math.round(x)', Math.round],
  ['f', 'Math.trunc(x)', Math.trunc],
  ['f', 'Math.sqrt(x)', Math.sqrt],
  ['f', 'FLOAT(x | 0)', wrapped],
  ['f', 'FLOAT(i32(x))', limited(-(2 ** 31), 2 ** 31 - 1)],
  ['f', 'x + y', (x, y) => x + y],
  ['f', 'x - y', (x, y) => x - y],
  ['f', 'x * y', (x, y) => x * y],
  ['f', 'x / y', (x, y) => x / y],
  ['f', 'x % y', (x, y) => x % y],
  ['f', 'x < y ? x : y', (x, y) => (x < y ? x : y)],
  ['i', 'u32(x | 0)', wrapped],
  ['i', 'x >>> 0', wrapped],
  ['i', 'u32(~x)', (x) => ~x],
  ['i', 'u32(~~x)', wrapped],
  ['i', 'u32(i32(x))', limited(-(2 ** 31), 2 ** 31 - 1)],
  ['i', 'u32(x)', limited(0, 2 ** 32 - 1)],
  [
    'i',
    'u32(x < y) + u32(x <= y) * 2 + u32(x == y) * 4 + u32(x != y) * 8',
    (x, y) => +(x < y) + +(x <= y) * 2 + +(x === y) * 4 + +(x !== y) * 8,
  ],
];

/** `isPlain`: a random draw keeps the kernel out of lanes. */
function rowsOf(type: 'f32' | 'f64', isPlain: boolean): Kernel {
  const of = { f: 0, i: 0 };
  const lines = ROWS.map(([form, text]) => `${form === 'f' ? 'floats' : 'words'}[${of[form]++}][i] = ${text.replaceAll('FLOAT', type)};`);
  const draw = isPlain ? 'const r = rng(1, i); spare[i] = r.u32();' : 'spare[i] = 1;';
  const body = `({ a, b, floats, words, spare }, { i, i32, u32, f32, f64, rng }) => {
const x = a[i];\nconst y = b[i];\n${draw}\n${lines.join('\n')}\n}`;
  const dtype = type === 'f32' ? f32 : f64;
  const params = { a: input(dtype), b: input(dtype), floats: output(dtype, 2), words: output(u32, 2), spare: output(u32) };
  return kernel(`rows_of_${type}_${isPlain ? 'plain' : 'lanes'}`, params, textAsBody(body), { fmad: false }) as Kernel;
}

type Floats = Float32Array | Float64Array;

/** The first differences, as text. Numbers of f32 are rounded like the kernel's. */
function differences(a: Floats, b: Floats, floats: Floats, words: Uint32Array): string[] {
  const found: string[] = [];
  const expected = { f: a.constructor === Float32Array ? new Float32Array(COUNT) : new Float64Array(COUNT), i: new Uint32Array(COUNT) };
  const at = { f: 0, i: 0 };
  for (const [form, text, of] of ROWS) {
    const wanted = expected[form];
    for (let k = 0; k < COUNT; k++) wanted[k] = of(a[k]!, b[k]!);
    const own = (form === 'f' ? floats : words).subarray(at[form] * COUNT, ++at[form] * COUNT);
    for (let k = 0; k < COUNT && found.length < 9; k++) {
      if (!Object.is(own[k], wanted[k])) found.push(`${text} of x = ${a[k]}, y = ${b[k]} is ${own[k]}, not ${wanted[k]}`);
    }
  }
  return found;
}

defineChapter((target) => {
  describe('4 kernels: numbers of JavaScript', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const type of ['f32', 'f64'] as const) {
      const batches = Math.ceil((type === 'f32' ? 2 ** 32 / STEP : IS_LONG ? 2 ** 28 : 2 ** 18) / COUNT);
      rule(
        'S412',
        `operators and functions of ${type} that are exact give the numbers of JavaScript, with their signs`,
        async () => {
          const { stream } = chapter.device;
          const random = randomFrom(412);
          const bits = new Uint32Array(type === 'f32' ? COUNT : COUNT * 2);
          const others = new Uint32Array(bits.length);
          const view = (of: Uint32Array): Floats => (type === 'f32' ? new Float32Array(of.buffer) : new Float64Array(of.buffer));
          const kernels = [rowsOf(type, false), rowsOf(type, true)];
          const rows = { f: ROWS.filter(([form]) => form === 'f').length, i: ROWS.filter(([form]) => form === 'i').length };
          using a = stream.zeros(COUNT, type);
          using b = stream.zeros(COUNT, type);
          using floats = stream.zeros([rows.f, COUNT], type);
          using words = stream.zeros([rows.i, COUNT], 'u32');
          using spare = stream.zeros(COUNT, 'u32');
          let pattern = 0;
          const word = (): number => random(2 ** 16) * 2 ** 16 + random(2 ** 16);
          for (let batch = 0; batch < batches; batch++) {
            for (let k = 0; k < bits.length; k++) {
              bits[k] = type === 'f32' ? pattern++ * STEP : word();
              // Most doubles are near the integers.
              if (type === 'f64' && k % 4 === 1) bits[k] = (bits[k]! & 0x800f_ffff) | (((1023 + (bits[k]! >>> 23)) % 1100) << 20);
              others[k] = k % 3 === 0 ? bits[k]! : word();
            }
            stream.copy(a as DeviceArray, view(bits) as Float32Array);
            stream.copy(b as DeviceArray, view(others) as Float32Array);
            stream.launch(kernels[batch % 2]!, COUNT, { a, b, floats, words, spare } as never);
            const wrong = differences(view(bits), view(others), (await floats.read()) as Floats, await words.read());
            expect(wrong).toEqual([]);
          }
        },
        { timeoutMs: IS_LONG ? 6 * 3_600_000 : 120_000 },
      );
    }
  });
});
