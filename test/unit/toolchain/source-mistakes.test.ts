// Like test/unit/compiler/oracle.test.ts, for emitted source: mistakes in the C++ of random kernels, which the CPU device builds and runs,
// must change the result. The correct source must give the interpreter's result.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Device, type Kernel, openDevice } from 'millrace';
import { type Decided, decided } from '../../support/oracle/cases.js';
import { differenceOn } from '../../support/oracle/compare.js';
import { CPU_SUPPORTS, type Target } from '../../support/target.js';
import { writtenOf } from '../../support/written.js';

/** Most kernels whose source contains the place of a mistake. */
const PROGRAMS = 40;
/** Concurrent builds. */
const AT_ONCE = 4;
const SEARCHED = 60;

/** Text and replacement. None may corrupt memory or end the process. */
const MISTAKES: Readonly<Record<string, readonly [from: RegExp, to: string]>> = {
  'the last column is left out': [/(MR_BEGIN_BLOCK(?:_OF_LEAVING)?\()mr_n0,/, '$1mr_n0 - 1,'],
  'a cast takes NaN for the least': [/return x != x \? 0 : /, 'return '],
  'a cast does not saturate': [/x >= 2147483648\.0f? \? 2147483647 : /, ''],
  'a remainder by zero is one': [/return b == 0 \|\| b == -1 \? 0 : a % b/, 'return b == 0 || b == -1 ? 1 : a % b'],
  'clz of zero is 31': [/x == 0u \? 32/, 'x == 0u ? 31'],
  'f16 without its sign': [/(__builtin_bit_cast\(unsigned short, \(_Float16\)x\))/, '($1 & 0x7fff)'],
  'the report names the block for the thread': [/blockIdx\.z, threadIdx\.x, threadIdx\.y/, 'blockIdx.z, blockIdx.x, threadIdx.y'],
  'the report names the next index': [/\(long long\)\(index\)/, '(long long)(index) + 1'],
};

let device: Device;
const target: Target = {
  name: 'cpu',
  spec: 'cpu',
  supports: CPU_SUPPORTS,
  open: (options) => openDevice('cpu', options),
};
const taken: Decided[] = [];
const source = decided(1);
function program(at: number): Decided {
  while (taken.length <= at) taken.push(source.next().value);
  return taken[at]!;
}

beforeAll(async () => {
  device = await openDevice('cpu');
});
afterAll(() => device.close());

/** Short sources compile fast. */
function shortest(): Decided[] {
  return Array.from({ length: SEARCHED }, (_, at) => program(at)).toSorted((a, b) => sizeOf(a) - sizeOf(b));
}
function sizeOf({ one }: Decided): number {
  return one.made.source.length;
}

/** Without the SIMD form, which the CPU device would prefer. */
function withText(made: Kernel, text: string): Kernel {
  const identity = createHash('sha256').update(text).digest('hex');
  return { ...made, source: text, build: { ...writtenOf(made, 'off'), source: text, identity } } as Kernel;
}

test.each(Object.entries(MISTAKES))('%s', { timeout: 240_000 }, async (name, [from, to]) => {
  // A report is looked at where there is one.
  const isOfReport = name.startsWith('the report');
  const mistaken = shortest()
    .filter((one) => from.test(one.one.made.source) && (!isOfReport || one.outcome.faults.length > 0))
    .slice(0, PROGRAMS)
    .map((one) => [one, withText(one.one.made, one.one.made.source.replace(new RegExp(from, 'g'), to))] as const);
  for (let at = 0; at < mistaken.length; at += AT_ONCE) {
    const batch = mistaken.slice(at, at + AT_ONCE);
    await device.compile(...batch.map(([, made]) => made));
    for (const [one, made] of batch) {
      if ((await differenceOn(target, device, one, made)) === undefined) continue;
      return;
    }
  }
  expect.fail(`${mistaken.length} programs do not notice.`);
});

test('source with only a changed comment compiles', { timeout: 60_000 }, async () => {
  for (let at = 0; at < AT_ONCE; at++) {
    const one = shortest()[at]!;
    expect(await differenceOn(target, device, one, withText(one.one.made, `${one.one.made.source}// ${at}\n`))).toBeUndefined();
  }
});
