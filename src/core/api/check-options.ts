// Options of CPU devices that check what kernels do with memory.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';

/** Options of `openDevice` for CPU devices. */
export interface CheckOptions {
  /**
   * Finds accesses outside of arrays by CUDA C++ kernels on the CPU device, as `compute-sanitizer --tool memcheck` does on a GPU. The default is
   * true on CPU devices in test runs (NODE_ENV is 'test', or VITEST is set), else false. Each array lies between 1 MiB of memory that kernels
   * cannot access. A kernel that accesses it is stopped: its launch rejects with a LaunchError that names the array, the distance and the
   * block, and the device goes on. In the rest of the array's first and last page, writes are found when the launch has run, and reads are
   * not found: that concerns up to 15 bytes behind the array, and the bytes between it and the start of its page. Each array takes whole
   * pages, and memory of freed arrays is used again as late as possible. Of more than 8,192 arrays, the later ones have no guard.
   * UnsupportedError on a GPU.
   */
  readonly guard?: boolean;
  /**
   * The memory of a CPU device for arrays, in bytes. The default is what the device has (`info.totalMemoryBytes`): four fifths of the memory of
   * the machine or of the process's control group, but no more than nine tenths of what was available when the process first looked for
   * devices. A larger value has no effect. UnsupportedError on a GPU.
   */
  readonly memoryLimitBytes?: number;
  /**
   * Finds races of shared memory in kernels on the CPU device, as `compute-sanitizer --tool racecheck` does on a GPU (default false): two
   * threads of a block access the same byte, at least one of them writes it, and no barrier lies between. The launch rejects with a
   * LaunchError that names the kernel, the variable and its byte, both threads and the lines of both accesses, and the device goes on. It
   * finds missing barriers although the threads of a block run one after the other here. Kernels run 10 to 1,000 times as long, and
   * global memory is not checked. UnsupportedError on a GPU.
   */
  readonly racecheck?: boolean;
  /**
   * A CPU device with a seed (0 to 2^32 - 1) chooses at random whatever the ordering rules leave open: which stream runs next, where a stream
   * yields, and up to 200 us of delay before operations and reports. A program that lacks a wait then gives other results from seed to
   * seed; `expectNoRaces` of `millrace/testing` compares them. A seed names a set of schedules: the threads' own timing varies, too. Priorities of
   * streams have no effect. UnsupportedError on a GPU.
   */
  readonly seed?: number;
  /**
   * How many threads of a CPU device run its kernels, 2 to 1024; `device.info.multiprocessors` is that number. Default: as many as the machine
   * has. Several CPU devices with fewer threads share a machine without taking each other's. UnsupportedError on a GPU.
   */
  readonly threads?: number;
}

export const MOST_SEED: number = 2 ** 32 - 1;
/** Two streams run side by side. */
const LEAST_THREADS = 2;
const MOST_THREADS = 1024;

/** The options, what they do, and the tool of compute-sanitizer that does it on a GPU. */
const CHECKS = [
  { option: 'guard', does: 'guard its memory', tool: 'memcheck' },
  { option: 'racecheck', does: 'find races of shared memory', tool: 'racecheck' },
] as const;

/** Whether `guard` is true where it is not given: on CPU devices in test runs. */
export function checksByDefault({ backend }: { readonly backend: string }): boolean {
  return backend === 'cpu' && (process.env['NODE_ENV'] === 'test' || process.env['VITEST'] !== undefined);
}

/** Throws ArgumentError for a value that is not of its kind. */
export function checkCheckOptions(opts: CheckOptions): void {
  if (opts.memoryLimitBytes !== undefined) checkInteger('memoryLimitBytes', opts.memoryLimitBytes, 1);
  if (opts.seed !== undefined) checkInteger('seed', opts.seed, 0, MOST_SEED);
  if (opts.threads !== undefined) checkInteger('threads', opts.threads, LEAST_THREADS, MOST_THREADS);
  for (const { option } of CHECKS) {
    const value: unknown = opts[option];
    if (value === undefined || typeof value === 'boolean') continue;
    throw badArgument(option, value, `The option ${option} (${show(value)}) is neither true nor false.`);
  }
}

/** The error of a GPU for an option that only CPU devices have; undefined if there is none. */
export function refusedCheck(device: string, opts: CheckOptions): UnsupportedError | undefined {
  const check = CHECKS.find(({ option }) => opts[option] === true);
  if (opts.memoryLimitBytes !== undefined) {
    const message = `Device ${device} cannot limit its memory (memoryLimitBytes: ${opts.memoryLimitBytes}); only CPU devices can.`;
    return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'memoryLimitBytes');
  }
  if (opts.seed !== undefined) {
    const message = `Device ${device} cannot choose the order of its work (seed: ${opts.seed}); only CPU devices can.`;
    return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'seed');
  }
  if (opts.threads !== undefined) {
    const message = `Device ${device} has no threads to choose (threads: ${opts.threads}); only CPU devices have.`;
    return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'threads');
  }
  if (check === undefined) return undefined;
  const { option, does, tool } = check;
  return new UnsupportedError(
    'ERR_MILLRACE_UNSUPPORTED',
    `Device ${device} cannot ${does} (${option}: true); only CPU devices can. On a GPU run: compute-sanitizer --tool ${tool} node program.js`,
    option,
  );
}
