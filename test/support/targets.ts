// What the projects of the conformance suite run on: how the devices of each target open, and what they support. A project names its
// target in MILLRACE_TEST_TARGET.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { expect } from 'vitest';
import { type DeviceSpec, listDevices, openDevice, type OpenOptions } from 'millrace';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from './fake-driver.js';
import { HAS_GPU } from './has-gpu.js';
import { IS_LONG } from './long.js';
import { CPU_SUPPORTS, type Target } from './target.js';

/** What a project runs on, or why this machine has not got it. */
type Found = readonly Target[] | string;

const { MILLRACE_TEST_TARGET, MILLRACE_SEEDS = '1' } = process.env;

/** The folder of the chapter that runs now. */
const folder = (): string => path.basename(path.dirname(expect.getState().testPath!));

/** Sets variables that the library reads when a device opens. */
function set(variables: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

// Read once in a process: long enough for a busy machine, and shorter than the usual 10 s for the test of this limit.
process.env['MILLRACE_CPU_SPIN_MS'] ??= '4000';

const ON_CPU: Target = {
  name: 'cpu',
  spec: 'cpu',
  supports: CPU_SUPPORTS,
  ...(!IS_LONG && { kernels: 2, launches: 30_000, textStep: 7 }),
  open: (options) => {
    // A kernel of the suite that accesses memory outside of its arrays fails here, and only here.
    const guard = ['kernels', 'arithmetic', 'texts'].includes(folder());
    return openDevice('cpu', guard ? { guard, ...options } : options);
  },
};

/** The CPU device in a process of its own. */
const ISOLATED: Target = {
  ...ON_CPU,
  name: 'cpu, isolated',
  open: (options) => openDevice('cpu', { isolation: 'process', ...options }),
};

async function twoCpus(): Promise<Target> {
  const { CPU_DEVICES } = await import('./two-cpu-devices.js');
  return {
    name: 'two-cpu',
    spec: 'cpu:0',
    supports: CPU_SUPPORTS,
    open: (options) => openDevice('cpu:0', options),
    openOther: () => openDevice(`cpu:${CPU_DEVICES - 1}`),
  };
}

/** CPU devices that delay and reorder operations pseudo-randomly, as far as the rules allow: a missing wait shows within a few seeds. */
async function seeded(): Promise<Target[]> {
  const two = await twoCpus();
  // MILLRACE_SEEDS=7 runs only seed 7, to repeat a failure; 1-1000 runs these seeds.
  const [first = 1, last = first] = MILLRACE_SEEDS.split('-').map(Number);
  return Array.from({ length: last - first + 1 }, (_, at) => {
    const seed = { MILLRACE_CPU_SEED: String(first + at) };
    return {
      ...two,
      name: `cpu, seed ${first + at}`,
      programs: 15,
      open: (options) => (set(seed), two.open(options)),
      openOther: () => (set(seed), two.openOther!()),
    };
  });
}

/** The CUDA backend over a driver library that computes on the CPU, so that the whole of native/cuda runs on machines without a GPU. */
async function fakeCuda(): Promise<Target> {
  await import('./fake-cuda.js');
  return {
    name: 'fake-cuda',
    spec: 'cuda:0',
    supports: { ...CPU_SUPPORTS, memoryLimit: true, interprocess: true },
    // Each build starts a process of its own, and each launch runs in the driver's one thread. The CPU device runs these tests in full. The
    // fake driver compiles texts as the CPU device does.
    ...(!IS_LONG && { kernels: 8, launches: 30_000, programs: 25, textStep: 3 }),
    open: (options) => openDevice('cuda:0', options),
    openOther: () => openDevice('cuda:1'),
  };
}

/** Two devices that each access the other's memory only through host memory. */
async function twoBackends(): Promise<Target[]> {
  await import('./fake-cuda.js');
  const [cpu, cuda] = (['cpu', 'cuda:0'] as const).map((spec) => (options?: OpenOptions) => openDevice(spec, options));
  return [
    { name: 'cpu-and-fake-cuda', spec: 'cpu', supports: CPU_SUPPORTS, open: cpu!, openOther: cuda! },
    { name: 'fake-cuda-and-cpu', spec: 'cuda:0', supports: CPU_SUPPORTS, open: cuda!, openOther: cpu! },
  ];
}

/** The first CUDA devices. */
async function gpus(count: 1 | 2): Promise<readonly [Target] | string> {
  const listed = (await listDevices()).filter(({ backend }) => backend === 'cuda').length;
  if (listed < count) {
    const reason = (error: Error): string => error.message;
    return listed > 0 ? 'this machine has one CUDA device' : openDevice('cuda').then(() => 'cuda opens, but is not listed', reason);
  }
  return [
    {
      name: 'cuda',
      spec: 'cuda:0',
      supports: { memoryLimit: true, interprocess: true, spinsPerSecond: 4e6, waitingStreams: 16 },
      open: (options) => openDevice('cuda:0', options),
      ...(count > 1 && { openOther: () => openDevice('cuda:1') }),
    },
  ];
}

/** The target's devices, each in a process of its own: its first, and a second where one is named. */
function apart({ openOther: _, ...target }: Target, first: DeviceSpec, second?: DeviceSpec): readonly [Target] {
  const opens = (spec: DeviceSpec) => (options?: OpenOptions) => openDevice(spec, { isolation: 'process', ...options });
  return [
    {
      ...target,
      name: `${target.name}, isolated`,
      supports: { ...target.supports, interprocess: false },
      open: opens(first),
      ...(second !== undefined && { openOther: opens(second) }),
    },
  ];
}

/** CUDA devices, or those of the fake driver, each in a process of its own. */
async function isolatedGpus(first: DeviceSpec, second?: DeviceSpec): Promise<Found> {
  const found = HAS_GPU ? await gpus(second === undefined ? 1 : 2) : [await fakeCuda()];
  return typeof found === 'string' ? found : apart(found[0]!, first, second);
}

/** No rule may depend on the compiler. */
function clang(): Found {
  if (spawnSync('clang++', ['--version']).status !== 0) return 'clang++ is not on this machine';
  const open = (options?: OpenOptions) => (set({ MILLRACE_CXX: 'clang++' }), openDevice('cpu', options));
  return [{ name: 'cpu, clang', spec: 'cpu', supports: CPU_SUPPORTS, ...(!IS_LONG && { textStep: 7 }), open }];
}

const TARGETS: Readonly<Record<string, () => Found | Promise<Found>>> = {
  cpu: () => [ON_CPU],
  isolated: () => [ISOLATED],
  'two-cpu': async () => [await twoCpus()],
  'two-isolated': async () => apart(await twoCpus(), 'cpu:0', 'cpu:1'),
  seeded,
  'fake-cuda': async () => (FAKE_DRIVER === undefined ? FAKE_DRIVER_MISSING : [await fakeCuda()]),
  'two-backends': async () => (FAKE_DRIVER === undefined ? FAKE_DRIVER_MISSING : twoBackends()),
  cuda: () => gpus(1),
  'two-cuda': () => gpus(2),
  'isolated-cuda': () => isolatedGpus('cuda:0'),
  'two-isolated-cuda': () => isolatedGpus('cuda:0', 'cuda:1'),
  clang,
};

/** The targets of this project; why this machine lacks them otherwise. */
export const found: Found = await TARGETS[MILLRACE_TEST_TARGET ?? 'cpu']!();
