import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { keptCompiler } from './test/support/kept-compiler.js';

// Compilations of random kernels, minutes of them: they run with `npm run soak`, which sets MILLRACE_LONG.
const LONG = process.env['MILLRACE_LONG'] === '1' ? [] : ['hidden-changes', 'simd-element-width', 'source-mistakes', 'plain-indices'];

// Files of test/process and test/examples that mostly wait, for child processes and for time to pass.
const WAITING = [
  'test/examples/**/*.test.ts',
  'test/process/{compilers,failing-builds,hung-gpu,lifetime,package,readme,teardown,watching}.test.ts',
];

// Two of these run side by side, also where the machine has two cores: no test in them says how long something takes.
const PAIRED = [
  'test/conformance/{build-again,fake-cuda-refusals,nvcc,run-clang,run-cpu-kernels,run-cpu-texts,run-fake-cuda,run-seeded,run-two-backends,run-two-cpu}.test.ts',
  'test/process/{sharing,terminate-anywhere,terminate-file-operations}.test.ts',
];

// The longest files of their group begin first, so that no other worker is without work while they end.
const LONGEST =
  /\/(?:run-cpu-kernels|run-cpu-texts|run-fake-cuda|run-fake-cuda-kernels|run-seeded|terminate-file-operations|readme|teardown|lifetime|simd|regions)\.test\.ts$/;
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONGEST.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

// Forks, not threads: tests own the process they run in, and --expose-gc works only there. First the unit tests and PAIRED,
// two files at a time, most of them waiting for compilers; then those that wait for processes; then the others one at a time:
// some show that two kernels run side by side, and need the cores for that.
export default defineConfig({
  test: {
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    execArgv: ['--expose-gc'],
    env: keptCompiler(),
    setupFiles: ['test/support/usual-compiler.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'paired',
          include: ['test/unit/**/*.test.ts', ...PAIRED],
          exclude: LONG.map((name) => `test/unit/toolchain/${name}.test.ts`),
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: 'programs', include: WAITING, maxWorkers: 3, sequence: { groupOrder: 1 } } },
      {
        extends: true,
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: ['test/unit/**', ...PAIRED, ...WAITING],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
