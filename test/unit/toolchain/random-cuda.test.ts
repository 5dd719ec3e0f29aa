// Random CUDA kernels in their selected form, compared with thread-by-thread execution, or with threads that have stacks if they wait.
import { expect, test } from 'vitest';
import { type KernelForm } from '../../../src/toolchain/compilers/cpu-compiler.js';
import { formsOf } from '../../../src/cuda-cpp/lower/kernel-forms.js';
import { rowEdits } from '../../../src/cuda-cpp/lower/grid-row-loops.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { IS_LONG } from '../../support/long.js';
import { CALLED, RandomCuda, THREADS } from './random-cuda.js';
import { i32, specOf } from './run-image.js';
import { imagesOfFile } from './images.js';

const BLOCKS = 3;
/** MILLRACE_SEEDS=from,to runs more. */
const [FROM, TO] = (process.env['MILLRACE_SEEDS'] ?? (IS_LONG ? '0,4' : '0,2')).split(',').map(Number) as [number, number];
/** Kernels per source: compilation takes most of the time. */
const OF_ONE_TEXT = 4;

const images = imagesOfFile();

const IN = Uint32Array.from({ length: THREADS }, (_unused, i) => (i * 2654435761) >>> 7);

async function compare(seed: number, waits: boolean): Promise<number> {
  const kernels = Array.from({ length: OF_ONE_TEXT }, (_unused, i) => new RandomCuda(seed * OF_ONE_TEXT + i, `k${seed}_${i}`, waits));
  const names = kernels.map((_unused, i) => `k${seed}_${i}`);
  const source = CALLED + kernels.map(({ text }) => text).join('');
  const image = (form: KernelForm): Promise<string> => images.built(specOf(source, names[0]!), names, form);
  const files = [await image('either'), await image(waits ? 'stacks' : 'threads')];
  for (const [i, name] of names.entries()) {
    const [chosen, plain] = files.map((file) => {
      const out = new Uint32Array(THREADS * (BLOCKS + 1));
      images.run(file, name, { grid: [BLOCKS, 1, 1], block: [THREADS, 1, 1], threads: 1 }, [out, IN, i32(3), i32(90)]);
      return [...out];
    });
    expect(chosen, kernels[i]!.text).toEqual(plain);
  }
  const { tokens } = tokenize(source);
  return waits ? formsOf(source, tokens, true).split.length : rowEdits(source, tokens, names).names.length;
}

test.each([
  ['with barriers', true],
  ['without', false],
])(
  'random kernels %s give the same in both forms',
  async (_how, waits) => {
    let looped = 0;
    for (let seed = FROM; seed < TO; seed++) looped += await compare(seed, waits);
    // Those that are left as they are show nothing.
    expect(looped).toBeGreaterThan((TO - FROM) * OF_ONE_TEXT * 0.2);
  },
  600_000,
);
