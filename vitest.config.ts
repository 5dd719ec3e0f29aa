import { spawnSync } from 'node:child_process';
import { defineConfig, type TestProjectConfiguration } from 'vitest/config';
import { FAKE_DRIVER } from './test/support/fake-driver.js';
import { HAS_GPU } from './test/support/has-gpu.js';
import { keptCompiler } from './test/support/kept-compiler.js';

const IS_LONG = process.env['MILLRACE_LONG'] === '1';
const HAS_CLANG = spawnSync('clang++', ['--version']).status === 0;
const HAS_FAKE_DRIVER = FAKE_DRIVER !== undefined;
const ENV = keptCompiler();
// Another Node than vitest's own runs the tests (docs/testing.md, "Arm64 without an Arm machine").
process.execPath = process.env['MILLRACE_TEST_NODE'] ?? process.execPath;

// The conformance suite: folders of chapters by target. test/support/targets.ts opens the devices.
const ONE = ['order', 'runtime', 'kernels'];
const TWO = ['two', 'two/apart', 'two/one-backend'];
// What the code of kernels computes, whatever driver launches them.
const COMPUTED = ['arithmetic', 'texts'];
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  cpu: [...ONE, ...COMPUTED],
  isolated: IS_LONG ? ONE : ['order'],
  'two-cpu': TWO,
  'two-isolated': ['two/apart'],
  seeded: ['order', ...TWO],
  'fake-cuda': HAS_FAKE_DRIVER ? [...ONE, ...TWO, ...(IS_LONG ? COMPUTED : [])] : [],
  'two-backends': HAS_FAKE_DRIVER ? ['two', 'two/apart', 'two/two-backends'] : [],
  cuda: HAS_GPU ? ['alone', ...ONE, ...COMPUTED] : [],
  'two-cuda': HAS_GPU ? TWO : [],
  'isolated-cuda': HAS_GPU || (HAS_FAKE_DRIVER && IS_LONG) ? ['order', 'runtime'] : [],
  'two-isolated-cuda': HAS_GPU || (HAS_FAKE_DRIVER && IS_LONG) ? ['two/apart'] : [],
  clang: HAS_CLANG ? ['kernels', ...COMPUTED] : [],
};
const TOOLCHAIN = 'test/unit/toolchain/**/*.test.ts';
const COMPILER = 'test/unit/compiler/!(warm-up).test.ts';
// A process for each file: warnings that a process prints once, its first kernel, its garbage, what other files replace or leave open. The others
// leave nothing behind and share a process, whose start and imports take half a second of a core.
const OF_ITS_OWN = [
  'test/conformance/*.test.ts',
  'test/unit/compiler/warm-up.test.ts',
  'test/unit/core/{access-history,completion-polling-explored,current,forgotten,late-watchers,launch-getters,peer-users,slow-snapshots,streams,thread-calls,unhandled-failures}.test.ts',
  'test/unit/{reactive/stream-scheduler,testing/device}.test.ts',
  'test/unit/toolchain/{failing-compilers,private-cache-folder}.test.ts',
];
const TARGET_TEST = 'test/conformance/target.test.ts';
// What a target runs in the long form only. With seeds: what is not about order. On the fake driver: what kernels compute, for its compiler is the
// CPU device's, and what the library does in TypeScript alone: refusals at a call, pipelines, subscriptions, explanations of recordings, and which
// outputs a kernel writes whole. With another compiler: operations and random kernels, which the
// language's own tests are about in small.
const LONG_OF: Readonly<Record<string, string[]>> = {
  seeded: ['test/conformance/{two/one-backend/collectives,two/peer-arrays}.test.ts'],
  'fake-cuda': [
    'test/conformance/kernels/{block-kernels,checked-loops,cuda-code,fourier,operations,picked-kernels,products,sorts*,tile-shuffles,typescript-kernels}.test.ts',
    'test/conformance/runtime/{array-texts,cpu-tasks,derived-pipelines,explanations,graph-drawings,live-view,overlap,partial-outputs}.test.ts',
    'test/conformance/runtime/{pipeline-*,pipelines,queues,requests,schedules-of-seeds,traces,usages,virtual-time,watching,web-streams}.test.ts',
    'test/conformance/runtime/{arguments,batches,capture-errors,condition-errors,graph-messages,launch-arguments,stage-values,value-errors}.test.ts',
  ],
  clang: ['test/conformance/{arithmetic/{*operation*,random-kernels},kernels/{fourier,operation*,products,sorts*}}.test.ts'],
};

