// Random programs on several streams against a model that runs the calls one after another: tracked arrays promise
// exactly that outcome, whatever the streams.
import { describe, expect } from 'vitest';
import fc from 'fast-check';
import { cudaKernel, inout, input, u32, type Device, type DeviceArray, type Stream } from 'millrace';
import { chapterDevice, rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';

const STREAMS = 4;
const ARRAYS = 3;
const LENGTH = 8;

const combine = cudaKernel(
  'combine',
  { x: input(u32), y: inout(u32), k: u32 },
  `extern "C" __global__ void combine(const unsigned* x, unsigned* y, unsigned k) {
  unsigned i = threadIdx.x;
  y[i] = y[i] * 1664525u + x[i] + k;
}`,
);

/** One call. `from` and `to` are arrays; equal ones make a copy a no-operation and a launch an update in place. */
interface Step {
  readonly kind: 'fill' | 'copy' | 'combine' | 'upload' | 'join';
  readonly on: number;
  readonly from: number;
  readonly to: number;
  readonly value: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('fill', 'copy', 'combine', 'combine', 'upload', 'join'),
  on: fc.nat(STREAMS - 1),
  from: fc.nat(ARRAYS - 1),
  to: fc.nat(ARRAYS - 1),
  value: fc.nat(0xffff),
});

export function randomPrograms(target: Target): void {
  describe('1 streams: random programs', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S104', 'tracked arrays make any program on any streams give what its calls give one after another', async () => {
      const { device } = chapter;
      const streams = Array.from({ length: STREAMS }, () => device.createStream());
      await device.compile(combine);
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 80 }), async (program) => {
          expect(await run(device, streams, program)).toEqual(model(program));
        }),
        { numRuns: 40 },
      );
      await Promise.all(streams.map((stream) => stream.close()));
    });
  });
}

async function run(device: Device, streams: readonly Stream[], program: readonly Step[]): Promise<number[][]> {
  const arrays = Array.from({ length: ARRAYS }, () => device.zeros(LENGTH, 'u32'));
  for (const one of program) perform(streams, arrays, one);
  const results = await Promise.all(arrays.map((array) => array.read()));
  for (const array of arrays) array[Symbol.dispose]();
  return results.map((values) => [...values]);
}

function perform(streams: readonly Stream[], arrays: readonly DeviceArray<'u32'>[], { kind, on, from, to, value }: Step): void {
  const stream = streams[on]!;
  const x = arrays[from]!;
  const y = arrays[to]!;
  if (kind === 'fill') stream.fill(y, value);
  else if (kind === 'upload')
    stream.copy(
      y,
      Uint32Array.from({ length: LENGTH - 1 }, (_, i) => value + i),
      { dstOffset: 1 },
    );
  else if (kind === 'join') stream.waitStream(streams[(on + 1) % STREAMS]!);
  else if (kind === 'copy' && x !== y) stream.copy(y, x);
  else if (kind === 'combine') stream.launch(combine, { grid: 1, block: LENGTH }, { x, y, k: value });
}

function model(program: readonly Step[]): number[][] {
  const arrays = Array.from({ length: ARRAYS }, () => new Uint32Array(LENGTH));
  for (const { kind, from, to, value } of program) {
    const x = arrays[from]!;
    const y = arrays[to]!;
    if (kind === 'fill') y.fill(value);
    else if (kind === 'upload') for (let i = 1; i < LENGTH; i++) y[i] = value + i - 1;
    else if (kind === 'copy') y.set(x);
    else if (kind === 'combine') for (let i = 0; i < LENGTH; i++) y[i] = Math.imul(y[i]!, 1664525) + x[i]! + value;
  }
  return arrays.map((values) => [...values]);
}
