// Chapter 10, fourteenth part: random programs with conditions in conditions, in a capture and call by call. Both give what plain JavaScript
// gives.
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import {
  cudaKernel,
  i32,
  input,
  output,
  u32,
  type Device,
  type DeviceArray,
  type In,
  type Kernel,
  type Out,
  type Recorder,
  type Scalar,
} from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { countDownKernel, ONE, weaveKernel, woven } from '../../support/graphs.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

/** The number of programs in each run of the suite; a soak runs more. */
const PROGRAMS = Number(process.env['MILLRACE_PROGRAMS'] ?? 40);
/** Limits the time of the default number on a slow machine. A requested number runs in full. */
const TIME_LIMIT = process.env['MILLRACE_PROGRAMS'] === undefined ? { interruptAfterTimeLimit: 25_000 } : {};
const TIMEOUT_MS = Math.max(60_000, PROGRAMS * 1000);

const ARRAYS = 3;
/** Loops in loops have counters of their own. */
const DEPTH = 3;
const ROUNDS = 2;

type Statement =
  | { readonly do: 'weave'; readonly from: number; readonly to: number; readonly k: number }
  | { readonly do: 'fill'; readonly to: number; readonly k: number }
  | { readonly do: 'copy'; readonly from: number; readonly to: number }
  | { readonly do: 'if' | 'while' | 'switch'; readonly by: number; readonly bodies: readonly (readonly Statement[])[] };
interface Program {
  readonly statements: readonly Statement[];
  /** The stream of each statement outside of bodies. */
  readonly streams: readonly number[];
}

const at = fc.nat(ARRAYS - 1);
const work: fc.Arbitrary<Statement> = fc.oneof(
  fc.record({ do: fc.constant('weave' as const), from: at, to: at, k: fc.nat(0xffff) }),
  fc.record({ do: fc.constant('weave' as const), from: at, to: at, k: fc.nat(0xffff) }),
  fc.record({ do: fc.constant('fill' as const), to: at, k: fc.nat(0xffff) }),
  fc.record({ do: fc.constant('copy' as const), from: at, to: at }),
);

function statementsOf(depth: number): fc.Arbitrary<readonly Statement[]> {
  if (depth === 0) return fc.array(work, { maxLength: 3 });
  const inner = statementsOf(depth - 1);
  const condition = (kind: 'if' | 'while' | 'switch', most: number): fc.Arbitrary<Statement> =>
    fc.record({ do: fc.constant(kind), by: at, bodies: fc.array(inner, { minLength: 1, maxLength: most }) });
  return fc.array(fc.oneof(work, work, condition('if', 2), condition('while', 1), condition('switch', 4)), { maxLength: 4 });
}
const program: fc.Arbitrary<Program> = fc.record({
  statements: statementsOf(DEPTH),
  streams: fc.array(fc.nat(1), { minLength: 4, maxLength: 4 }),
});

/** value[0] = a number from -1 to 3 that every bit of x[0] decides. */
const decideKernel: Kernel<{ x: In<'u32'>; value: Out<'i32'>; least: Scalar<'i32'> }> = cudaKernel(
  'decide',
  { x: input(u32), value: output(i32), least: i32 },
  `extern "C" __global__ void decide(const unsigned* x, int* value, int least) {
  value[0] = (int)((x[0] * 2654435761u >> 16) % 5u) - 1;
  if (value[0] < least) value[0] = least;
}`,
);
const decided = (x: number, least: number): number => Math.max(((Math.imul(x, 2654435761) >>> 16) % 5) - 1, least);

/** Two arrays that a kernel uses must not overlap, and neither must the ends of a copy. */
const other = (from: number, to: number): number => (from === to ? (from + 1) % ARRAYS : from);

