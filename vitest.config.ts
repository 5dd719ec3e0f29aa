import { defineConfig } from 'vitest/config';

// Forks, not threads: tests own the process they run in, and --expose-gc works only there. One file at a time: some tests
// show that two kernels run side by side, and need the cores for that.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