// Compilations of random kernels, minutes of them: they run with `npm run soak`, which sets MILLRACE_LONG.
const LONG = IS_LONG ? [] : ['hidden-changes', 'simd-element-width', 'source-mistakes', 'plain-indices'];

// Files that measure time, or need the cores for kernels that run side by side. The other processes mostly wait, for children and for time to pass.
const MEASURING = [
  'test/conformance/alone/side-by-side.test.ts',
  'test/process/{loop-turns,loop-turns-of-items,runaway,steady-pipelines}.test.ts',
];
/** They need a browser, and one target shows them. */
const PAGES = 'test/conformance/alone/*-page.test.ts';
const PAIRED = ['test/process/{sharing,terminate-anywhere,terminate-file-operations}.test.ts'];

/** Projects of one phase run side by side, with so many workers in all. */
function phase(groupOrder: number, maxWorkers: number, projects: readonly Project[]): TestProjectConfiguration[] {
  return projects.map((test) => ({ extends: true, test: { ...test, maxWorkers, sequence: { groupOrder } } }));
}
interface Project {
  readonly name: string;
  readonly include: string[];
  readonly exclude?: string[];
  readonly isolate?: boolean;
  readonly env?: Record<string, string>;
  readonly setupFiles?: string[];
}

// Forks, not threads: tests own the process they run in, and --expose-gc works only there. Two workers also where the machine has two
// cores: they wait for compilers and devices. Tests that measure time, or need the cores for kernels that run side by side, run alone at the end.
export default defineConfig({
  test: {
    pool: 'forks',
    execArgv: ['--expose-gc'],
    env: ENV,
    // What a module becomes, once for all projects.
    experimental: { fsModuleCache: true, fsModuleCachePath: 'build/vitest-modules' },
    setupFiles: ['test/support/before-each-file.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      ...phase(0, 2, [
        { name: 'unit', include: ['test/unit/**/*.test.ts'], exclude: [TOOLCHAIN, COMPILER, ...OF_ITS_OWN], isolate: false },
        { name: 'compiler', include: [COMPILER], isolate: false },
        // Most of it is time of g++: `npm run quick` leaves it out.
        {
          name: 'toolchain',
          isolate: false,
          include: [TOOLCHAIN],
          exclude: [...LONG.map((name) => `test/unit/toolchain/${name}.test.ts`), ...OF_ITS_OWN],
        },
        // Another system, without the addon.
        {
          name: 'no-addon',
          include: ['test/unit/testing/*.test.ts'],
          env: { MILLRACE_ADDON: '/none/millrace.node' },
          setupFiles: ['test/support/other-system.ts'],
        },
        { name: 'processes', include: PAIRED },
        ...Object.entries(TARGETS).map(([name, folders]) => ({
          name,
          include: [TARGET_TEST, ...folders.map((folder) => `test/conformance/${folder}/*.test.ts`)],
          exclude: (!IS_LONG && LONG_OF[name]) || [],
          isolate: false,
          env: { MILLRACE_TEST_TARGET: name },
        })),
      ]),
      ...phase(1, 3, [
        { name: 'own-process', include: OF_ITS_OWN, exclude: [TARGET_TEST] },
        { name: 'programs', include: ['test/{examples,process,reactive,site}/*.test.ts', PAGES], exclude: [...PAIRED, ...MEASURING] },
        { name: 'package', include: ['test/package/*.test.ts'] },
      ]),
      ...phase(2, 1, [{ name: 'alone', include: MEASURING }]),
    ],
  },
});
