// Chapter 4, random TypeScript kernels over all types, against an interpreter of their typed form in plain JavaScript:
// bit for bit. MILLRACE_KERNELS asks for more of them, MILLRACE_KERNEL_SEED for others.
import { describe, expect } from 'vitest';
import type { DeviceArray, DType } from 'millrace';
import { Unspecified, type Value } from '../support/oracle/arithmetic.js';
import { interpret, type Memory } from '../support/oracle/interpreter.js';
import { cases, INPUTS, type Case } from '../support/oracle/cases.js';
import { BLOCK, LENGTH, OUTPUTS, TypedKernel } from '../support/oracle/typed-kernel.js';
import { randomFrom } from '../support/random-text.js';
import { chapterDevice, rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';

const KERNELS = Number(process.env['MILLRACE_KERNELS'] ?? 8);
const SEED = Number(process.env['MILLRACE_KERNEL_SEED'] ?? 1);
/** Built at once: so many compilers a core are enough. */
const AT_ONCE = 8;
/** The last block is not full. */
const THREADS = 3 * BLOCK - 7;

const MADE = {
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

function filled(dtype: keyof typeof MADE, length: number, random: (below: number) => number): Memory {
  const memory: Memory = new MADE[dtype](length);
  const values = memory as unknown as Value[];
  for (let at = 0; at < length; at++) values[at] = anyOf(dtype, random);
  return memory;
}

function anyOf(dtype: keyof typeof MADE, random: (below: number) => number): Value {
  if (dtype === 'u64') return BigInt(random(2 ** 32)) << BigInt(random(33));
  if (dtype === 'i64') return (BigInt(random(2 ** 32)) << BigInt(random(31))) - 2n ** 40n;
  // The bits of a half of either sign and any size, but finite.
  if (dtype === 'f16') return (random(2) << 15) | random(0x6000);
  if (dtype === 'f32' || dtype === 'f64') return (random(2 ** 20) - 2 ** 19) / 2 ** random(25);
  return random(2 ** 32) >> random(32);
}

interface Data {
  readonly inputs: Record<string, { readonly data: Memory; readonly shape: readonly number[]; readonly dtype: DType }>;
  readonly scalars: { readonly n: number; readonly m0: number; readonly s0: number };
}

function dataFor(seed: number): Data {
  const random = randomFrom(seed + 7);
  const one = (dtype: keyof typeof MADE, length: number): Data['inputs'][string] => ({
    data: filled(dtype, length, random),
    shape: [length],
    dtype,
  });
  const inputs = {
    ...Object.fromEntries(Object.entries(INPUTS).map(([name, dtype]) => [name, one(dtype, LENGTH)])),
    p: one('u32', 16),
    ...Object.fromEntries(OUTPUTS.map(([dtype], at) => [`o${at}`, one(dtype, THREADS)])),
  };
  return { inputs, scalars: { n: random(20) - 4, m0: random(1000), s0: Math.fround(random(1000) / 300) } };
}

/** What the interpreter leaves in the arrays; undefined where the language leaves it open. */
function expected({ ir }: Case, { inputs, scalars }: Data): Record<string, Memory> | undefined {
  const arrays = Object.fromEntries(Object.entries(inputs).map(([name, one]) => [name, { ...one, data: one.data.slice() }]));
  const launch = { extent: [THREADS, 2 ** 31 - 1, 2 ** 31 - 1], grid: [3, 1, 1], block: [BLOCK, 1, 1] } as const;
  try {
    interpret(ir, { arrays, scalars, ...launch });
  } catch (error) {
    if (error instanceof Unspecified) return undefined;
    throw error;
  }
  return Object.fromEntries(Object.entries(arrays).map(([name, { data }]) => [name, data as Memory]));
}

export function randomKernels(target: Target): void {
  describe('4 kernels: random TypeScript functions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule(
      'S412',
      'random kernels over all types give the bits of an interpreter of their typed form',
      async () => {
        const { device } = chapter;
        const source = cases(SEED);
        let [checked, waiting] = [0, 0];
        while (checked < KERNELS) {
          const batch: { readonly one: Case; readonly data: Data; readonly left: Record<string, Memory> }[] = [];
          while (batch.length < Math.min(AT_ONCE, KERNELS - checked)) {
            const one = source.next().value;
            const data = dataFor(one.seed);
            const left = expected(one, data);
            if (left !== undefined) batch.push({ one, data, left });
          }
          await device.compile(...batch.map(({ one }) => one.made));
          for (const { one, data, left } of batch) {
            const arrays = Object.fromEntries(
              Object.entries(data.inputs).map(([name, { data: values, dtype }]) => [name, device.from(values as never, { dtype })]),
            ) as Record<string, DeviceArray>;
            device.stream.launch(one.made, { threads: THREADS, block: BLOCK }, { ...arrays, ...data.scalars } as never);
            for (const [name, array] of Object.entries(arrays)) {
              expect(await array.read(), `${name} of seed ${one.seed}:\n${new TypedKernel(one.seed).text}`).toEqual(left[name]);
              array[Symbol.dispose]();
            }
            checked++;
            if (one.made.source.includes('MR_SYNCTHREADS();')) waiting++;
          }
        }
        expect(waiting).toBeGreaterThan(0);
      },
      { timeoutMs: 60_000 + KERNELS * 2000 },
    );
  });
}
