// Options of CPU devices that check what kernels do with memory.
import { badArgument, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';

/** As in OpenOptions. */
export interface CheckOptions {
  readonly guard?: boolean;
  readonly racecheck?: boolean;
}

/** The options, what they do, and the tool of compute-sanitizer that does it on a GPU. */
const CHECKS = [
  { option: 'guard', does: 'guard its memory', tool: 'memcheck' },
  { option: 'racecheck', does: 'find races of shared memory', tool: 'racecheck' },
] as const;

/** Throws ArgumentError for a value that is neither true nor false. */
export function checkCheckOptions(opts: CheckOptions): void {
  for (const { option } of CHECKS) {
    const value: unknown = opts[option];
    if (value === undefined || typeof value === 'boolean') continue;
    throw badArgument(option, value, `The option ${option} (${show(value)}) is neither true nor false.`);
  }
}

/** The error of a GPU for an option that only CPU devices have; undefined if there is none. */
export function refusedCheck(device: string, opts: CheckOptions): UnsupportedError | undefined {
  const check = CHECKS.find(({ option }) => opts[option] === true);
  if (check === undefined) return undefined;
  const { option, does, tool } = check;
  return new UnsupportedError(
    'ERR_MILLRACE_UNSUPPORTED',
    `Device ${device} cannot ${does} (${option}: true); only CPU devices can. On a GPU run: compute-sanitizer --tool ${tool} node program.js`,
    option,
  );
}