defineChapter((target) => {
  describe('10 graphs: random conditions', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule(
      'S1020',
      'any program with conditions gives, as a graph and call by call, what JavaScript gives',
      async () => {
        const { device } = chapter;
        await device.compile(decideKernel, weaveKernel, countDownKernel);
        await fc.assert(
          fc.asyncProperty(program, async (one) => {
            const expected = computed(one);
            expect(await ran(device, one, true)).toEqual(expected);
            expect(await ran(device, one, false)).toEqual(expected);
          }),
          { numRuns: target.programs ?? PROGRAMS, ...TIME_LIMIT },
        );
      },
      { timeoutMs: TIMEOUT_MS },
    );
  });
});

function computed({ statements }: Program): number[] {
  const x = Array.from({ length: ARRAYS }, (_, n) => n + 1);
  const run = (list: readonly Statement[]): void => {
    for (const one of list) {
      if (one.do === 'weave') x[one.to] = woven(x[other(one.from, one.to)]!, x[one.to]!, one.k);
      else if (one.do === 'fill') x[one.to] = one.k;
      else if (one.do === 'copy') x[one.to] = x[other(one.from, one.to)]!;
      else if (one.do === 'if') run(one.bodies[decided(x[one.by]!, 0) === 0 ? 1 : 0] ?? []);
      else if (one.do === 'switch') run(one.bodies[decided(x[one.by]!, -1)] ?? []);
      else for (let left = decided(x[one.by]!, 0); left > 0; left--) run(one.bodies[0]!);
    }
  };
  for (let round = 0; round < ROUNDS; round++) run(statements);
  return x;
}

async function ran(device: Device, { statements, streams: choice }: Program, isCaptured: boolean): Promise<number[]> {
  const streams = [device.createStream(), device.createStream()] as const;
  const x = Array.from({ length: ARRAYS }, (_, n) => device.full(1, n + 1, 'u32'));
  // Each loop has a counter for its depth; ifs and switches share one array, which their bodies may overwrite.
  const counters = Array.from({ length: DEPTH + 1 }, () => device.zeros(1, 'i32'));
  const value = device.zeros(1, 'i32');
  await device.synchronize();
  const submit = (): void => {
    for (const [n, one] of statements.entries()) call(streams[choice[n]! as 0 | 1], one, 0);
  };
  const call = (s: Recorder, one: Statement, depth: number): void => {
    const decide = (to: DeviceArray<'i32'>, by: number, least: number): unknown =>
      s.launch(decideKernel, ONE, { x: x[by]!, value: to, least });
    const bodyOf = (list: readonly Statement[], end?: (body: Recorder) => void) => (body: Recorder) => {
      for (const inner of list) call(body, inner, depth + 1);
      end?.(body);
    };
    if (one.do === 'weave') s.launch(weaveKernel, ONE, { x: x[other(one.from, one.to)]!, y: x[one.to]!, k: one.k });
    else if (one.do === 'fill') s.fill(x[one.to]!, one.k);
    else if (one.do === 'copy') s.copy(x[one.to]!, x[other(one.from, one.to)]!);
    else if (one.do === 'if') {
      decide(value, one.by, 0);
      s.captureIf(value, bodyOf(one.bodies[0]!), one.bodies[1] && bodyOf(one.bodies[1]));
    } else if (one.do === 'switch') {
      decide(value, one.by, -1);
      s.captureSwitch(
        value,
        one.bodies.map((body) => bodyOf(body)),
      );
    } else {
      const left = counters[depth]!;
      decide(left, one.by, 0);
      s.captureWhile(
        left,
        bodyOf(one.bodies[0]!, (body) => void body.launch(countDownKernel, ONE, { left })),
      );
    }
  };
  if (!isCaptured) {
    for (let round = 0; round < ROUNDS; round++) submit();
  } else if (statements.length > 0) {
    const graph = streams[0].capture(() => {
      streams[1].waitStream(streams[0]);
      submit();
    });
    for (let round = 0; round < ROUNDS; round++) streams[0].launch(graph);
    await graph.close();
  }
  const result = (await Promise.all(x.map((array) => array.read()))).map((values) => values[0]!);
  for (const array of [...x, ...counters, value]) array[Symbol.dispose]();
  await Promise.all(streams.map((stream) => stream.close()));
  return result;
}
